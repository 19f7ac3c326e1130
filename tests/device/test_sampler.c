/* Samplers: the trace and CSV files have the meters' values, each once an interval. An error of a
   meter is reported and blocks no other one. On the emulated vendor, and on folders made as the
   kernel's. */
#define _GNU_SOURCE
#include <math.h>
#include <prof/device.h>
#include <prof/profiler.h>
#include <prof/sampler.h>
#include <prof/trace.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "alone.h"
#include "collector.h"
#include "emulated/emulated.h"
#include "hang_guard.h"
#include "sampled.h"

enum { INTERVAL_NS = 2000000 };

static char folder[64];

static void begin(void) {
  strcpy(folder, "/tmp/prof-sampler-XXXXXX");
  assert_non_null(mkdtemp(folder));
  setenv("PROF_SYSFS_ROOT", folder, 1); /* where there is nothing yet */
  emulated_meter.power_mw[0] = 250000;
  emulated_meter.power_mw[1] = 75500;
  emulated_meter.memory_bytes[0] = EMULATED_MEMORY_BYTES / 4;
  assert_int_equal(prof_backend_add(&emulated_backend), PROF_OK);
}

static void drop_folder(void) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  assert_int_equal(system(command), 0);
}

/* At once, as the kernel's change: whoever reads meanwhile has the old or the new text. */
static void put_file(const char *name, const char *text) {
  char path[256], fresh[sizeof path + 4];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  for (char *at = path + strlen(folder) + 1; (at = strchr(at, '/')) != NULL; at++) {
    *at = '\0';
    mkdir(path, 0700);
    *at = '/';
  }
  snprintf(fresh, sizeof fresh, "%s.new", path);
  FILE *const file = fopen(fresh, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
  assert_int_equal(rename(fresh, path), 0);
}

static prof_sampler_state state_now(void) {
  prof_sampler_state now = {.size = sizeof now};
  assert_int_equal(prof_sampler_get(&now), PROF_OK);
  return now;
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void wait_for_samples(uint64_t count) {
  WAIT_WHILE(state_now().sample_count < count);
  assert_true(state_now().sample_count >= count);
}

static const char *read_file(const char *path) {
  static char text[1 << 16];
  FILE *const file = fopen(path, "r");
  assert_non_null(file);
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  fclose(file);
  return text;
}

/* Of one counter: how often it is in the trace, and its last value. It is its device's. */
static int32_t counted_type = EMULATED_TYPE;
static double integral; /* of what was counted last, over the time, from its first value on */
static double middle;   /* of its values: half of them are not above it */
static int by_value(const void *a, const void *b) {
  return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}
static uint64_t count_of(const char *name, double *last_out) {
  enum { VALUES = 4096 };
  static double values[VALUES];
  static prof_event event;
  const int32_t type = strncmp(name, "host:", 5) == 0 ? PROF_DEVICE_CPU : counted_type,
                index = atoi(strchr(name, ':') + 1);
  uint64_t last_ns = 0;
  integral = 0;
  prof_trace *trace = NULL;
  prof_cursor *cursor = NULL;
  uint64_t count = 0;
  assert_int_equal(prof_get(&trace), PROF_OK);
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  while (prof_cursor_next(cursor, &event) == 1) {
    if (event.kind != PROF_EVENT_COUNTER || event.name_bytes != strlen(name) ||
        memcmp(event.name, name, event.name_bytes) != 0)
      continue;
    assert_int_equal(event.device.type, type);
    assert_int_equal(event.device.index, index);
    if (count) integral += event.value * (double)(event.start_ns - last_ns) / 1e9;
    last_ns = event.start_ns;
    *last_out = event.value;
    if (count < VALUES) values[count] = event.value;
    count++;
  }
  qsort(values, count < VALUES ? count : VALUES, sizeof *values, by_value);
  middle = count ? values[(count < VALUES ? count : VALUES) / 2] : 0;
  prof_cursor_destroy(cursor);
  prof_trace_destroy(trace);
  return count;
}

static void each_meter_is_a_counter(void **state) {
  (void)state;
  const prof_sampler_options options = {.size = sizeof options, .interval_ns = INTERVAL_NS};
  double value = 0;
  assert_int_equal(prof_start(1), PROF_OK);
  assert_int_equal(prof_sampler_start(&options), PROF_OK);
  assert_int_equal(state_now().meter_count, 5 * EMULATED_DEVICES);
  wait_for_samples(20);
  stop_sampler();
  assert_int_equal(prof_stop(), PROF_OK);
  const uint64_t samples = state_now().sample_count;
  assert_int_equal(count_of("emulated:0 power (W)", &value), samples);
  assert_true(value == 250);
  assert_int_equal(count_of("emulated:1 power (W)", &value), samples);
  assert_true(value == 75.5);
  assert_int_equal(count_of("emulated:0 memory used (B)", &value), samples);
  assert_true(value == (double)EMULATED_MEMORY_BYTES / 4);
  /* the first tells where it began */
  assert_int_equal(count_of("emulated:0 average power (W)", &value), samples - 1);
  /* each is as wrong as long as the sampler had no processor between what it read and the time of
     that */
  assert_true(middle > 200 && middle < 300);
  drop_folder();
}

static void what_is_not_asked_for_is_not_read(void **state) {
  (void)state;
  const prof_sampler_options options = {.size = sizeof options,
                                        .interval_ns = INTERVAL_NS,
                                        .devices = "1,7",
                                        .mode = PROF_SAMPLE_VRAM};
  double value;
  assert_int_equal(prof_start(1), PROF_OK);
  assert_int_equal(prof_sampler_start(&options), PROF_OK);
  assert_int_equal(state_now().meter_count, 1);
  wait_for_samples(3);
  stop_sampler();
  assert_true(count_of("emulated:1 memory used (B)", &value) >= 3);
  assert_int_equal(
      count_of("emulated:0 memory used (B)", &value) + count_of("emulated:1 power (W)", &value), 0);
  drop_folder();
}

/* Five lines at least of "2026-11-23 08:00:00.123456" and what follows; row: what each begins with
   behind the time. */
static void check_rows(const char *text, const char *head, const char *row) {
  assert_memory_equal(text, head, strlen(head));
  int rows = 0;
  for (const char *at = text + strlen(head); *at; rows++) {
    int year, month, day, hour, minute, second, us, bytes = 0;
    if (sscanf(at, "%4d-%2d-%2d %2d:%2d:%2d.%6d%n", &year, &month, &day, &hour, &minute, &second,
               &us, &bytes) != 7 ||
        bytes != 26)
      fail_msg("row %d: %.60s", rows, at);
    if (strncmp(at + bytes, row, strlen(row)) != 0) fail_msg("row %d: %.60s", rows, at);
    at = strchr(at, '\n');
    assert_non_null(at++);
  }
  assert_true(rows >= 5);
}

static void csv_is_as_madengine_writes_it(void **state) {
  (void)state;
  static const struct {
    uint32_t mode, unknown;
    const char *head, *row;
  } wanted[] = {
      {PROF_SAMPLE_POWER, 0, "time,Power(Watt) GPU0,Power(Watt) GPU1\n", ",250.00,75.50\n"},
      {PROF_SAMPLE_POWER, 2, "time,Power(Watt) GPU0,Power(Watt) GPU1\n", ",250.00,N/A\n"},
      {PROF_SAMPLE_VRAM, 0, "time,vram(%) GPU0,vram(%) GPU1\n", ",25.00,0.00\n"},
      {PROF_SAMPLE_UTILISATION, 0, "time,utilisation(%) GPU0,utilisation(%) GPU1\n",
       ",40.00,41.00\n"},
      {PROF_SAMPLE_CLOCK, 0, "time,clock(MHz) GPU0,clock(MHz) GPU1\n", ",1500.00,1501.00\n"}};
  char path[128];
  snprintf(path, sizeof path, "%s/out.csv", folder);
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    const prof_sampler_options options = {.size = sizeof options,
                                          .interval_ns = INTERVAL_NS,
                                          .mode = wanted[i].mode,
                                          .csv_path = path};
    emulated_meter.unknown_device = wanted[i].unknown;
    assert_int_equal(prof_sampler_start(&options), PROF_OK);
    wait_for_samples(5);
    assert_int_not_equal(access(path, F_OK), 0); /* never half of it */
    stop_sampler();
    check_rows(read_file(path), wanted[i].head, wanted[i].row);
    assert_int_equal(unlink(path), 0);
  }
  drop_folder();
}

/* A killed process leaves the rows so far. Here they are read while it runs. */
static void a_live_csv_has_each_row_at_once(void **state) {
  (void)state;
  char path[128], other[128];
  snprintf(path, sizeof path, "%s/out.csv", folder);
  snprintf(other, sizeof other, "%s/link.csv", folder);
  put_file("out.csv",
           "what an earlier run left, longer than a heading is, by a few words at least\n");
  assert_int_equal(symlink("elsewhere.csv", other), 0);
  prof_sampler_options options = {.size = sizeof options,
                                  .interval_ns = INTERVAL_NS,
                                  .mode = PROF_SAMPLE_POWER,
                                  .csv_path = path,
                                  .csv_is_live = 1};
  assert_int_equal(prof_sampler_start(&options), PROF_OK);
  assert_memory_equal(read_file(path), "time,Power(Watt) GPU0,", 22);
  wait_for_samples(5);
  check_rows(read_file(path), "time,Power(Watt) GPU0,Power(Watt) GPU1\n", ",250.00,75.50\n");
  stop_sampler();
  options.csv_path = other;
  assert_true(prof_sampler_start(&options) < 0);
  assert_non_null(strstr(prof_last_error(), "link.csv"));
  drop_folder();
}

static void csv_of_all_has_a_row_a_value(void **state) {
  (void)state;
  char path[128], row[128];
  snprintf(path, sizeof path, "%s/out.csv", folder);
  const prof_sampler_options options = {
      .size = sizeof options, .interval_ns = INTERVAL_NS, .csv_path = path};
  assert_int_equal(prof_sampler_start(&options), PROF_OK);
  wait_for_samples(3);
  stop_sampler();
  const char *const text = read_file(path), head[] = "time_ns,meter,unit,value\n";
  assert_memory_equal(text, head, sizeof head - 1);
  snprintf(row, sizeof row, ",emulated:0 memory used (B),B,%.1f\n",
           (double)EMULATED_MEMORY_BYTES / 4);
  assert_non_null(strstr(text, row));
  assert_non_null(strstr(text, ",emulated:1 power (W),W,75.5\n"));
  drop_folder();
}

static void wrong_options_are_refused_with_their_values(void **state) {
  (void)state;
  static const struct {
    prof_sampler_options options;
    int status;
    const char *text;
  } wanted[] = {{{.interval_ns = UINT64_MAX}, PROF_E_INVALID, "at most"},
                {{.interval_ns = 999999}, PROF_E_INVALID, "999999"},
                {{.mode = 5}, PROF_E_INVALID, "mode is 5"},
                {{.devices = "0,x"}, PROF_E_INVALID, "'0,x'"},
                {{.devices = ""}, PROF_E_INVALID, "devices"},
                {{.devices = "0,"}, PROF_E_INVALID, "'0,'"},
                {{.csv_path = ""}, PROF_E_INVALID, "csv_path"},
                {{.csv_path = "/nowhere/out.csv"}, PROF_E_NOT_FOUND, "/nowhere"},
                {{.devices = "9"}, PROF_E_NOT_FOUND, "of a device 9 here"},
                {{.csv_is_live = 2}, PROF_E_INVALID, "csv_is_live is 2"},
                {{.csv_is_live = 1, .csv_path = "/nowhere/out.csv"}, PROF_E_NOT_FOUND, "/nowhere"}};
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    prof_sampler_options options = wanted[i].options;
    options.size = sizeof options;
    const int status = prof_sampler_start(&options);
    if (status != wanted[i].status || !strstr(prof_last_error(), wanted[i].text))
      fail_msg("%zu: status %d: %s", i, status, prof_last_error());
  }
  assert_int_equal(prof_sampler_stop(), PROF_E_NOT_RUNNING);
  assert_int_equal(prof_sampler_get(NULL), PROF_E_INVALID);
  assert_int_equal(prof_sampler_start(NULL), PROF_OK);
  assert_int_equal(prof_sampler_start(NULL), PROF_E_RUNNING);
  stop_sampler();
  drop_folder();
}

