/* An operator's workspace by what CUDA hands out, on an emulated driver and an emulated CUPTI
   (vendors: no device is behind them). To the byte: what counts and what does not, and where it
   cannot be known. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <prof/device.h>
#include <prof/trace.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "workspace.h"

#include "alone.h"
#include "cuda_program.h"
#include "hang_guard.h"
#include "recorded.h"
#include "vendors/cupti.h"

static const prof_device device = {PROF_DEVICE_CUDA, 0};

static emulated_cupti *cupti;

static void begin(void) {}

/* ---- the program ---- */

static void load_cupti(const char *file) {
  emulated_cupti *(*state)(void);
  char path[512];
  snprintf(path, sizeof path, "%s/vendors/%s", getenv("PROF_TEST_PLUGIN_DIR"), file);
  setenv("PROF_BACKEND_CUPTI", path, 1);
  void *const library = dlopen(path, RTLD_NOW);
  if (!library) fail_msg("%s", dlerror());
  *(void **)&state = dlsym(library, "emulated_cupti_state");
  cupti = state();
}

static unsigned long long allocate(size_t bytes) {
  unsigned long long at;
  assert_int_equal(cu.cuMemAlloc_v2(&at, bytes), 0);
  return at;
}

static void give_back(unsigned long long at) { assert_int_equal(cu.cuMemFree_v2(at), 0); }

/* What a run asks for. */
typedef struct subject {
  void *stream;
  int runs;
  unsigned long long before; /* handed out by prepare */
  int (*run)(struct subject *s);
} subject;

static int run(void *user) {
  subject *const s = user;
  s->runs++;
  cu.emulated_cuda_work(s->stream, 1000);
  return s->run(s);
}

static prof_op_timer *timer_of(void *stream) {
  const prof_op_stream place = {
      .size = sizeof place, .device = device, .stream = handle_of(stream)};
  prof_op_timer *timer = NULL;
  if (prof_op_timer_create(&place, &timer) != PROF_OK) fail_msg("%s", prof_last_error());
  return timer;
}

static prof_op_result *profile_op(const prof_op *op) {
  prof_op_result *result = NULL;
  if (prof_op_profile(op, &wanted_workspace, &result) != PROF_OK) fail_msg("%s", prof_last_error());
  return result;
}

/* By the device's own time, as operators on streams are. */
static prof_op_info measure(subject *s, int (*what)(subject *s)) {
  s->run = what;
  s->runs = 0;
  prof_op_timer *const timer = timer_of(s->stream);
  const prof_op op = {.size = sizeof op,
                      .key = "an operator",
                      .user = s,
                      .run = run,
                      .device = device,
                      .timer = timer};
  prof_op_result *const result = profile_op(&op);
  const prof_op_info info = info_of(result);
  assert_int_equal(s->runs, wanted_workspace.warmup + wanted_workspace.repeat);
  assert_int_equal(info.warmup, wanted_workspace.warmup);
  prof_op_result_destroy(result);
  cu.cuStreamSynchronize(s->stream);
  prof_op_timer_destroy(timer);
  return info;
}

static subject on_device_0_with(const char *file) {
  load_cupti(file);
  begin_on(0);
  return (subject){.stream = make_stream()};
}

static subject on_device_0(void) { return on_device_0_with("libcupti.so.13"); }

/* Nothing is left of it. */
static void is_over(void) {
  assert_int_equal(cupti->subscribers, 0);
  assert_int_equal(cupti->kinds, 0);
  assert_int_equal(cupti->requests, cupti->returned);
}

static void is_known(const prof_op_info *info, uint64_t bytes) {
  if (info->workspace_bytes != bytes || info->workspace_source != PROF_OP_WORKSPACE_VENDOR)
    fail_msg("%lu bytes, source %u, status %d: %s", (unsigned long)info->workspace_bytes,
             info->workspace_source, info->workspace_status, prof_last_error());
  assert_int_equal(info->has_workspace, 1);
  assert_int_equal(info->workspace_status, PROF_OK);
  is_over();
}

/* ---- to the byte ---- */

/* The driver gives the lowest address that is free: the last piece has the first one's, and nobody
   comes to the second one's. */
static int in_each_other(subject *s) {
  (void)s;
  const unsigned long long first = allocate(1000), second = allocate(2000), third = allocate(30);
  give_back(second);
  give_back(first);
  const unsigned long long last = allocate(2500);
  give_back(third);
  give_back(last);
  return 0;
}

