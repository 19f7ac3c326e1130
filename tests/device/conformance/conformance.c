/* conformance STAGE.so [TEST]: a vendor's acceptance test (of a plug-in without a stage, what its
   table alone can tell). All that prof expects of a back end, told on the vendor's own queues: see
   stage.h. Each test is a process of its own. Prints a line a test; fails when one does. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <prof/device.h>
#include <prof/profiler.h>
#include <prof/trace.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../hang_guard.h"
#include "stage.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { HAS_SANITIZER = 1 }; /* a sanitizer's own memory grows with each address */
#else
enum { HAS_SANITIZER = 0 };
#endif

/* What a driver keeps to the end of the process is not ours to find. */
const char *__lsan_default_suppressions(void); /* NOLINT: the name is the sanitizer's */
const char *__lsan_default_suppressions(void) {
  return "leak:libpocl\nleak:libOpenCL\nleak:libLLVM\nleak:libclang\nleak:libhwloc\n";
}

static const conformance_stage *stage;

/* ---- the table, called by hand ---- */

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
static void no_log(const char *text) { (void)text; }
static const char *no_option(const char *key) {
  (void)key;
  return NULL;
}
static const prof_backend_host host = {.size = sizeof host,
                                       .major = 0,
                                       .minor = 1,
                                       .now_ns = now_ns,
                                       .log = no_log,
                                       .option = no_option};

static prof_backend_self *opened(void) {
  prof_backend_self *self = NULL;
  assert_int_equal(stage->table->probe(&host), PROF_BACKEND_OK);
  assert_int_equal(stage->table->open(&host, &self), PROF_BACKEND_OK);
  assert_non_null(self);
  return self;
}

static int wait_for(prof_backend_self *self, void *event) {
  int result = PROF_BACKEND_NOT_READY;
  WAIT_WHILE((result = stage->table->event_query(self, event)) == PROF_BACKEND_NOT_READY);
  return result;
}

static int64_t ns_between(prof_backend_self *self, void *a, void *b) {
  uint64_t a_ns = 0, b_ns = 0;
  int64_t between = INT64_MIN;
  if (stage->table->event_time) {
    assert_int_equal(stage->table->event_time(self, a, &a_ns), PROF_BACKEND_OK);
    assert_int_equal(stage->table->event_time(self, b, &b_ns), PROF_BACKEND_OK);
    return (int64_t)(b_ns - a_ns);
  }
  assert_int_equal(stage->table->event_elapsed(self, a, b, &between), PROF_BACKEND_OK);
  return between;
}

/* Silence is part of it: what comes on stderr meanwhile fails. */
static void a_probe_is_silent(void) {
  int ends[2];
  char text[256];
  fflush(NULL);
  assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
  const int kept = dup(2), kept_out = dup(1);
  dup2(ends[1], 2);
  dup2(ends[1], 1);
  const int first = stage->table->probe(&host), second = stage->table->probe(&host);
  dup2(kept, 2);
  dup2(kept_out, 1);
  assert_int_equal(first, second);
  assert_int_equal(first, PROF_BACKEND_OK);
  const ssize_t said = read(ends[0], text, sizeof text);
  if (said > 0) fail_msg("it said: %.*s", (int)said, text);
}

static void a_table_has_what_is_needed(void) {
  const prof_backend *const t = stage->table;
  assert_true(t->size >= offsetof(prof_backend, event_elapsed) + sizeof t->event_elapsed);
  assert_int_equal(t->major, PROF_BACKEND_MAJOR);
  assert_in_range(strlen(t->name), 1, 31);
  assert_int_equal(t->device_type, stage->device.type);
  assert_true(t->probe && t->open && t->event_create && t->event_record && t->event_query &&
              t->event_destroy && (t->event_time || t->event_elapsed));
  if (t->size < sizeof *t) return; /* an older one's last members are not there */
  assert_int_equal(!t->start, !t->drain);
  assert_int_equal(!t->metric, !t->sample);
  assert_true(!t->own_keep == !t->own_times && !t->own_times == !t->own_let_go);
}

