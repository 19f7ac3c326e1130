/* What throttles a device while an operator is measured on it: on the emulated vendor's meters, and
   on an emulated NVML (vendors: no device is behind them). A result is doubted if its device was
   throttled, and only then. Meters that fail, hang or are not open harm nothing. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <prof/device.h>
#include <prof/op.h>
#include <prof/sampler.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "alone.h"
#include "cuda_program.h"
#include "emulated/emulated.h"
#include "hang_guard.h"
#include "sampled.h"
#include "told.h"
#include "vendors/nvml.h"

enum { SAMPLES = 7 };

static const prof_device device = {EMULATED_TYPE, 0}, cuda_device = {PROF_DEVICE_CUDA, 0};
static emulated_nvml *nvml;
static int runs;

static void begin(void) {}

/* ---- an operator that takes 5 ms by its timer's word: samples say nothing of their own ---- */

static int timer_begin(void *user) {
  (void)user;
  return 0;
}

static int timer_end(void *user, double *us_out) {
  (void)user;
  *us_out = 5000;
  return 0;
}

static const prof_op_timer scripted = {sizeof scripted, "scripted", NULL, timer_begin,
                                       timer_end,       NULL,       NULL};

/* Longer than it is between two looks: each sample has one before it. */
static int run(void *user) {
  const struct timespec ms = {0, 21000000};
  void (*const at)(int number) = user ? *(void (**)(int number))user : NULL;
  runs++;
  if (at) at(runs);
  nanosleep(&ms, NULL);
  return 0;
}

static const prof_op_options each_run = {.size = sizeof each_run,
                                         .warmup = 1,
                                         .exec = 1,
                                         .repeat = SAMPLES,
                                         .repeat_all = 1,
                                         .time_limit_ns = UINT64_MAX,
                                         .timer = &scripted,
                                         .no_reuse = 1};

static prof_op_result *profile_with(const prof_op_options *options, prof_device on,
                                    void (*at)(int number)) {
  prof_op_result *result = NULL;
  const prof_op op = {
      .size = sizeof op, .key = "on a device", .user = at ? &at : NULL, .run = run, .device = on};
  runs = 0;
  if (prof_op_profile(&op, options, &result) != PROF_OK) fail_msg("%s", prof_last_error());
  return result;
}

static prof_op_info info_of(const prof_op_result *result) {
  prof_op_info info = {.size = sizeof info};
  assert_int_equal(prof_op_info_get(result, &info), PROF_OK);
  return info;
}

static prof_op_info measure_with(const prof_op_options *options, prof_device on,
                                 void (*at)(int number)) {
  prof_op_result *const result = profile_with(options, on, at);
  const prof_op_info info = info_of(result);
  assert_int_equal(info.sample_count, SAMPLES);
  prof_op_result_destroy(result);
  return info;
}

static prof_op_info measure(prof_device on, void (*at)(int number)) {
  return measure_with(&each_run, on, at);
}

static bool is_doubted(const prof_op_info *info) {
  return (info->doubts & PROF_OP_DEVICE_THROTTLED) != 0;
}

/* Its back end is open, as by a timer of a stream. */
static emulated_stream *open_emulated(void) {
  emulated_stream *const stream = emulated_create(0);
  const prof_op_stream place = {
      .size = sizeof place, .device = device, .stream = (uint64_t)(uintptr_t)stream};
  prof_op_timer *timer = NULL;
  emulated_meter.has_reasons = 1;
  assert_int_equal(prof_backend_add(&emulated_backend), PROF_OK);
  if (prof_op_timer_create(&place, &timer) != PROF_OK) fail_msg("%s", prof_last_error());
  emulated_wait(stream);
  prof_op_timer_destroy(timer);
  return stream;
}

static void set(int64_t *what, int64_t value) { __atomic_store_n(what, value, __ATOMIC_RELAXED); }
static void raise_fault(uint32_t *what, uint32_t value) {
  __atomic_store_n(what, value, __ATOMIC_RELAXED);
}

/* ---- throttled, or not ---- */

