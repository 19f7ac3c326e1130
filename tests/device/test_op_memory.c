/* An operator's workspace by what CUDA hands out, on an emulated driver and an emulated CUPTI
   (vendors: no device is behind them). To the byte: what counts and what does not, and where it
   cannot be known. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <prof/device.h>
#include <prof/op.h>
#include <prof/trace.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

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

static const prof_op_options wanted = {.size = sizeof wanted,
                                       .warmup = 4,
                                       .exec = 1,
                                       .repeat = 6,
                                       .repeat_all = 1,
                                       .time_limit_ns = UINT64_MAX,
                                       .vendor_memory = 1,
                                       .no_reuse = 1};

static prof_op_info info_of(const prof_op_result *result) {
  prof_op_info info = {.size = sizeof info};
  assert_int_equal(prof_op_info_get(result, &info), PROF_OK);
  return info;
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
  if (prof_op_profile(op, &wanted, &result) != PROF_OK) fail_msg("%s", prof_last_error());
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
  assert_int_equal(s->runs, wanted.warmup + wanted.repeat);
  assert_int_equal(info.warmup, wanted.warmup);
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

static void is_unknown(const prof_op_info *info, int32_t status, const char *why) {
  assert_int_equal(info->workspace_source, PROF_OP_WORKSPACE_UNKNOWN);
  assert_int_equal(info->has_workspace, 0);
  assert_int_equal(info->workspace_bytes, 0);
  assert_int_equal(info->workspace_status, status);
  if (!strstr(prof_last_error(), why)) fail_msg("'%s' has no '%s'", prof_last_error(), why);
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
  prof_op_options options = wanted;
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
  prof_op_options options = wanted;
  prof_op_result *result = NULL;
  subject s = on_device_0();
  s.run = nothing;
  const prof_op op = {
      .size = sizeof op, .key = "no warm-up", .user = &s, .run = run, .device = device};
  options.warmup = 0;
  options.no_warmup = 1;
  assert_int_equal(prof_op_profile(&op, &options, &result), PROF_E_INVALID);
  assert_non_null(strstr(prof_last_error(), "options.vendor_memory"));
  options = wanted;
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
    prof_op_options options = wanted;
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
  if (prof_op_profile_group(ops, 2, PROF_OP_STREAMS, &wanted, results, &overlap) != PROF_OK)
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
  assert_int_equal(prof_op_profile(&op, &wanted, &result), PROF_OK);
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
  if (prof_op_profile(&op, &wanted, &result) != PROF_OK) return 1;
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
  assert_int_equal(inner.sample_count, wanted.repeat);
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
  settle((uint64_t)(wanted.warmup + wanted.repeat));
  prof_trace *const trace = stop_and_get();
  assert_int_equal(sums_of(trace).records, wanted.warmup + wanted.repeat);
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

/* ---- a back end that says what a test wants ---- */

enum { SCRIPTED_TYPE = 14, SCRIPTED_MAX = 8 };

static struct {
  const prof_backend_host *host;
  prof_backend_memory records[SCRIPTED_MAX];
  size_t count, bytes; /* bytes: of the last record, if not its own */
  uint32_t repeats;    /* all of them so often */
  uint32_t can;
  int result;
  uint64_t loses;
  int starts, stops;
} script;

static int scripted_probe(const prof_backend_host *host) {
  return (script.host = host) ? PROF_BACKEND_OK : PROF_BACKEND_ABSENT;
}
static int scripted_open(const prof_backend_host *host, prof_backend_self **self_out) {
  (void)host;
  *self_out = (prof_backend_self *)&script;
  return PROF_BACKEND_OK;
}
static int scripted_create(prof_backend_self *self, uint64_t stream, void **event_out) {
  return (void)self, (void)stream, (void)event_out, PROF_BACKEND_UNSUPPORTED;
}
static int scripted_record(prof_backend_self *self, uint64_t stream, void **event) {
  return (void)self, (void)stream, (void)event, PROF_BACKEND_UNSUPPORTED;
}
static int scripted_query(prof_backend_self *self, void *event) {
  return (void)self, (void)event, PROF_BACKEND_UNSUPPORTED;
}
static void scripted_destroy(prof_backend_self *self, void *event) { (void)self, (void)event; }
static int scripted_time(prof_backend_self *self, void *event, uint64_t *ns_out) {
  return (void)self, (void)event, (void)ns_out, PROF_BACKEND_UNSUPPORTED;
}