static void events_are_past_in_order(void) {
  enum { COUNT = 20, WORK_US = 2000 };
  prof_backend_self *const self = opened();
  const uint64_t stream = stage->stream_create();
  void *events[COUNT + 1];
  bool was_waiting = false;
  for (int i = 0; i <= COUNT; i++) {
    assert_int_equal(stage->table->event_create(self, stream, &events[i]), PROF_BACKEND_OK);
    assert_int_equal(stage->table->event_record(self, stream, &events[i]), PROF_BACKEND_OK);
    /* once: a thread that has no processor for a while finds all past */
    was_waiting |= stage->table->event_query(self, events[i]) == PROF_BACKEND_NOT_READY;
    if (i < COUNT) stage->work(stream, WORK_US);
  }
  stage->wait(stream);
  for (int i = 0; i <= COUNT; i++) assert_int_equal(wait_for(self, events[i]), PROF_BACKEND_OK);
  for (int i = 0; i < COUNT; i++) {
    const int64_t between = ns_between(self, events[i], events[i + 1]);
    if (between < WORK_US * 1000 - 1000 || between > INT64_C(10000000000))
      fail_msg("work of %d us took %ld ns by its events", WORK_US, (long)between);
  }
  for (int i = 0; i <= COUNT; i++) stage->table->event_destroy(self, events[i]);
  stage->stream_destroy(stream);
  /* a call that waits for the device would have seen it past */
  assert_true(was_waiting || stage->is_synchronous);
}

static void an_event_is_used_again(void) {
  prof_backend_self *const self = opened();
  const uint64_t stream = stage->stream_create();
  void *event, *first;
  int64_t last = -1;
  assert_int_equal(stage->table->event_create(self, stream, &event), PROF_BACKEND_OK);
  assert_int_equal(stage->table->event_create(self, stream, &first), PROF_BACKEND_OK);
  assert_int_equal(stage->table->event_record(self, stream, &first), PROF_BACKEND_OK);
  for (int i = 0; i < 1000; i++) {
    assert_int_equal(stage->table->event_record(self, stream, &event), PROF_BACKEND_OK);
    stage->wait(stream);
    assert_int_equal(wait_for(self, event), PROF_BACKEND_OK);
    if (i == 0) assert_int_equal(wait_for(self, first), PROF_BACKEND_OK);
    const int64_t since = ns_between(self, first, event);
    if (since < last)
      fail_msg("use %d: %ld ns after the first, the one before %ld", i, (long)since, (long)last);
    last = since;
  }
  stage->table->event_destroy(self, event);
  stage->table->event_destroy(self, first);
  stage->stream_destroy(stream);
}

/* An event that is recorded between two readings has a time between them. */
static void the_clock_is_the_events(void) {
  prof_backend_pair before = {.size = sizeof before}, after = {.size = sizeof after};
  /* it has none: prof does without */
  if (!stage->table->clock || !stage->table->event_time) return;
  prof_backend_self *const self = opened();
  const uint64_t stream = stage->stream_create();
  uint64_t ns;
  void *event;
  int result = PROF_BACKEND_UNSUPPORTED;
  assert_int_equal(stage->table->event_create(self, stream, &event), PROF_BACKEND_OK);
  for (int i = 0; i < 100; i++) {
    /* until an event was past it may not be known */
    result = stage->table->clock(self, (uint32_t)stage->device.index, &before);
    assert_int_equal(stage->table->event_record(self, stream, &event), PROF_BACKEND_OK);
    stage->wait(stream);
    assert_int_equal(wait_for(self, event), PROF_BACKEND_OK);
    assert_int_equal(stage->table->event_time(self, event, &ns), PROF_BACKEND_OK);
    if (result != PROF_BACKEND_OK ||
        stage->table->clock(self, (uint32_t)stage->device.index, &after) != PROF_BACKEND_OK)
      continue;
    assert_true(before.host_before_ns <= before.host_after_ns &&
                before.host_after_ns <= after.host_before_ns);
    if (ns + 2000 < before.device_ns || ns > after.device_ns + 2000)
      fail_msg("an event at %lu ns, between readings at %lu and %lu", (unsigned long)ns,
               (unsigned long)before.device_ns, (unsigned long)after.device_ns);
  }
  stage->table->event_destroy(self, event);
  stage->stream_destroy(stream);
  if (result != PROF_BACKEND_OK) print_message("its clock cannot be read here: %d\n", result);
}