static void one_that_hangs_holds_nobody(void **state) {
  (void)state;
  const prof_sampler_options options = {.size = sizeof options, .interval_ns = INTERVAL_NS};
  assert_int_equal(prof_sampler_start(&options), PROF_OK);
  wait_for_samples(2);
  __atomic_store_n(&emulated_meter.hangs, 1, __ATOMIC_RELAXED);
  WAIT_WHILE(!__atomic_load_n(&emulated_meter.is_hanging, __ATOMIC_RELAXED));
  assert_int_equal(prof_sampler_stop(), PROF_E_BUSY);
  assert_int_equal(prof_sampler_start(&options), PROF_E_BUSY);
  assert_int_equal(prof_sampler_stop(), PROF_E_BUSY);
  __atomic_store_n(&emulated_meter.hangs, 0, __ATOMIC_RELAXED);
  int status;
  WAIT_WHILE((status = prof_sampler_start(&options)) == PROF_E_BUSY);
  assert_int_equal(status, PROF_OK);
  stop_sampler();
  drop_folder();
}

static void *start_of_another_thread(void *status) {
  *(int *)status = prof_sampler_start(NULL);
  return NULL;
}

/* Neither others meanwhile nor, for good, the one that starts it: that one waits for 10 s, in make
   test-long alone. */