static void the_peak_of_the_first_run_is_known_to_the_byte(void **state) {
  (void)state;
  char text[512];
  subject s = on_device_0();
  prof_op_info info = measure(&s, in_each_other);
  is_known(&info, 3030);
  s.run = in_each_other;
  const prof_op op = {
      .size = sizeof op, .key = "by the host's timer", .user = &s, .run = run, .device = device};
  prof_op_result *const result = profile_op(&op);
  info = info_of(result);
  is_known(&info, 3030);
  prof_op_text(result, text, sizeof text);
  if (!strstr(text, ", workspace 3030 bytes by the vendor's library")) fail_msg("'%s'", text);
  prof_op_result_destroy(result);
}

static int of_before(subject *s) {
  if (s->before) give_back(s->before);
  s->before = 0;
  give_back(allocate(100));
  return 0;
}

static void memory_of_before_the_run_does_not_count(void **state) {
  (void)state;
  subject s = on_device_0();
  s.before = allocate(7000);
  const prof_op_info info = measure(&s, of_before);
  is_known(&info, 100);
}

static int once(subject *s) {
  if (s->runs == 1) s->before = allocate(9000);
  if (s->runs == 3) give_back(s->before);
  return 0;
}

/* As a pool takes it, which hands it out again in later runs. */
static void what_the_first_run_keeps_counts(void **state) {
  (void)state;
  subject s = on_device_0();
  const prof_op_info info = measure(&s, once);
  is_known(&info, 9000);
}

static int nothing(subject *s) {
  (void)s;
  return 0;
}

static void who_asks_for_nothing_has_none_for_sure(void **state) {
  (void)state;
  subject s = on_device_0();
  const prof_op_info info = measure(&s, nothing);
  is_known(&info, 0);
}

static int in_order_of_the_stream(subject *s) {
  unsigned long long first, second;
  if (cu.cuMemAllocAsync(&first, 4096, s->stream) != 0 ||
      cu.cuMemAllocAsync(&second, 1024, s->stream) != 0)
    return 1;
  if (cu.cuMemFreeAsync(first, s->stream) != 0) return 1;
  if (cu.cuMemAllocAsync(&first, 2048, s->stream) != 0) return 1;
  return cu.cuMemFreeAsync(second, s->stream) != 0 || cu.cuMemFreeAsync(first, s->stream) != 0;
}

/* By the calls, at which the pool has it, even if the stream is not as far. */
static void stream_ordered_memory_counts_by_its_calls(void **state) {
  (void)state;
  subject s = on_device_0();
  const prof_op_info info = measure(&s, in_order_of_the_stream);
  is_known(&info, 5120);
}

static int of_all_kinds(subject *s) {
  unsigned long long managed;
  void *pinned, *other;
  (void)s;
  assert_int_equal(cu.cuMemAllocManaged(&managed, 40, 1), 0);
  assert_int_equal(cu.cuMemAllocHost_v2(&pinned, 300), 0);
  const unsigned long long here = allocate(2);
  void *const context = begin_on(1);
  const unsigned long long there = allocate(5000);
  give_back(there);
  assert_int_equal(cu.cuCtxPopCurrent_v2(&other), 0);
  assert_int_equal(cu.cuCtxDestroy_v2(context), 0);
  give_back(here);
  give_back(managed);
  assert_int_equal(cu.cuMemFreeHost(pinned), 0);
  return 0;
}

static void the_devices_own_and_managed_memory_count(void **state) {
  (void)state;
  subject s = on_device_0();
  const prof_op_info info = measure(&s, of_all_kinds);
  is_known(&info, 42);
}

static void *allocate_elsewhere(void *context) {
  unsigned long long at;
  void *stream;
  if (cu.cuCtxPushCurrent_v2(context) != 0 || cu.cuStreamCreate(&stream, 0) != 0) return NULL;
  if (cu.cuMemAllocAsync(&at, 600, stream) == 0) cu.cuMemFreeAsync(at, stream);
  cu.cuStreamSynchronize(stream);
  cu.cuStreamDestroy_v2(stream);
  return NULL;
}

static int beside_another_thread(subject *s) {
  pthread_t thread;
  void *context;
  (void)s;
  const unsigned long long own_one = allocate(1000);
  assert_int_equal(cu.cuCtxGetCurrent(&context), 0);
  assert_int_equal(pthread_create(&thread, NULL, allocate_elsewhere, context), 0);
  pthread_join(thread, NULL);
  give_back(own_one);
  return 0;
}