static void what_is_no_stream_is_refused(void) {
  prof_backend_self *const self = opened();
  void *event = NULL;
  uint32_t device, is_capturing;
  if (stage->table->stream_of)
    assert_int_equal(stage->table->stream_of(self, stage->no_stream, &device, &is_capturing),
                     PROF_BACKEND_INVALID);
  if (stage->table->event_create(self, 0, &event) != PROF_BACKEND_OK) return;
  assert_true(stage->table->event_record(self, stage->no_stream, &event) < 0);
  stage->table->event_destroy(self, event);
}

static void devices_are_told_up_to_the_last(void) {
  if (!stage->table->device) return;
  prof_backend_self *const self = opened();
  uint32_t count = 0;
  for (prof_backend_device about; count < 1024; count++) {
    memset(&about, 0x55, sizeof about);
    about.size = sizeof about;
    const int result = stage->table->device(self, count, &about);
    if (result == PROF_BACKEND_NO_DEVICE) break;
    assert_int_equal(result, PROF_BACKEND_OK);
    assert_true(about.size == sizeof about && about.name[0] &&
                memchr(about.name, '\0', sizeof about.name));
  }
  assert_in_range(count, (uint32_t)stage->device.index + 1, 1023);
}

enum { CANNOT = 78 }; /* a test's exit: the vendor has not what it needs */

/* ---- scopes ---- */

static prof_trace_info info;
static prof_trace_device about;

static void look(void) {
  prof_trace *trace = NULL;
  info = (prof_trace_info){.size = sizeof info};
  about = (prof_trace_device){.size = sizeof about};
  assert_int_equal(prof_get(&trace), PROF_OK);
  assert_int_equal(prof_trace_info_get(trace, &info), PROF_OK);
  for (uint32_t i = 0; i < info.device_count; i++) {
    prof_trace_device one = {.size = sizeof one};
    assert_int_equal(prof_trace_device_get(trace, i, &one), PROF_OK);
    if (one.device.type == stage->device.type) about = one;
  }
  prof_trace_destroy(trace);
}

static uint64_t lost_sides(void) {
  return info.lost_count[PROF_LOSS_LATE] /* read just when recording stopped */ +
         info.lost_count[PROF_LOSS_DEVICE_FULL] + info.lost_count[PROF_LOSS_DEVICE_LATE] +
         info.lost_count[PROF_LOSS_DEVICE_TIMES];
}

static void settle(uint64_t count) {
  unsigned naps = 0;
  do {
    look();
    if (about.scope_count + lost_sides() >= count) return;
  } while (hang_nap(&naps));
  fail_msg("of %lu scopes %lu came, and %lu were counted as lost", (unsigned long)count,
           (unsigned long)about.scope_count, (unsigned long)lost_sides());
}

/* Scopes alone, also where there is more to be had. */
static void begin(const prof_backend *table) {
  const prof_options options = {.size = sizeof options, .level = 1, .devices = PROF_DEVICES_SCOPES};
  if (table) assert_int_equal(prof_backend_add(table), PROF_OK);
  assert_int_equal(prof_start_with(&options), PROF_OK);
}

static void launch(uint64_t stream, int count, uint64_t least_us) {
  for (int i = 0; i < count; i++)
    WITH_GPU_PROFILER(stage->device, stream, "work", "conformance", PROF_NO_ARGS,
                      { stage->work(stream, least_us); });
}