static void a_device_at_its_clock_is_not_doubted(void **state) {
  (void)state;
  emulated_stream *const stream = open_emulated();
  /* idle; a clock that somebody set; the same as another's: none of its own */
  set(&emulated_meter.reasons[0], 1 | 2 | 16);
  set(&emulated_meter.reasons[1], 255);
  const prof_op_info info = measure(device, NULL);
  assert_false(is_doubted(&info));
  assert_int_equal(info.throttle, 0);
  assert_int_equal(info.looks, SAMPLES + 1); /* before each, and the last one behind them */
  assert_true(info.clock_low_hz == 1500e6 && info.clock_high_hz == 1500e6);
  emulated_destroy(stream);
}

/* Once, in the middle. */
static void for_a_while(int number) { set(&emulated_meter.reasons[0], number == 4 ? 4 | 64 : 0); }

static void power_or_heat_at_some_time_is_doubted(void **state) {
  (void)state;
  char text[512];
  emulated_stream *const stream = open_emulated();
  prof_op_result *const result = profile_with(&each_run, device, for_a_while);
  const prof_op_info info = info_of(result);
  assert_true(is_doubted(&info));
  assert_int_equal(info.throttle,
                   PROF_BACKEND_THROTTLE_POWER | PROF_BACKEND_THROTTLE_HARDWARE_HEAT);
  prof_op_text(result, text, sizeof text);
  if (!strstr(text, "the device was throttled by its power and heat")) fail_msg("'%s'", text);
  prof_op_result_destroy(result);
  set(&emulated_meter.reasons[0], 8);
  const prof_op_info hardware = measure(device, NULL);
  assert_true(is_doubted(&hardware));
  assert_int_equal(hardware.throttle, PROF_BACKEND_THROTTLE_HARDWARE);
  emulated_destroy(stream);
}

/* 3 % */
static void falls_a_little(int number) {
  set(&emulated_meter.clock_mhz[0], number > 4 ? 1920 : 1980);
}
static void falls_far(int number) { set(&emulated_meter.clock_mhz[0], number > 4 ? 1755 : 1980); }

static void a_clock_that_falls_by_more_than_5_percent_is_doubted(void **state) {
  (void)state;
  char text[512];
  emulated_stream *const stream = open_emulated();
  const prof_op_info little = measure(device, falls_a_little);
  assert_false(is_doubted(&little));
  assert_true(little.clock_low_hz == 1920e6 && little.clock_high_hz == 1980e6);
  prof_op_result *const result = profile_with(&each_run, device, falls_far);
  const prof_op_info info = info_of(result);
  assert_true(is_doubted(&info));
  assert_int_equal(info.throttle, 0);
  assert_true(info.clock_low_hz == 1755e6 && info.clock_high_hz == 1980e6);
  prof_op_text(result, text, sizeof text);
  if (!strstr(text, "the device was throttled (1755 to 1980 MHz)")) fail_msg("'%s'", text);
  prof_op_result_destroy(result);
  emulated_destroy(stream);
}

static void who_was_held_down_is_not_compared(void **state) {
  (void)state;
  emulated_stream *const stream = open_emulated();
  prof_op_comparison comparison = {.size = sizeof comparison};
  prof_op_result *const first = profile_with(&each_run, device, NULL);
  set(&emulated_meter.reasons[0], 4);
  prof_op_result *const second = profile_with(&each_run, device, NULL);
  assert_int_equal(prof_op_compare(first, second, 0, &comparison), PROF_OK);
  assert_int_equal(comparison.order, PROF_OP_UNCLEAR);
  assert_true(comparison.doubts & PROF_OP_DEVICE_THROTTLED);
  prof_op_result_destroy(first);
  prof_op_result_destroy(second);
  emulated_destroy(stream);
}