static void one_that_hangs_while_it_is_asked_holds_nobody_for_good(void **state) {
  (void)state;
  int others = PROF_OK;
  pthread_t other;
  __atomic_store_n(&emulated_meter.finding_hangs, 1, __ATOMIC_RELAXED);
  assert_int_equal(pthread_create(&other, NULL, start_of_another_thread, &others), 0);
  int status;
  WAIT_WHILE((status = prof_sampler_stop()) == PROF_E_NOT_RUNNING);
  assert_int_equal(status, PROF_E_BUSY);
  assert_int_equal(prof_sampler_start(NULL), PROF_E_BUSY);
  assert_non_null(strstr(prof_last_error(), "just being started"));
  assert_int_equal(state_now().is_running, 0);
  if (getenv("PROF_LONG")) {
    assert_int_equal(pthread_join(other, NULL), 0);
    assert_int_equal(others, PROF_E_BUSY);
    assert_int_equal(prof_sampler_start(NULL), PROF_E_BUSY);
    assert_non_null(strstr(prof_last_error(), "still has not answered"));
    __atomic_store_n(&emulated_meter.finding_hangs, 0, __ATOMIC_RELAXED);
    WAIT_WHILE((status = prof_sampler_start(NULL)) == PROF_E_BUSY);
    assert_int_equal(status, PROF_OK);
  } else {
    __atomic_store_n(&emulated_meter.finding_hangs, 0, __ATOMIC_RELAXED);
    assert_int_equal(pthread_join(other, NULL), 0);
    assert_int_equal(others, PROF_OK);
  }
  stop_sampler();
  drop_folder();
}