/* What a time of the device may be wrong by, as the trace says; most_ns at most. */
static uint64_t time_error_ns(const prof_trace *trace, uint64_t most_ns) {
  prof_trace_info told = {.size = sizeof told};
  uint64_t error_ns = 0;
  assert_int_equal(prof_trace_info_get(trace, &told), PROF_OK);
  for (uint32_t i = 0; i < told.device_count; i++) {
    prof_trace_device device = {.size = sizeof device};
    assert_int_equal(prof_trace_device_get(trace, i, &device), PROF_OK);
    if (device.clock_error_ns > error_ns) error_ns = device.clock_error_ns;
  }
  error_ns += told.clock_error_ns;
  return error_ns < most_ns ? error_ns : most_ns;
}

static void each_scope_has_its_times(void) {
  enum { COUNT = 50, WORK_US = 1000 };
  begin(stage->table);
  const uint64_t stream = stage->stream_create();
  launch(stream, COUNT, WORK_US);
  stage->wait(stream);
  settle(COUNT);
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(about.scope_count, COUNT);
  assert_int_equal(lost_sides() + about.clock_step_count, 0);
  prof_trace *trace = NULL;
  prof_cursor *cursor = NULL;
  static prof_event event;
  uint64_t met = 0, last_ns = 0;
  assert_int_equal(prof_get(&trace), PROF_OK);
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  const uint64_t error_ns = time_error_ns(trace, WORK_US * 1000 / 4);
  while (prof_cursor_next(cursor, &event) == 1) {
    if (!(event.flags & PROF_EVENT_ON_DEVICE)) continue;
    assert_in_range(met, 0, COUNT - 1);
    const uint64_t worked_ns =
        stage->worked_ns ? stage->worked_ns((int)met) : (uint64_t)WORK_US * 1000;
    met++;
    const uint64_t took_ns = event.launch.device_end_ns - event.launch.device_start_ns;
    if (took_ns + 2 * error_ns + 1000 < worked_ns)
      fail_msg("work of %lu ns took %lu ns, with an error of %lu ns at each end",
               (unsigned long)worked_ns, (unsigned long)took_ns, (unsigned long)error_ns);
    assert_true(event.start_ns >= event.launch.start_ns && event.start_ns >= last_ns);
    last_ns = event.start_ns + event.duration_ns;
  }
  prof_cursor_destroy(cursor);
  prof_trace_destroy(trace);
  assert_int_equal(met, COUNT);
  stage->stream_destroy(stream);
}

/* ---- what its own tracing records ---- */

/* Of the back end that serves the stage's devices; result VENDOR: none does. */
static prof_backend_state serving(void) {
  prof_backend_state state = {.size = sizeof state};
  for (uint32_t i = 0; prof_backend_status(i, &state) == PROF_OK; i++)
    if (state.device_type == stage->device.type && (state.abilities & PROF_CAN_RECORDS))
      return state;
  return (prof_backend_state){.result = PROF_BACKEND_VENDOR};
}
static bool can_record(void) { return serving().result == PROF_BACKEND_OK; }
static bool is_open(void) { return serving().is_open != 0; }

static uint64_t begin_records(void) {
  const prof_options options = {
      .size = sizeof options, .level = 1, .devices = PROF_DEVICES_RECORDS};
  if (stage->table) assert_int_equal(prof_backend_add(stage->table), PROF_OK);
  if (!can_record()) exit(CANNOT);
  /* before the program begins: some vendors must know by then */
  assert_int_equal(prof_start_with(&options), PROF_OK);
  const uint64_t stream = stage->stream_create();
  WAIT_WHILE(!is_open()); /* its library was not in use until now */
  /* a round of the collector's: it has been asked to record */
  look();
  return stream;
}

static void settle_records(uint64_t count) {
  for (unsigned naps = 0; about.record_count + lost_sides() < count && hang_nap(&naps);) look();
  if (about.record_count + lost_sides() < count)
    fail_msg("of %lu records %lu came, and %lu were counted as lost", (unsigned long)count,
             (unsigned long)about.record_count, (unsigned long)lost_sides());
}

/* Each piece of work once, where it was launched, not before that, as long as it was; in order, for
   a stream is. */