/* Of those measured in turn each has what came to its device. */
static void in_turn_each_device_has_its_own(void **state) {
  (void)state;
  const prof_op ops[] = {
      {.size = sizeof ops[0], .key = "a", .run = run, .device = device},
      {.size = sizeof ops[0], .key = "b", .run = run, .device = {EMULATED_TYPE, 1}},
      {.size = sizeof ops[0], .key = "c", .run = run, .device = device},
      {.size = sizeof ops[0], .key = "d", .run = run}};
  prof_op_result *results[4];
  emulated_stream *const stream = open_emulated();
  set(&emulated_meter.reasons[1], 32);
  assert_int_equal(prof_op_profile_in_turn(ops, 4, &each_run, results), PROF_OK);
  for (int i = 0; i < 4; i++) {
    const prof_op_info info = info_of(results[i]);
    assert_int_equal(info.throttle, i == 1 ? 32 : 0);
    assert_int_equal(is_doubted(&info), i == 1);
    assert_int_equal(info.looks > 0, i < 3);
    prof_op_result_destroy(results[i]);
  }
  emulated_destroy(stream);
}

/* ---- kept ---- */

static void open_cache(const char *path) {
  if (prof_op_cache_open(path) != PROF_OK) fail_msg("%s", prof_last_error());
}

static void a_kept_result_has_its_doubt(void **state) {
  (void)state;
  char folder[] = "/tmp/prof-throttle-XXXXXX", path[64];
  prof_op_options options = each_run;
  emulated_stream *const stream = open_emulated();
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/results", folder);
  if (prof_op_cache_open(path) == PROF_E_UNSUPPORTED) {
    rmdir(folder);
    puts("skip: no SQLite here");
    skip();
  }
  options.no_reuse = 0;
  const prof_op_info info = measure_with(&options, device, falls_far),
                     held = measure_with(&options, device, NULL);
  assert_int_equal(held.was_kept, 1);
  assert_true(is_doubted(&info) && is_doubted(&held));
  open_cache(NULL);
  prof_op_cache_reset(NULL);
  open_cache(path);
  const prof_op_info again = measure_with(&options, device, NULL);
  assert_int_equal(again.was_kept, 1);
  assert_int_equal(again.file_status, PROF_OK);
  assert_true(is_doubted(&again));
  assert_int_equal(again.looks, info.looks);
  assert_true(again.clock_low_hz == info.clock_low_hz &&
              again.clock_high_hz == info.clock_high_hz && info.clock_low_hz == 1755e6);
  open_cache(NULL);
  unlink(path);
  rmdir(folder);
  emulated_destroy(stream);
}

/* ---- meters that fail ---- */