static void other_threads_and_streams_count(void **state) {
  (void)state;
  subject s = on_device_0();
  const prof_op_info info = measure(&s, beside_another_thread);
  is_known(&info, 1600);
}

static int asks_for_memory_alone(subject *s) {
  /* and for no calls, all of which an older one would record */
  assert_int_equal(cupti->kinds, s->runs == 1);
  return in_each_other(s);
}

static void a_cupti_of_cuda_11_does_too(void **state) {
  (void)state;
  subject s = on_device_0_with("libcupti.so.11.8");
  const prof_op_info info = measure(&s, asks_for_memory_alone);
  is_known(&info, 3030);
}

/* ---- who says it otherwise ---- */

static int says(void *user, uint64_t *bytes_out) {
  (void)user;
  *bytes_out = 77;
  return 0;
}

static int tells(subject *s) {
  const unsigned long long at = allocate(1 << 20); /* a pool's, of which the run has a part */
  (void)s;
  prof_op_workspace_alloc(1234);
  prof_op_workspace_free(1234);
  give_back(at);
  return 0;
}

static void who_says_it_is_believed_and_cupti_left_alone(void **state) {
  (void)state;
  subject s = on_device_0();
  s.run = in_each_other;
  const prof_op op = {.size = sizeof op,
                      .key = "it says so",
                      .user = &s,
                      .run = run,
                      .workspace = says,
                      .device = device};
  prof_op_result *const result = profile_op(&op);
  prof_op_info info = info_of(result);
  assert_int_equal(info.workspace_bytes, 77);
  assert_int_equal(info.workspace_source, PROF_OP_WORKSPACE_SAID);
  assert_int_equal(cupti->calls, 0);
  prof_op_result_destroy(result);
  info = measure(&s, tells);
  assert_int_equal(info.workspace_bytes, 1234);
  assert_int_equal(info.workspace_source, PROF_OP_WORKSPACE_TOLD);
  is_over();
  info = measure(&s, in_each_other); /* of which that allocator tells nothing */
  is_known(&info, 3030);
}

static void who_does_not_ask_has_no_cupti(void **state) {
  (void)state;
  prof_op_options options = wanted_workspace;
  prof_op_result *result = NULL;
  subject s = on_device_0();
  options.vendor_memory = 0;
  s.run = in_each_other;
  const prof_op op = {
      .size = sizeof op, .key = "nobody asked", .user = &s, .run = run, .device = device};
  assert_int_equal(prof_op_profile(&op, &options, &result), PROF_OK);
  const prof_op_info info = info_of(result);
  assert_int_equal(info.has_workspace, 0);
  assert_int_equal(info.workspace_source, PROF_OP_WORKSPACE_UNKNOWN);
  assert_int_equal(info.workspace_status, PROF_OK);
  assert_int_equal(cupti->calls, 0);
  prof_op_result_destroy(result);
}

static void without_a_warm_up_it_is_refused(void **state) {
  (void)state;
  prof_op_options options = wanted_workspace;
  prof_op_result *result = NULL;
  subject s = on_device_0();
  s.run = nothing;
  const prof_op op = {
      .size = sizeof op, .key = "no warm-up", .user = &s, .run = run, .device = device};
  options.warmup = 0;
  options.no_warmup = 1;
  assert_int_equal(prof_op_profile(&op, &options, &result), PROF_E_INVALID);
  assert_non_null(strstr(prof_last_error(), "options.vendor_memory"));
  options = wanted_workspace;
  options.vendor_memory = 2;
  assert_int_equal(prof_op_profile(&op, &options, &result), PROF_E_INVALID);
  assert_non_null(strstr(prof_last_error(), "options.vendor_memory"));
  assert_int_equal(s.runs, 0);
}