static void records_have_their_times_and_their_launch(void) {
  enum { COUNT = 50, WORK_US = 1000 };
  const uint64_t stream = begin_records();
  for (int i = 0; i < COUNT; i++)
    WITH_BASE_PROFILER(PROF_HOST, "work", "conformance", PROF_NO_ARGS,
                       { stage->work(stream, WORK_US); });
  stage->wait(stream);
  settle_records(COUNT);
  assert_int_equal(prof_stop(), PROF_OK);
  look();
  assert_int_equal(about.record_count, COUNT);
  assert_int_equal(lost_sides() + about.clock_step_count, 0);
  prof_trace *trace = NULL;
  prof_cursor *cursor = NULL;
  prof_rows *rows = NULL;
  static prof_event event;
  uint64_t met = 0, last_ns = 0, row = 0;
  assert_int_equal(prof_get(&trace), PROF_OK);
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  while (prof_cursor_next(cursor, &event) == 1) {
    if (!(event.flags & PROF_EVENT_ON_DEVICE)) continue;
    /* the handle, or the vendor's own number of it where no scope was there: one row in any case */
    if (met++ == 0) row = event.stream;
    assert_int_equal(event.launch.record, PROF_BACKEND_KERNEL);
    assert_int_equal(event.stream, row);
    if (event.launch.device_end_ns - event.launch.device_start_ns < WORK_US * 1000 - 1000)
      fail_msg("work of %d us took %lu ns", WORK_US,
               (unsigned long)(event.launch.device_end_ns - event.launch.device_start_ns));
    assert_true(event.start_ns >= event.launch.start_ns && event.start_ns >= last_ns);
    last_ns = event.start_ns + event.duration_ns;
  }
  assert_int_equal(met, COUNT);
  assert_int_equal(prof_trace_aggregate(trace, NULL, &rows), PROF_OK);
  assert_int_equal(rows->all_row_count, 1); /* all of it in the scope that launched it */
  assert_int_equal(rows->rows[0].device_count, COUNT);
  prof_rows_destroy(rows);
  prof_cursor_destroy(cursor);
  prof_trace_destroy(trace);
  stage->stream_destroy(stream);
}

/* While others start and stop: what came adds up to what was lost, and no recording has another
   one's. */
static void records_while_recording_starts_and_stops(void) {
  enum { ROUNDS = 100, EACH = 5 };
  const uint64_t stream = begin_records();
  uint64_t come = 0, last = 0;
  for (int i = 0; i < ROUNDS; i++) {
    for (int k = 0; k < EACH; k++) stage->work(stream, 10);
    if (i % 2 == 0) stage->wait(stream);
    assert_int_equal(prof_stop(), PROF_OK);
    look();
    come = about.record_count;
    assert_in_range(come - last, 0, 2 * EACH);
    last = come;
    assert_int_equal(prof_start(1), PROF_OK);
  }
  assert_int_equal(prof_stop(), PROF_OK);
  assert_in_range(come, 1, ROUNDS * EACH);
  stage->wait(stream);
  stage->stream_destroy(stream);
}

/* An older prof's table ends sooner, a newer one's later: the same must come of both. */
static void short_and_long_tables_work(void) {
  static struct {
    prof_backend table;
    unsigned char more[256];
  } cut, longer;
  cut.table = longer.table = *stage->table;
  memset(&cut.table.close, 0x55, sizeof cut - offsetof(prof_backend, close));
  cut.table.size = offsetof(prof_backend, close);
  cut.table.name = "cut";
  memset(longer.more, 0, sizeof longer.more);
  longer.table.size = sizeof longer;
  assert_int_equal(prof_backend_add(&longer.table), PROF_OK);
  begin(&cut.table);
  const uint64_t stream = stage->stream_create();
  launch(stream, 10, 100);
  stage->wait(stream);
  settle(10);
  assert_int_equal(about.scope_count, 10);
  stage->stream_destroy(stream);
}