static void a_meter_that_fails_harms_nothing(void **state) {
  (void)state;
  emulated_stream *const stream = open_emulated();
  set(&emulated_meter.reasons[0], 4);
  raise_fault(&emulated_meter.refuses, 1);
  prof_op_info info = measure(device, NULL);
  assert_false(is_doubted(&info));
  assert_int_equal(info.looks, 0);
  raise_fault(&emulated_meter.refuses, 0);
  raise_fault(&emulated_meter.unknown_device, 1);
  info = measure(device, NULL);
  assert_false(is_doubted(&info));
  assert_int_equal(info.looks, 0);
  raise_fault(&emulated_meter.unknown_device, 0);
  info = measure(device, NULL);
  assert_true(is_doubted(&info));
  emulated_destroy(stream);
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void hangs_from_then_on(int number) {
  if (number == 5) raise_fault(&emulated_meter.hangs, 1);
}

/* A second is waited for it, once; what was seen before stands, and all samples are there. */
static void a_meter_that_hangs_is_given_up(void **state) {
  (void)state;
  emulated_stream *const stream = open_emulated();
  set(&emulated_meter.reasons[0], 4);
  const uint64_t begun = now_ns();
  prof_op_info info = measure(device, hangs_from_then_on);
  assert_true(now_ns() - begun >= UINT64_C(1000000000));
  assert_true(is_doubted(&info));
  assert_in_range(info.looks, 1, 5);
  assert_int_equal(__atomic_load_n(&emulated_meter.is_hanging, __ATOMIC_RELAXED), 1);
  info = measure(device, NULL); /* another one waits for the first to come back */
  assert_int_equal(info.looks, 0);
  assert_false(is_doubted(&info));
  raise_fault(&emulated_meter.hangs, 0);
  info = measure(device, NULL);
  assert_true(info.looks > 0);
  emulated_destroy(stream);
}

/* The second that a hanging meter takes counts against no limit: a shorter limit has its samples
   all the same. */
static void the_wait_for_a_meter_is_not_the_operators_time(void **state) {
  (void)state;
  prof_op_options options = each_run;
  prof_op_result *result;
  emulated_stream *const stream = open_emulated();
  raise_fault(&emulated_meter.hangs, 1);
  options.time_limit_ns = 900000000;
  options.repeat_all = 0;
  options.repeat = 2;
  result = profile_with(&options, device, NULL);
  const prof_op_info info = info_of(result);
  assert_int_equal(info.sample_count, 2);
  assert_int_equal(info.looks, 0);
  prof_op_result_destroy(result);
  raise_fault(&emulated_meter.hangs, 0);
  emulated_destroy(stream);
}

static void who_has_none_costs_nothing(void **state) {
  (void)state;
  emulated_stream *const stream = open_emulated();
  const prof_op_info of_host = measure((prof_device){PROF_DEVICE_CPU, 0}, NULL);
  assert_int_equal(of_host.looks, 0);
  const prof_op_info of_nobody = measure((prof_device){PROF_DEVICE_ROCM, 0}, NULL);
  assert_int_equal(of_nobody.looks, 0);
  assert_int_equal(__atomic_load_n(&emulated_meter.samples, __ATOMIC_RELAXED), 0);
  emulated_destroy(stream);
}

/* A sampler and a measurement read them in turn. */
static void a_sampler_goes_on_beside_it(void **state) {
  (void)state;
  const prof_sampler_options options = {.size = sizeof options, .interval_ns = 1000000};
  prof_sampler_state now = {.size = sizeof now};
  emulated_stream *const stream = open_emulated();
  setenv("PROF_SYSFS_ROOT", "/nowhere", 1);
  assert_int_equal(prof_sampler_start(&options), PROF_OK);
  const prof_op_info info = measure(device, NULL);
  assert_int_equal(info.looks, SAMPLES + 1);
  for (unsigned naps = 0; now.sample_count <= 5 && hang_nap(&naps);)
    assert_int_equal(prof_sampler_get(&now), PROF_OK);
  stop_sampler();
  assert_true(now.sample_count > 5);
  emulated_destroy(stream);
}

/* ---- NVML ---- */

static void *open_vendors(const char *file) {
  char path[512];
  snprintf(path, sizeof path, "%s/vendors/%s", getenv("PROF_TEST_PLUGIN_DIR"), file);
  void *const library = dlopen(path, RTLD_NOW);
  if (!library) fail_msg("%s", dlerror());
  return library;
}

static void open_nvml(void) {
  emulated_nvml *(*state)(void);
  *(void **)&state = dlsym(open_vendors("libnvidia-ml.so.1"), "emulated_nvml_state");
  nvml = state();
}

/* CUDA's back end, as by a timer of a stream. */
static void open_cuda(void) {
  prof_op_timer *timer = NULL;
  begin_on(0);
  void *const stream = make_stream();
  const prof_op_stream place = {
      .size = sizeof place, .device = cuda_device, .stream = handle_of(stream)};
  if (prof_op_timer_create(&place, &timer) != PROF_OK) fail_msg("%s", prof_last_error());
  cu.cuStreamSynchronize(stream);
  prof_op_timer_destroy(timer);
}

/* CUDA's device 0 is NVML's 1: known by its UUID. The program has NVML loaded: nothing else need be
   asked for. */
static void nvmls_device_is_cudas(void **state) {
  (void)state;
  open_nvml();
  nvml->reasons[0] = 32;
  nvml->reasons[1] = 4;
  open_cuda();
  const prof_op_info info = measure(cuda_device, NULL);
  assert_true(is_doubted(&info));
  assert_int_equal(info.throttle, 4);
  assert_true(info.clock_high_hz == 1980e6);
  assert_int_equal(info.looks, SAMPLES + 1);
}

static void nvmls_device_is_cudas_also_where_a_sampler_was_first(void **state) {
  (void)state;
  open_nvml();
  nvml->reasons[0] = 32;
  nvml->reasons[1] = 4;
  assert_int_equal(prof_sampler_start(NULL), PROF_OK); /* before anybody knows CUDA's numbers */
  stop_sampler();
  open_cuda();
  const prof_op_info info = measure(cuda_device, NULL),
                     other = measure((prof_device){PROF_DEVICE_CUDA, 1}, NULL);
  assert_int_equal(info.throttle, 4);
  assert_int_equal(other.throttle, 32);
}

/* As a part of a device (MIG), which has a UUID of its own: nothing is said of it by another one's
   meters. */
static void a_device_that_nvml_does_not_know_is_not_anothers(void **state) {
  (void)state;
  open_nvml();
  nvml->device_count = 1; /* CUDA's device 1, which is NVML's 0 */
  nvml->reasons[0] = 4;
  assert_int_equal(prof_sampler_start(NULL), PROF_OK);
  stop_sampler();
  open_cuda();
  const prof_op_info info = measure(cuda_device, NULL);
  assert_int_equal(info.looks, 0);
  assert_false(is_doubted(&info));
}

/* prof queries once what it can read, for any number of measurements, and reads nothing else of
   it. */
static void nvml_is_read_between_samples_alone(void **state) {
  (void)state;
  open_nvml();
  open_cuda();
  nvml->reasons[1] = 1;
  measure(cuda_device, NULL);
  const uint32_t reads = __atomic_load_n(&nvml->reads, __ATOMIC_RELAXED);
  const prof_op_info info = measure(cuda_device, NULL);
  assert_false(is_doubted(&info));
  assert_int_equal(__atomic_load_n(&nvml->reads, __ATOMIC_RELAXED) - reads, 2 * info.looks);
  assert_int_equal(nvml->init_count, 1);
}

/* It stands where the linker finds it: see main(). */
static void nvml_is_not_opened_unasked(void **state) {
  (void)state;
  prof_op_options options = each_run;
  prof_op_result *result = NULL;
  open_cuda();
  prof_op_info info = measure(cuda_device, NULL);
  assert_int_equal(info.looks, 0);
  assert_null(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_NOLOAD));
  options.open_meters = 1;
  info = measure_with(&options, cuda_device, NULL);
  assert_int_equal(info.looks, SAMPLES + 1);
  assert_int_equal(info.throttle, 4);
  assert_non_null(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_NOLOAD));
  options.open_meters = 2;
  const prof_op op = {.size = sizeof op, .key = "refused", .run = run, .device = cuda_device};
  assert_int_equal(prof_op_profile(&op, &options, &result), PROF_E_INVALID);
}