/* A result without it does not match a request for it, and the other way round. */
static void results_are_kept_for_it(void **state) {
  (void)state;
  subject s = on_device_0();
  s.run = in_each_other;
  const prof_op op = {.size = sizeof op,
                      .key = "kept",
                      .user = &s,
                      .run = run,
                      .device = device,
                      .driver = "the same"};
  for (int i = 0; i < 4; i++) {
    prof_op_options options = wanted_workspace;
    prof_op_result *result = NULL;
    options.no_reuse = 0;
    options.vendor_memory = i % 2 ? 1 : 0;
    assert_int_equal(prof_op_profile(&op, &options, &result), PROF_OK);
    const prof_op_info info = info_of(result);
    assert_int_equal(info.was_kept, i / 2);
    assert_int_equal(info.workspace_bytes, i % 2 ? 3030 : 0);
    assert_int_equal(info.workspace_source,
                     i % 2 ? PROF_OP_WORKSPACE_VENDOR : PROF_OP_WORKSPACE_UNKNOWN);
    prof_op_result_destroy(result);
  }
}

/* ---- groups ---- */

static int a_thousand(subject *s) {
  (void)s;
  give_back(allocate(1000));
  return 0;
}

static int both_at_once(subject *s) {
  if (s->before) give_back(s->before);
  s->before = allocate(200);
  return 0;
}

static void measure_group(subject s[2], int (*workspace)(void *user, uint64_t *bytes_out),
                          prof_op_info *whole_out) {
  prof_op_timer *const timers[] = {timer_of(s[0].stream), timer_of(s[1].stream)};
  prof_op_result *results[3];
  prof_op_overlap overlap = {.size = sizeof overlap};
  prof_op ops[2];
  for (int i = 0; i < 2; i++)
    ops[i] = (prof_op){.size = sizeof ops[i],
                       .key = i ? "two" : "one",
                       .user = &s[i],
                       .run = run,
                       .device = device,
                       .timer = timers[i],
                       .workspace = i ? workspace : NULL};
  if (prof_op_profile_group(ops, 2, PROF_OP_STREAMS, &wanted_workspace, results, &overlap) !=
      PROF_OK)
    fail_msg("%s", prof_last_error());
  *whole_out = info_of(results[2]);
  for (int i = 0; i < 3; i++) prof_op_result_destroy(results[i]);
  for (int i = 0; i < 2; i++) {
    cu.cuStreamSynchronize(s[i].stream);
    prof_op_timer_destroy(timers[i]);
  }
}

static void a_groups_is_what_all_held_at_once(void **state) {
  (void)state;
  prof_op_info whole;
  subject s[2] = {on_device_0(), {.stream = make_stream()}};
  s[0].run = a_thousand;
  s[1].run = both_at_once;
  measure_group(s, NULL, &whole);
  is_known(&whole, 1000);
  measure_group(s, says, &whole); /* what it says may be among what CUDA told */
  assert_int_equal(whole.has_workspace, 0);
  assert_int_equal(whole.workspace_source, PROF_OP_WORKSPACE_UNKNOWN);
  is_over();
}

/* ---- where it cannot be known ---- */

static void without_cupti_it_is_unknown(void **state) {
  (void)state;
  setenv("PROF_BACKEND_CUPTI", "/nowhere/libcupti.so.13", 1);
  begin_on(0);
  subject s = {.stream = make_stream()};
  const prof_op_info info = measure(&s, in_each_other);
  is_unknown(&info, PROF_E_UNSUPPORTED, "PROF_BACKEND_CUPTI");
}

static void beside_another_tool_it_is_unknown(void **state) {
  (void)state;
  subject s = on_device_0();
  cupti->holder = "Nsight";
  prof_op_info info = measure(&s, in_each_other);
  is_unknown(&info, PROF_E_BUSY, "another tool uses CUPTI in this process: Nsight");
  assert_int_equal(cupti->kinds, 0);
  cupti->holder = NULL;
  info = measure(&s, in_each_other);
  is_known(&info, 3030);
}

static void of_a_device_that_nobody_serves_it_is_unknown(void **state) {
  (void)state;
  prof_op_result *result = NULL;
  subject s = on_device_0();
  s.run = nothing;
  const prof_op op = {.size = sizeof op, .key = "of the host", .user = &s, .run = run};
  assert_int_equal(prof_op_profile(&op, &wanted_workspace, &result), PROF_OK);
  const prof_op_info info = info_of(result);
  is_unknown(&info, PROF_E_UNSUPPORTED,
             "no back end that is in use records what its library hands out");
  assert_int_equal(cupti->calls, 0);
  prof_op_result_destroy(result);
}

static prof_op_info inner;