static void alone_with_a_short_table(void) {
  static prof_backend cut;
  cut = *stage->table;
  memset(&cut.close, 0x55, sizeof cut - offsetof(prof_backend, close));
  cut.size = offsetof(prof_backend, close);
  cut.name = "cut"; /* one that comes with prof has its name already */
  begin(&cut);
  const uint64_t stream = stage->stream_create();
  launch(stream, 10, 100);
  stage->wait(stream);
  settle(10);
  assert_int_equal(about.scope_count, 10);
  if (strcmp(about.back_end, cut.name) == 0)
    assert_int_equal(about.is_clock_read, 0);
  else
    print_message("%s comes with prof, and serves its devices: the short table was not asked\n",
                  about.back_end);
  stage->stream_destroy(stream);
}

static void starts_and_stops(void) {
  enum { TIMES = 1000 };
  begin(stage->table);
  const uint64_t stream = stage->stream_create();
  assert_int_equal(prof_stop(), PROF_OK);
  for (int i = 0; i < TIMES; i++) {
    assert_int_equal(prof_start(1), PROF_OK);
    launch(stream, 1, 0);
    if (i % 2) stage->wait(stream);
    assert_int_equal(prof_stop(), PROF_OK);
  }
  stage->wait(stream);
  /* a collector that got no processor at the last stop is done a little later */
  WAIT_WHILE((look(), about.scope_count + lost_sides() < TIMES));
  assert_int_equal(about.scope_count + lost_sides(), TIMES);
  stage->stream_destroy(stream);
}

enum { THREADS = 8, EACH = 200 };
static uint64_t streams[4];

static void *work(void *number) {
  const uint64_t stream = streams[*(int *)number % 4];
  for (int i = 0; i < EACH; i++) {
    launch(stream, 1, 0);
    if (i % 50 == 0) stage->wait(stream);
  }
  return NULL;
}

static void four_streams_from_eight_threads(void) {
  pthread_t threads[THREADS];
  int numbers[THREADS];
  begin(stage->table);
  for (int i = 0; i < 4; i++) streams[i] = stage->stream_create();
  launch(streams[0], 1, 0); /* the back end is open, and the collector there */
  stage->wait(streams[0]);
  settle(1);
  for (int i = 0; i < THREADS; i++) {
    numbers[i] = i;
    assert_int_equal(pthread_create(&threads[i], NULL, work, &numbers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < 4; i++) stage->wait(streams[i]);
  settle(1 + THREADS * EACH);
  assert_int_equal(about.scope_count, 1 + THREADS * EACH);
  assert_int_equal(lost_sides(), 0);
  for (int i = 0; i < 4; i++) stage->stream_destroy(streams[i]);
}

static uint64_t resident_kb(void) {
  unsigned long pages = 0;
  FILE *const file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%*s %lu", &pages) != 1) fail_msg("/proc/self/statm cannot be read");
  fclose(file);
  return pages * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
}

static void many_scopes(uint64_t stream, int count) {
  for (int i = 0; i < count; i += 100) {
    launch(stream, 100, 0);
    stage->wait(stream);
  }
}

/* In a ring, so that what is recorded does not count. What is kept for good grows with each lot of
   scopes; what a driver keeps while the collector has no processor grows with one. */
static void a_hundred_thousand_scopes_take_no_more_memory(void) {
  enum { COUNT = 50000, LOTS = 5, SLACK_KB = 4096 };
  const prof_options ring = {
      .size = sizeof ring, .level = 1, .cap_bytes = 4 << 20, .policy = PROF_POLICY_RING};
  if (stage->table) assert_int_equal(prof_backend_add(stage->table), PROF_OK);
  assert_int_equal(prof_start_with(&ring), PROF_OK);
  const uint64_t stream = stage->stream_create();
  uint64_t before = 0, after = 0, lots = 0;
  while (lots < LOTS && (lots < 2 || after > before + SLACK_KB)) {
    before = after;
    many_scopes(stream, COUNT);
    settle(++lots * COUNT);
    after = resident_kb();
  }
  assert_int_equal(prof_stop(), PROF_OK);
  if (!HAS_SANITIZER && after > before + SLACK_KB)
    fail_msg("resident memory grew with each of %d lots of scopes, last from %lu to %lu KiB", LOTS,
             (unsigned long)before, (unsigned long)after);
  stage->stream_destroy(stream);
}

/* ---- forks, ends ---- */

static void a_forked_child_is_left_alone(void) {
  begin(stage->table);
  const uint64_t stream = stage->stream_create();
  launch(stream, 10, 0);
  stage->wait(stream);
  settle(10);
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    hang_guard();
    for (int i = 0; i < 10; i++)
      WITH_GPU_PROFILER(stage->device, stream, "work", "conformance", PROF_NO_ARGS, {});
    look();
    _exit(info.scope_count == 10 && lost_sides() == 0 && about.scope_count == 0 &&
                  prof_stop() == PROF_OK
              ? 0
              : 1);
  }
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  launch(stream, 10, 0);
  stage->wait(stream);
  settle(20);
  assert_int_equal(about.scope_count, 20);
  stage->stream_destroy(stream);
}

static void *launch_and_end(void *stream) {
  launch(*(uint64_t *)stream, 50, 0);
  return NULL;
}

static void a_thread_ends_with_work_on_its_way(void) {
  begin(stage->table);
  uint64_t stream = stage->stream_create();
  for (int i = 0; i < 20; i++) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, launch_and_end, &stream), 0);
    pthread_join(thread, NULL);
  }
  stage->wait(stream);
  settle(1000);
  assert_int_equal(about.scope_count, 1000);
  stage->stream_destroy(stream);
}