/* By then the stop has come back without a word about it. */
static void what_became_of_a_late_file_is_told(void **state) {
  (void)state;
  char path[128];
  snprintf(path, sizeof path, "%s/out.csv", folder);
  const prof_sampler_options options = {
      .size = sizeof options, .interval_ns = INTERVAL_NS, .csv_path = path};
  assert_int_equal(prof_sampler_start(&options), PROF_OK);
  wait_for_samples(2);
  __atomic_store_n(&emulated_meter.hangs, 1, __ATOMIC_RELAXED);
  WAIT_WHILE(!__atomic_load_n(&emulated_meter.is_hanging, __ATOMIC_RELAXED));
  assert_int_equal(prof_sampler_stop(), PROF_E_BUSY);
  assert_int_equal(state_now().csv_status, PROF_OK);
  assert_int_equal(mkdir(path, 0700), 0); /* no file can take its place */
  __atomic_store_n(&emulated_meter.hangs, 0, __ATOMIC_RELAXED);
  WAIT_WHILE(state_now().csv_status == PROF_OK);
  assert_true(state_now().csv_status < 0);
  assert_non_null(strstr(state_now().csv_error, "out.csv"));
  sampler_has_ended();
  assert_int_equal(rmdir(path), 0);
  drop_folder();
}

enum { MANY = 300 };
static uint32_t most_at_once;

static int many_metric(prof_backend_self *self, uint32_t number, prof_backend_metric *out) {
  (void)self;
  if (number >= MANY) return PROF_BACKEND_NO_DEVICE;
  *out = (prof_backend_metric){.size = out->size, .id = number, .scale = 1, .unit = "V"};
  snprintf(out->name, sizeof out->name, "meter %u", number);
  return PROF_BACKEND_OK;
}