static int scripted_start(prof_backend_self *self, uint32_t kinds, uint32_t *kinds_out) {
  (void)self;
  script.starts++;
  assert_int_equal(kinds, 1u << PROF_BACKEND_MEMORY);
  *kinds_out = script.can;
  return script.result;
}

static int scripted_stop(prof_backend_self *self) {
  (void)self;
  script.stops++;
  return PROF_BACKEND_OK;
}

/* Each record comes after the stop. */
static int scripted_drain(prof_backend_self *self, uint32_t how, uint64_t *lost_out) {
  (void)self, (void)how;
  if (!script.stops) return PROF_BACKEND_NOT_READY;
  *lost_out = script.loses;
  for (uint32_t i = 0; i < script.repeats; i++)
    for (size_t j = 0; j < script.count; j++) {
      prof_backend_memory *const it = &script.records[j];
      it->record.size = sizeof *it;
      if (j + 1 == script.count && script.bytes) it->record.size = (uint16_t)script.bytes;
      script.host->emit(it, script.bytes && j + 1 == script.count ? script.bytes : sizeof *it);
    }
  return PROF_BACKEND_OK;
}

static const prof_backend scripted = {.size = sizeof scripted,
                                      .major = PROF_BACKEND_MAJOR,
                                      .minor = PROF_BACKEND_MINOR,
                                      .device_type = SCRIPTED_TYPE,
                                      .name = "scripted",
                                      .version = "1",
                                      .probe = scripted_probe,
                                      .open = scripted_open,
                                      .event_create = scripted_create,
                                      .event_record = scripted_record,
                                      .event_query = scripted_query,
                                      .event_destroy = scripted_destroy,
                                      .event_time = scripted_time,
                                      .start = scripted_start,
                                      .stop = scripted_stop,
                                      .drain = scripted_drain,
                                      .records_memory = 1};

static prof_backend_memory piece(uint64_t ns, uint64_t address, uint64_t bytes) {
  return (prof_backend_memory){.record = {.kind = PROF_BACKEND_MEMORY, .start = ns, .end = ns},
                               .address = address,
                               .bytes = bytes};
}
static prof_backend_memory release(uint64_t ns, uint64_t address) {
  prof_backend_memory it = piece(ns, address, 0);
  it.is_release = 1;
  return it;
}

static void begin_script(void) {
  memset(&script, 0, sizeof script);
  script.repeats = 1;
  script.can = 1u << PROF_BACKEND_MEMORY;
  assert_int_equal(prof_backend_add(&scripted), PROF_OK);
}

static void put(prof_backend_memory it) { script.records[script.count++] = it; }

static int count_runs(void *user) {
  (void)user;
  return 0;
}

static prof_op_info measure_script(void) {
  prof_op_result *result = NULL;
  const prof_op op = {
      .size = sizeof op, .key = "scripted", .run = count_runs, .device = {SCRIPTED_TYPE, 0}};
  script.starts = script.stops = 0;
  if (prof_op_profile(&op, &wanted, &result) != PROF_OK) fail_msg("%s", prof_last_error());
  const prof_op_info info = info_of(result);
  prof_op_result_destroy(result);
  assert_int_equal(script.starts, 1);
  return info;
}

/* Told in whatever order they are added up by their times; of one moment, as they were told. */
static void pieces_are_added_up_by_their_times(void **state) {
  (void)state;
  begin_script();
  put(release(30, 0x1000));
  put(piece(40, 0x3000, 500));
  put(piece(20, 0x2000, 200)); /* with the first one: 300 */
  put(piece(10, 0x1000, 100));
  put(release(50, 0x2000));
  put(release(50, 0x3000));
  put(piece(50, 0x3000, 650));
  const prof_op_info info = measure_script();
  assert_int_equal(info.workspace_bytes, 700);
  assert_int_equal(info.workspace_source, PROF_OP_WORKSPACE_VENDOR);
  assert_int_equal(script.stops, 1);
}