static void a_stream_goes_while_its_events_are_on_their_way(void) {
  begin(stage->table);
  for (int i = 0; i < 100; i++) {
    const uint64_t stream = stage->stream_create();
    launch(stream, 10, 0);
    stage->stream_destroy(stream);
  }
  settle(1000);
  assert_int_equal(about.scope_count + lost_sides(), 1000);
}

/* Ends in exit() with work on its way: run_alone() looks at how. */
static void an_exit_with_work_in_flight(void) {
  begin(stage->table);
  const uint64_t stream = stage->stream_create();
  launch(stream, 100, 0);
  stage->work(stream, 300000);
  launch(stream, 100, 0);
  exit(0);
}

static void an_exit_without_a_stop(void) {
  begin(stage->table);
  const uint64_t stream = stage->stream_create();
  launch(stream, 100, 0);
  stage->wait(stream);
  stage->stream_destroy(stream);
  exit(0);
}

/* ---- the program ---- */

/* X(name, what it needs): TABLE: the vendor's table; STREAMS: queues. */
#define TESTS(X)                                              \
  X(a_table_has_what_is_needed, TABLE)                        \
  X(a_probe_is_silent, TABLE)                                 \
  X(devices_are_told_up_to_the_last, TABLE)                   \
  X(what_is_no_stream_is_refused, TABLE)                      \
  X(events_are_past_in_order, BOTH)                           \
  X(an_event_is_used_again, BOTH)                             \
  X(the_clock_is_the_events, BOTH)                            \
  X(alone_with_a_short_table, BOTH)                           \
  X(short_and_long_tables_work, BOTH)                         \
  X(each_scope_has_its_times, STREAMS)                        \
  X(starts_and_stops, STREAMS)                                \
  X(four_streams_from_eight_threads, STREAMS)                 \
  X(a_hundred_thousand_scopes_take_no_more_memory, STREAMS)   \
  X(a_forked_child_is_left_alone, STREAMS)                    \
  X(a_thread_ends_with_work_on_its_way, STREAMS)              \
  X(a_stream_goes_while_its_events_are_on_their_way, STREAMS) \
  X(an_exit_with_work_in_flight, STREAMS)                     \
  X(an_exit_without_a_stop, STREAMS)                          \
  X(records_have_their_times_and_their_launch, STREAMS)       \
  X(records_while_recording_starts_and_stops, STREAMS)
enum { TABLE = 1, STREAMS = 2, BOTH = 3 };

static const char *program, *stage_path;

static void skip_for(const char *name, const char *why) {
  printf("skip: %s: %s: %s\n", stage->name, name, why);
  skip();
}