static int many_sample(prof_backend_self *self, const prof_backend_metric *metrics, uint32_t count,
                       int64_t *values_out, uint64_t *known_out) {
  (void)self;
  if (count > most_at_once) most_at_once = count;
  for (uint32_t i = 0; i < count; i++) values_out[i] = metrics[i].id;
  *known_out = UINT64_MAX;
  return PROF_BACKEND_OK;
}

static void of_many_those_that_there_is_no_room_for_are_counted(void **state) {
  (void)state;
  prof_backend many = emulated_backend;
  const prof_sampler_options options = {
      .size = sizeof options, .interval_ns = INTERVAL_NS, .devices = "0"};
  double value = 0;
  many.name = "emulated:0 many"; /* count_of() reads the device's number there */
  many.device_type = EMULATED_TYPE + 1;
  many.metric = many_metric;
  many.sample = many_sample;
  assert_int_equal(prof_backend_add(&many), PROF_OK);
  assert_int_equal(prof_start(1), PROF_OK);
  assert_int_equal(prof_sampler_start(&options), PROF_OK);
  assert_int_equal(state_now().meter_count, 256);
  assert_int_equal(state_now().left_out_count, MANY + 5 - 256);
  wait_for_samples(3);
  stop_sampler();
  assert_int_equal(most_at_once, 64);
  const struct {
    const char *name;
    double value;
  } some[] = {{"emulated:0 many:0 meter 3 (V)", 3}, {"emulated:0 many:0 meter 200 (V)", 200}};
  for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
    counted_type = EMULATED_TYPE + 1;
    assert_true(count_of(some[i].name, &value) >= 3);
    assert_true(value == some[i].value);
  }
  drop_folder();
}

static int odd_metric(prof_backend_self *self, uint32_t number, prof_backend_metric *out) {
  static const double scales[] = {NAN, INFINITY, -INFINITY, 1e300, 1};
  (void)self;
  if (number >= sizeof scales / sizeof *scales) return PROF_BACKEND_NO_DEVICE;
  *out =
      (prof_backend_metric){.size = out->size, .id = number, .scale = scales[number], .unit = "W"};
  snprintf(out->name, sizeof out->name, "odd %u", number);
  return PROF_BACKEND_OK;
}

static int odd_sample(prof_backend_self *self, const prof_backend_metric *metrics, uint32_t count,
                      int64_t *values_out, uint64_t *known_out) {
  (void)self, (void)metrics;
  for (uint32_t i = 0; i < count; i++) values_out[i] = INT64_MAX;
  *known_out = UINT64_MAX;
  return PROF_BACKEND_OK;
}

static void what_is_no_number_is_not_told(void **state) {
  (void)state;
  prof_backend odd = emulated_backend;
  char path[128];
  snprintf(path, sizeof path, "%s/out.csv", folder);
  odd.name = "odd";
  odd.device_type = EMULATED_TYPE + 1;
  odd.metric = odd_metric;
  odd.sample = odd_sample;
  assert_int_equal(prof_backend_add(&odd), PROF_OK);
  const prof_sampler_options options = {
      .size = sizeof options, .interval_ns = INTERVAL_NS, .csv_path = path};
  assert_int_equal(prof_sampler_start(&options), PROF_OK);
  wait_for_samples(3);
  stop_sampler();
  const char *const text = read_file(path);
  assert_non_null(strstr(text, ",odd:0 odd 4 (W),W,"));
  for (int i = 0; i < 4; i++) {
    char name[32];
    snprintf(name, sizeof name, "odd %d", i);
    assert_null(strstr(text, name)); /* the last one overflows */
  }
  drop_folder();
}

static void what_was_due_meanwhile_is_missed_and_counted(void **state) {
  (void)state;
  const prof_sampler_options options = {.size = sizeof options, .interval_ns = INTERVAL_NS};
  assert_int_equal(prof_sampler_start(&options), PROF_OK);
  wait_for_samples(1);
  __atomic_store_n(&emulated_meter.hangs, 1, __ATOMIC_RELAXED);
  WAIT_WHILE(!__atomic_load_n(&emulated_meter.is_hanging, __ATOMIC_RELAXED));
  const uint64_t then = state_now().sample_count;
  usleep(200 * INTERVAL_NS / 1000);
  __atomic_store_n(&emulated_meter.hangs, 0, __ATOMIC_RELAXED);
  /* the one that hung, and one behind it: what was missed between them has been counted */
  wait_for_samples(then + 2);
  assert_true(state_now().missed_count >= 40);
  stop_sampler();
  drop_folder();
}