#define TESTS(X)                                          \
  X(a_device_at_its_clock_is_not_doubted)                 \
  X(power_or_heat_at_some_time_is_doubted)                \
  X(a_clock_that_falls_by_more_than_5_percent_is_doubted) \
  X(who_was_held_down_is_not_compared)                    \
  X(in_turn_each_device_has_its_own)                      \
  X(a_kept_result_has_its_doubt)                          \
  X(a_meter_that_fails_harms_nothing)                     \
  X(a_meter_that_hangs_is_given_up)                       \
  X(the_wait_for_a_meter_is_not_the_operators_time)       \
  X(who_has_none_costs_nothing)                           \
  X(a_sampler_goes_on_beside_it)                          \
  X(nvmls_device_is_cudas)                                \
  X(nvmls_device_is_cudas_also_where_a_sampler_was_first) \
  X(a_device_that_nvml_does_not_know_is_not_anothers)     \
  X(nvml_is_read_between_samples_alone)                   \
  X(nvml_is_not_opened_unasked)
ALONE_TESTS

/* The linker reads its path once, when a program begins. */
int main(int argc, char **argv) {
  char path[512];
  snprintf(path, sizeof path, "%s/vendors", getenv("PROF_TEST_PLUGIN_DIR"));
  const char *const now = getenv("LD_LIBRARY_PATH");
  if (now && strcmp(now, path) == 0) return alone_main(argc, argv);
  setenv("LD_LIBRARY_PATH", path, 1);
  execv("/proc/self/exe", argv);
  return 1;
}