static void run_alone(const char *name, int needs) {
  if ((needs & TABLE) && !stage->table) skip_for(name, "the stage has no table of its own to call");
  if ((needs & STREAMS) && !stage->stream_create) skip_for(name, "the stage has no streams");
  int status = -1;
  const pid_t child = fork();
  if (child == 0) {
    hang_guard();
    execl(program, program, stage_path, name, (char *)NULL);
    _exit(127);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT)
    skip_for(name, "the back end records nothing by itself");
  if (status != 0) fail_msg("%s: status 0x%x", name, (unsigned)status);
}

#define ALONE(name, needs)                 \
  static void alone_##name(void **state) { \
    (void)state;                           \
    run_alone(#name, needs);               \
  }
TESTS(ALONE)
#define WRAPPED(name, needs)                 \
  static void wrapped_##name(void **state) { \
    (void)state;                             \
    name();                                  \
  }
TESTS(WRAPPED)

/* A plug-in as prof loads it: its table, and no queues. */
static conformance_stage of_plugin;

static const char *why_not_here(void) {
  static char why[320];
  const prof_backend *const table = of_plugin.table;
  const int result = table->probe ? table->probe(&host) : PROF_BACKEND_OK;
  if (result == PROF_BACKEND_OK) return NULL;
  snprintf(why, sizeof why, "%s: %s", prof_backend_result_text(result),
           table->last_error ? table->last_error(NULL) : "");
  return why;
}

static const conformance_stage *make_stage(prof_backend_entry_function entry) {
  const prof_backend *const table = entry(PROF_BACKEND_MAJOR, PROF_BACKEND_MINOR);
  if (!table) {
    fprintf(stderr, "conformance: its prof_backend_entry() gives no table of version %u\n",
            PROF_BACKEND_MAJOR);
    return NULL;
  }
  of_plugin = (conformance_stage){.name = table->name,
                                  .table = table,
                                  .device = {table->device_type, 0},
                                  .why_not = why_not_here};
  printf("%s is a back end without a stage: what needs queues is left out; see stage.h\n",
         table->name);
  return &of_plugin;
}

static const conformance_stage *load(const char *path) {
  void *const library = dlopen(path, RTLD_NOW);
  const conformance_stage *(*get)(void) = NULL;
  prof_backend_entry_function entry = NULL;
  void *const symbol = library ? dlsym(library, "conformance_stage_get") : NULL,
              *const plain = library ? dlsym(library, "prof_backend_entry") : NULL;
  if (symbol) memcpy(&get, &symbol, sizeof get);
  if (plain) memcpy(&entry, &plain, sizeof entry);
  if (get) return get();
  if (entry) return make_stage(entry);
  if (library)
    fprintf(stderr,
            "conformance: %s has neither conformance_stage_get() nor prof_backend_entry()\n", path);
  else
    fprintf(stderr, "conformance: %s\n", dlerror());
  return NULL;
}

int main(int argc, char **argv) {
  if (argc < 2) {
    fprintf(
        stderr,
        "usage: conformance STAGE.so|PLUG-IN.so [TEST]    see tests/device/conformance/stage.h\n");
    return 2;
  }
  program = argv[0];
  stage_path = argv[1];
  if (!(stage = load(stage_path))) return 2;
  const char *const why_not = stage->why_not ? stage->why_not() : NULL;
  if (why_not) {
    printf("skip: %s: %s\n", stage->name, why_not);
    return 77;
  }
#define ONE(name, needs)                                                \
  if (argc == 3 && strcmp(argv[2], #name) == 0) {                       \
    const struct CMUnitTest one[] = {cmocka_unit_test(wrapped_##name)}; \
    return cmocka_run_group_tests_name(#name, one, NULL, NULL);         \
  }
  TESTS(ONE)
#define ENTRY(name, needs) cmocka_unit_test(alone_##name),
  const struct CMUnitTest tests[] = {TESTS(ENTRY)};
  return cmocka_run_group_tests_name(stage->name, tests, NULL, NULL);
}