static void one_that_refuses_leaves_a_gap(void **state) {
  (void)state;
  const prof_sampler_options options = {.size = sizeof options, .interval_ns = INTERVAL_NS};
  double value;
  assert_int_equal(prof_start(1), PROF_OK);
  emulated_meter.refuses = 1;
  assert_int_equal(prof_sampler_start(&options), PROF_OK);
  wait_for_samples(3);
  stop_sampler();
  assert_int_equal(count_of("emulated:0 power (W)", &value), 0);
  drop_folder();
}

/* The counter comes round in between. */
static void the_processors_energy_is_power(void **state) {
  (void)state;
  const prof_sampler_options options = {
      .size = sizeof options, .interval_ns = INTERVAL_NS, .mode = PROF_SAMPLE_POWER};
  double value = 0, joules = 0;
  put_file("sys/class/powercap/intel-rapl:0/max_energy_range_uj", "65532610987\n");
  put_file("sys/class/powercap/intel-rapl:0/energy_uj", "65532000000\n");
  put_file("sys/class/power_supply/BAT0/current_now", "2000000\n");
  put_file("sys/class/power_supply/BAT0/voltage_now", "11500000\n");
  put_file("sys/class/power_supply/AC/online", "1\n");
  assert_int_equal(prof_start(1), PROF_OK);
  assert_int_equal(prof_sampler_start(&options), PROF_OK);
  assert_int_equal(state_now().why_not[0], 0);
  wait_for_samples(1);
  /* 1 kW, also while this thread has no processor */
  for (const uint64_t begin_ns = now_ns(); state_now().sample_count < 200; usleep(1000)) {
    char text[32];
    const uint64_t uj = now_ns() - begin_ns;
    joules = (double)uj / 1e6;
    snprintf(text, sizeof text, "%llu\n", (unsigned long long)((65532000000 + uj) % 65532610988));
    put_file("sys/class/powercap/intel-rapl:0/energy_uj", text);
  }
  wait_for_samples(state_now().sample_count + 2); /* one of them began when all was written */
  stop_sampler();
  assert_true(count_of("host:0 average power (W)", &value) > 50);
  print_message("  %.0f J written, %.1f J seen\n", joules, integral);
  assert_true(integral > 0.5 * joules && integral < 1.1 * joules);
  assert_true(count_of("host:0 battery power (W)", &value) >= 200);
  assert_true(value == 23);
  const prof_sampler_options alone = {
      .size = sizeof alone, .interval_ns = INTERVAL_NS, .devices = "host"};
  assert_int_equal(prof_sampler_start(&alone), PROF_OK);
  assert_int_equal(state_now().meter_count, 2);
  assert_string_equal(state_now().host_meters, "energy (J), battery power (W)");
  stop_sampler();
  drop_folder();
}

static void without_any_meter_it_says_why(void **state) {
  (void)state;
  const prof_sampler_options options = {
      .size = sizeof options, .devices = "all", .mode = PROF_SAMPLE_POWER};
  prof_backend bare = emulated_backend;
  bare.name = "bare";
  bare.metric = NULL;
  assert_int_equal(prof_backend_add(&bare), PROF_OK);
  assert_int_equal(prof_sampler_start(&options), PROF_OK); /* the one that has them is taken */
  stop_sampler();
  assert_non_null(strstr(state_now().why_not, "intel-rapl"));
  drop_folder();
}

static void a_forked_child_has_none(void **state) {
  (void)state;
  int status = -1;
  assert_int_equal(prof_sampler_start(NULL), PROF_OK);
  wait_for_samples(1);
  const pid_t child = fork();
  if (child == 0)
    _exit(prof_sampler_stop() == PROF_E_NOT_RUNNING && !state_now().is_running ? 0 : 1);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  stop_sampler();
  drop_folder();
}

/* It waits 100 ms for the sampler's thread: where that has no processor for so long, there is no
   file. Never half of one. */