static int measures_another(subject *s) {
  subject other = {.stream = s->stream, .run = nothing};
  prof_op_result *result = NULL;
  const prof_op op = {
      .size = sizeof op, .key = "inside", .user = &other, .run = run, .device = device};
  if (s->runs > 1) return 0;
  if (prof_op_profile(&op, &wanted_workspace, &result) != PROF_OK) return 1;
  inner = info_of(result);
  is_unknown(&inner, PROF_E_BUSY, "told to another measurement");
  prof_op_result_destroy(result);
  return in_each_other(s);
}

static void of_two_measurements_at_once_one_is_told(void **state) {
  (void)state;
  subject s = on_device_0();
  const prof_op_info info = measure(&s, measures_another);
  is_known(&info, 3030);
  assert_int_equal(inner.sample_count, wanted_workspace.repeat);
}

static int drops_some(subject *s) {
  if (s->runs == 1) __atomic_store_n(&cupti->dropped, 3, __ATOMIC_RELAXED);
  give_back(allocate(10));
  return 0;
}

static void what_cupti_drops_makes_it_unknown(void **state) {
  (void)state;
  subject s = on_device_0();
  const prof_op_info info = measure(&s, drops_some);
  is_unknown(&info, PROF_E_UNSUPPORTED, "3 of the records of memory were lost");
  is_over();
}

/* Its records are the recording's, and none of them is lost to it. */
static void a_recording_goes_before(void **state) {
  (void)state;
  const prof_options options = {
      .size = sizeof options, .level = 1, .devices = PROF_DEVICES_RECORDS};
  subject s = on_device_0();
  assert_int_equal(prof_start_with(&options), PROF_OK);
  prof_op_info info = measure(&s, in_each_other);
  is_unknown(&info, PROF_E_BUSY, "its devices are being recorded");
  settle((uint64_t)(wanted_workspace.warmup + wanted_workspace.repeat));
  prof_trace *const trace = stop_and_get();
  assert_int_equal(sums_of(trace).records, wanted_workspace.warmup + wanted_workspace.repeat);
  prof_trace_destroy(trace);
  info = measure(&s, in_each_other);
  is_known(&info, 3030);
}

static int start_recording(subject *s) {
  const prof_options options = {
      .size = sizeof options, .level = 1, .devices = PROF_DEVICES_RECORDS};
  if (s->runs == 1 && prof_start_with(&options) != PROF_OK) return 1;
  return in_each_other(s);
}

/* It begins when the run that is being told of is over: with that, CUPTI would be asked by two at
   once. */
static void a_recording_that_begins_in_the_run_waits(void **state) {
  (void)state;
  subject s = on_device_0();
  const prof_op_info info = measure(&s, start_recording);
  assert_int_equal(info.workspace_bytes, 3030);
  assert_int_equal(info.workspace_source, PROF_OP_WORKSPACE_VENDOR);
  WAIT_WHILE(!__atomic_load_n(&cupti->kinds, __ATOMIC_RELAXED));
  cu.emulated_cuda_work(s.stream, 1000);
  cu.cuStreamSynchronize(s.stream);
  prof_trace *const trace = stop_and_get();
  assert_true(sums_of(trace).records >= 1);
  prof_trace_destroy(trace);
  is_over();
}

#define TESTS(X)                                    \
  X(the_peak_of_the_first_run_is_known_to_the_byte) \
  X(memory_of_before_the_run_does_not_count)        \
  X(what_the_first_run_keeps_counts)                \
  X(who_asks_for_nothing_has_none_for_sure)         \
  X(stream_ordered_memory_counts_by_its_calls)      \
  X(the_devices_own_and_managed_memory_count)       \
  X(other_threads_and_streams_count)                \
  X(a_cupti_of_cuda_11_does_too)                    \
  X(who_says_it_is_believed_and_cupti_left_alone)   \
  X(who_does_not_ask_has_no_cupti)                  \
  X(without_a_warm_up_it_is_refused)                \
  X(results_are_kept_for_it)                        \
  X(a_groups_is_what_all_held_at_once)              \
  X(without_cupti_it_is_unknown)                    \
  X(beside_another_tool_it_is_unknown)              \
  X(of_a_device_that_nobody_serves_it_is_unknown)   \
  X(of_two_measurements_at_once_one_is_told)        \
  X(what_cupti_drops_makes_it_unknown)              \
  X(a_recording_goes_before)                        \
  X(a_recording_that_begins_in_the_run_waits)
ALONE_TESTS

int main(int argc, char **argv) { return alone_main(argc, argv); }