static void what_is_no_piece_makes_it_unknown_or_is_left_out(void **state) {
  (void)state;
  begin_script();
  put(piece(10, 0x1000, 100));
  put(piece(20, 0x2000, 5000));
  script.records[1].record.kind = PROF_BACKEND_KERNEL; /* nobody asked for it */
  put(piece(30, 0x5000, 0));
  prof_op_info info = measure_script();
  assert_int_equal(info.workspace_bytes, 100);
  script.records[0].record.flags = PROF_BACKEND_NO_TIMES;
  info = measure_script();
  is_unknown(&info, PROF_E_UNSUPPORTED, "scripted: 1 of the records of memory were lost");
  script.records[0].record.flags = 0;
  script.records[2] = piece(30, 0x5000, UINT64_MAX - 0x4000);
  info = measure_script();
  is_unknown(&info, PROF_E_UNSUPPORTED, "were lost");
  script.records[2] = piece(30, 0x5000, 5);
  script.bytes = sizeof(prof_backend_record) + 8; /* cut short */
  info = measure_script();
  is_unknown(&info, PROF_E_UNSUPPORTED, "were lost");
  script.bytes = 8;
  info = measure_script();
  is_unknown(&info, PROF_E_UNSUPPORTED, "were lost");
  script.bytes = 0;
  script.loses = 7;
  info = measure_script();
  is_unknown(&info, PROF_E_UNSUPPORTED, "scripted: 7 of");
}

static void more_pieces_than_there_is_room_for_are_not_added_up(void **state) {
  enum { ROOM = 1 << 16 };
  (void)state;
  begin_script();
  put(piece(10, 0x1000, 100));
  script.repeats = ROOM;
  prof_op_info info = measure_script();
  assert_int_equal(info.workspace_bytes, 100);
  script.repeats = ROOM + 1;
  info = measure_script();
  is_unknown(&info, PROF_E_UNSUPPORTED, "scripted: 1 of");
}

static void why_a_back_end_does_not_tell_is_said(void **state) {
  static const struct {
    int result;
    int32_t status;
  } cases[] = {{PROF_BACKEND_BUSY, PROF_E_BUSY},
               {PROF_BACKEND_PERMISSION, PROF_E_PERMISSION},
               {PROF_BACKEND_NO_MEMORY, PROF_E_NO_MEMORY},
               {PROF_BACKEND_VENDOR, PROF_E_UNSUPPORTED}};
  (void)state;
  begin_script();
  put(piece(10, 0x1000, 100));
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    script.result = cases[i].result;
    const prof_op_info info = measure_script();
    is_unknown(&info, cases[i].status, prof_backend_result_text(cases[i].result));
    assert_int_equal(script.stops, 0);
  }
  script.result = PROF_BACKEND_OK;
  script.can = 1u << PROF_BACKEND_KERNEL;
  prof_op_info info = measure_script();
  is_unknown(&info, PROF_E_UNSUPPORTED, "scripted: it does not record what its library hands out");
  assert_int_equal(script.stops, 1); /* what was begun is ended */
  script.can = 1u << PROF_BACKEND_MEMORY;
  info = measure_script();
  assert_int_equal(info.workspace_bytes, 100);
}

#define TESTS(X)                                         \
  X(the_peak_of_the_first_run_is_known_to_the_byte)      \
  X(memory_of_before_the_run_does_not_count)             \
  X(what_the_first_run_keeps_counts)                     \
  X(who_asks_for_nothing_has_none_for_sure)              \
  X(stream_ordered_memory_counts_by_its_calls)           \
  X(the_devices_own_and_managed_memory_count)            \
  X(other_threads_and_streams_count)                     \
  X(a_cupti_of_cuda_11_does_too)                         \
  X(who_says_it_is_believed_and_cupti_left_alone)        \
  X(who_does_not_ask_has_no_cupti)                       \
  X(without_a_warm_up_it_is_refused)                     \
  X(results_are_kept_for_it)                             \
  X(a_groups_is_what_all_held_at_once)                   \
  X(without_cupti_it_is_unknown)                         \
  X(beside_another_tool_it_is_unknown)                   \
  X(of_a_device_that_nobody_serves_it_is_unknown)        \
  X(of_two_measurements_at_once_one_is_told)             \
  X(what_cupti_drops_makes_it_unknown)                   \
  X(a_recording_goes_before)                             \
  X(a_recording_that_begins_in_the_run_waits)            \
  X(pieces_are_added_up_by_their_times)                  \
  X(what_is_no_piece_makes_it_unknown_or_is_left_out)    \
  X(more_pieces_than_there_is_room_for_are_not_added_up) \
  X(why_a_back_end_does_not_tell_is_said)
ALONE_TESTS

int main(int argc, char **argv) { return alone_main(argc, argv); }