static void an_exit_without_a_stop_leaves_a_whole_file(void **state) {
  (void)state;
  enum { TRIES = 20 };
  char path[128];
  int files = 0;
  snprintf(path, sizeof path, "%s/out.csv", folder);
  for (int i = 0; i < TRIES && !files; i++) {
    int status = -1;
    const pid_t child = fork();
    if (child == 0) {
      const prof_sampler_options options = {.size = sizeof options,
                                            .interval_ns = INTERVAL_NS,
                                            .mode = PROF_SAMPLE_POWER,
                                            .csv_path = path};
      if (prof_sampler_start(&options) != PROF_OK) _exit(1);
      wait_for_samples(6);
      exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    if (access(path, F_OK) == 0) {
      check_rows(read_file(path), "time,Power(Watt) GPU0,Power(Watt) GPU1\n", ",250.00,75.50\n");
      files++;
    }
  }
  assert_int_equal(files, 1);
  drop_folder();
}

static void starts_and_stops(void **state) {
  (void)state;
  enum { ROUNDS = 200 };
  for (int i = 0; i < ROUNDS; i++) {
    assert_int_equal(prof_sampler_start(NULL), PROF_OK);
    stop_sampler();
  }
  drop_folder();
}

/* A program that says nothing of it: this one, waiting for samples, or for no more than it takes to
   say what is wrong. */
static void the_environment_asks_for_it(void **state) {
  (void)state;
  static const struct {
    const char *told, *said;
  } wrong[] = {{"PROF_SAMPLE=0,1", "is no number of seconds"},
               {"PROF_SAMPLE=0.1 PROF_SAMPLE_MODE=heat",
                "is none of its words (all, power, vram, utilisation, clock)"},
               {"PROF_SAMPLE=0.0001", "interval_ns is 100000"},
               {"PROF_SAMPLE=0.1 PROF_SAMPLE_MODE=vram", "there is no meter of memory"}};
  char command[512], path[128];
  put_file("sys/class/powercap/intel-rapl:0/max_energy_range_uj", "65532610987\n");
  put_file("sys/class/powercap/intel-rapl:0/energy_uj", "1000\n");
  snprintf(path, sizeof path, "%s/out.csv", folder);
  snprintf(command, sizeof command,
           "PROF_LEVEL=1 PROF_SAMPLE=0.002 PROF_SAMPLE_MODE=power PROF_SAMPLE_CSV=%s /proc/%d/exe "
           "samples",
           path, (int)getpid());
  /* its end waits 100 ms for the sampler's thread, as above */
  for (int i = 0; i < 20 && access(path, F_OK) != 0; i++) assert_int_equal(system(command), 0);
  check_rows(read_file(path), "time,Power(Watt) host0\n", ",");
  drop_folder();
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    snprintf(command, sizeof command, "PROF_LEVEL=1 %s /proc/%d/exe waits 2>&1 | grep -qF '%s'",
             wrong[i].told, (int)getpid(), wrong[i].said);
    if (system(command) != 0) fail_msg("not said of %s: %s", wrong[i].told, wrong[i].said);
  }
}

#define TESTS(X)                                            \
  X(each_meter_is_a_counter)                                \
  X(what_is_not_asked_for_is_not_read)                      \
  X(csv_is_as_madengine_writes_it)                          \
  X(a_live_csv_has_each_row_at_once)                        \
  X(csv_of_all_has_a_row_a_value)                           \
  X(wrong_options_are_refused_with_their_values)            \
  X(what_is_no_number_is_not_told)                          \
  X(what_became_of_a_late_file_is_told)                     \
  X(of_many_those_that_there_is_no_room_for_are_counted)    \
  X(one_that_hangs_holds_nobody)                            \
  X(one_that_hangs_while_it_is_asked_holds_nobody_for_good) \
  X(what_was_due_meanwhile_is_missed_and_counted)           \
  X(one_that_refuses_leaves_a_gap)                          \
  X(the_processors_energy_is_power)                         \
  X(without_any_meter_it_says_why)                          \
  X(a_forked_child_has_none)                                \
  X(an_exit_without_a_stop_leaves_a_whole_file)             \
  X(starts_and_stops)                                       \
  X(the_environment_asks_for_it)

ALONE_TESTS

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "samples") == 0) {
    uint64_t count = 0;
    for (unsigned naps = 0; count < 10 && hang_nap(&naps);) count = state_now().sample_count;
    return count < 10;
  }
  if (argc != 2 || strcmp(argv[1], "waits") != 0) return alone_main(argc, argv);
  WAIT_WHILE(prof_sampler_stop() == PROF_E_BUSY); /* until it has been said what is wrong */
  return 0;
}
