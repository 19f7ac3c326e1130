/* CUDA's back end on an emulated driver (vendors/cuda.c: no device is behind it): when the driver's library is touched, contexts, default streams, capture into graphs, errors, and what goes away under it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <prof/device.h>
#include <prof/profiler.h>
#include <prof/trace.h>
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
#include "told.h"

enum { COUNT = 20, WORK_NS = 300000, CAPTURE_GLOBAL = 0 };

static const prof_device device = {PROF_DEVICE_CUDA, 0};

static void begin(void) {}

static bool is_loaded(void) {
  void *const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (library) dlclose(library);
  return library != NULL;
}

static void launch(void *stream, int count) {
  for (int i = 0; i < count; i++) WITH_GPU_PROFILER(device, handle_of(stream), "kernel", "test", PROF_NO_ARGS, { cu.emulated_cuda_work(stream, WORK_NS); });
}

typedef struct sums {
  uint64_t sides[EMULATED_CUDA_DEVICES], captured, times, late;
  int32_t result;
  char reason[160];
} sums;

static sums look(void) {
  sums s = {{0}, 0, 0, 0, 0, ""};
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  assert_int_equal(prof_get(&trace), PROF_OK);
  assert_int_equal(prof_trace_info_get(trace, &info), PROF_OK);
  for (uint32_t i = 0; i < info.device_count; i++) {
    prof_trace_device about = {.size = sizeof about};
    assert_int_equal(prof_trace_device_get(trace, i, &about), PROF_OK);
    assert_in_range(about.device.index, 0, EMULATED_CUDA_DEVICES - 1);
    s.sides[about.device.index] = about.scope_count;
    s.captured += about.captured_count;
    s.result = about.result;
    memcpy(s.reason, about.reason, sizeof s.reason);
  }
  s.times = info.lost_count[PROF_LOSS_DEVICE_TIMES];
  s.late = info.lost_count[PROF_LOSS_DEVICE_LATE];
  prof_trace_destroy(trace);
  return s;
}

static sums settle(uint64_t wanted) {
  sums s = look();
  for (int i = 0; i < 1000 && s.sides[0] + s.sides[1] + s.times + s.late < wanted; i++, s = look()) usleep(10000);
  return s;
}

/* ---- when the library is touched ---- */

static void a_program_without_cuda_never_has_its_library(void **state) {
  (void)state;
  const prof_options options = {.size = sizeof options, .level = 2, .devices = PROF_DEVICES_RECORDS};
  assert_int_equal(setenv("LD_LIBRARY_PATH", "", 1), 0);
  assert_int_equal(prof_start_with(&options), PROF_OK);
  WITH_BASE_PROFILER(PROF_HOST, "host", "test", PROF_NO_ARGS, {});
  WITH_GPU_PROFILER(((prof_device){PROF_DEVICE_VULKAN, 0}), 4096, "another's", "test", PROF_NO_ARGS, {});
  assert_int_equal(prof_stop(), PROF_OK);
  assert_false(is_loaded());
}

/* To begin for the program would leave the children that it forks later without CUDA. */
static void it_never_begins_for_the_program(void **state) {
  (void)state;
  void *context, *stream;
  load();
  assert_int_equal(prof_start(1), PROF_OK);
  WITH_GPU_PROFILER(device, 0, "too early", "test", PROF_NO_ARGS, {});
  assert_int_equal(driver->init_count, 0);
  sums s = look();
  assert_int_equal(s.sides[0] + s.times + s.late, 0);
  assert_non_null(strstr(s.reason, "the program has not begun to use CUDA"));
  WITH_GPU_PROFILER(device, 0, "the first", "test", PROF_NO_ARGS, {
    assert_int_equal(cu.cuInit(0), 0);
    assert_int_equal(cu.cuCtxCreate_v2(&context, 0, 0), 0);
  });
  stream = NULL; /* the context's default stream: the same handle, on the same thread */
  launch(stream, COUNT);
  cu.cuStreamSynchronize(stream);
  s = settle(COUNT);
  assert_int_equal(s.sides[0], COUNT);
  assert_int_equal(s.times + s.late, 0);
  assert_int_equal(s.result, PROF_BACKEND_OK);
  assert_int_equal(driver->init_count, 1);
  assert_int_equal(prof_stop(), PROF_OK);
}

static void its_devices_are_described(void **state) {
  (void)state;
  begin_on(0);
  assert_int_equal(prof_start(1), PROF_OK);
  launch(NULL, 1);
  cu.cuStreamSynchronize(NULL);
  settle(1);
  const prof_backend_state cuda = state_of_back_end("cuda");
  assert_int_equal(cuda.is_open, 1);
  assert_int_equal(cuda.device_count, EMULATED_CUDA_DEVICES);
  prof_trace *trace = NULL;
  prof_trace_device about = {.size = sizeof about};
  assert_int_equal(prof_get(&trace), PROF_OK);
  assert_int_equal(prof_trace_device_get(trace, 0, &about), PROF_OK);
  assert_string_equal(about.name, "Emulated CUDA 0");
  assert_string_equal(about.arch, "sm_90");
  assert_string_equal(about.driver, "CUDA 13.0");
  assert_int_equal(about.units, 132);
  assert_int_equal(about.clock_khz, 1980000);
  assert_true(about.memory_bytes == UINT64_C(80) << 30);
  assert_int_equal(about.uuid[0], 0x10);
  prof_trace_destroy(trace);
  assert_int_equal(prof_stop(), PROF_OK);
}

static void a_driver_without_devices_says_so(void **state) {
  (void)state;
  load();
  driver->device_count = 0;
  assert_int_equal(cu.cuInit(0), 0);
  assert_int_equal(prof_start(1), PROF_OK);
  WITH_GPU_PROFILER(device, 0, "nowhere", "test", PROF_NO_ARGS, {});
  const sums s = look();
  assert_int_equal(s.result, PROF_BACKEND_NO_DEVICE);
  assert_non_null(strstr(s.reason, "CUDA_VISIBLE_DEVICES"));
  assert_int_equal(prof_stop(), PROF_OK);
}

/* What the system finds under the driver's name is something else, or too old: said, and the program goes on. In a process that finds it there. */
static void a_library_that_is_none_of_ours_is_said(void **state) {
  (void)state;
  char folder[] = "/tmp/prof-cuda-XXXXXX", from[512], to[64];
  const char *const place = getenv("PROF_TEST_AGAIN");
  if (!place) {
    assert_non_null(mkdtemp(folder));
    snprintf(to, sizeof to, "%s/libcuda.so.1", folder);
    snprintf(from, sizeof from, "%s/odd.so", getenv("PROF_TEST_PLUGIN_DIR"));
    assert_int_equal(symlink(from, to), 0);
    setenv("PROF_TEST_AGAIN", folder, 1);
    setenv("LD_LIBRARY_PATH", folder, 1);
    execl("/proc/self/exe", "again", __func__, (char *)NULL);
    fail_msg("%s", "exec");
    return;
  }
  assert_int_equal(prof_start(1), PROF_OK);
  WITH_GPU_PROFILER(device, 4096, "nowhere", "test", PROF_NO_ARGS, {});
  const prof_backend_state about = state_of_back_end("cuda");
  assert_int_equal(about.result, PROF_BACKEND_VERSION);
  assert_string_equal(about.reason, "libcuda.so.1 has no cuDriverGetVersion()");
  assert_int_equal(prof_stop(), PROF_OK);
  snprintf(to, sizeof to, "%s/libcuda.so.1", place);
  unlink(to);
  rmdir(place);
}

/* ---- contexts and streams ---- */

static void a_default_stream_is_the_current_contexts(void **state) {
  (void)state;
  void *const first = begin_on(0), *const second = begin_on(0), *current, *popped;
  assert_int_equal(prof_start(1), PROF_OK);
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 2; i++) {
      void *const context = i ? second : first;
      assert_int_equal(cu.cuCtxPushCurrent_v2(context), 0);
      launch(NULL, COUNT);
      assert_int_equal(cu.cuCtxGetCurrent(&current), 0);
      assert_ptr_equal(current, context);
      cu.cuStreamSynchronize(NULL);
      assert_int_equal(cu.cuCtxPopCurrent_v2(&popped), 0);
      assert_ptr_equal(popped, context); /* nothing of prof's is left on the stack */
    }
  }
  const sums s = settle(6 * COUNT);
  assert_int_equal(s.sides[0], 6 * COUNT); /* events of two contexts have no distance: each change begins another zero */
  assert_int_equal(s.times + s.late, 0);
  assert_int_equal(prof_stop(), PROF_OK);
}

static void a_streams_device_is_its_own(void **state) {
  (void)state;
  void *popped;
  begin_on(1);
  void *const stream = make_stream();
  assert_int_equal(cu.cuCtxPopCurrent_v2(&popped), 0); /* a stream needs no current context */
  assert_int_equal(prof_start(1), PROF_OK);
  launch(stream, COUNT); /* as device 0's, which it is not */
  cu.cuStreamSynchronize(stream);
  const sums s = settle(COUNT);
  assert_int_equal(s.sides[1], COUNT);
  assert_int_equal(s.sides[0] + s.times + s.late, 0);
  void *current;
  assert_int_equal(cu.cuCtxGetCurrent(&current), 0);
  assert_null(current);
  assert_int_equal(prof_stop(), PROF_OK);
}

static void without_a_context_a_default_stream_is_refused(void **state) {
  (void)state;
  void *popped;
  begin_on(0);
  assert_int_equal(cu.cuCtxPopCurrent_v2(&popped), 0);
  assert_int_equal(prof_start(1), PROF_OK);
  WITH_GPU_PROFILER(device, 0, "nobody's", "test", PROF_NO_ARGS, {});
  const sums s = settle(1);
  assert_int_equal(s.times, 1);
  assert_non_null(strstr(s.reason, "CUDA_ERROR_INVALID_CONTEXT (201)"));
  assert_int_equal(prof_stop(), PROF_OK);
}

static void a_context_may_go_with_scopes_in_flight(void **state) {
  (void)state;
  enum { ROUNDS = 20 };
  assert_int_equal(prof_start(1), PROF_OK);
  begin_on(0);
  for (int i = 0; i < ROUNDS; i++) {
    void *const context = begin_on(0), *const stream = make_stream();
    launch(stream, COUNT);
    if (i % 2) cu.cuStreamSynchronize(stream);
    assert_int_equal(cu.cuCtxDestroy_v2(context), 0);
  }
  const sums s = settle(ROUNDS * COUNT);
  assert_int_equal(s.sides[0] + s.times, ROUNDS * COUNT);
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(driver->gone_touches, 0); /* a real driver may crash at one */
}

/* ---- graphs ---- */

static void a_captured_stream_has_nothing_put_on_it(void **state) {
  (void)state;
  void *graph;
  begin_on(0);
  void *const stream = make_stream();
  assert_int_equal(prof_start(1), PROF_OK);
  launch(stream, COUNT);
  cu.cuStreamSynchronize(stream);
  assert_int_equal(cu.cuStreamBeginCapture_v2(stream, CAPTURE_GLOBAL), 0);
  for (int i = 0; i < COUNT; i++) WITH_GPU_PROFILER(device, handle_of(stream), "into the graph", "test", PROF_NO_ARGS, {});
  WITH_GPU_PROFILER(device, 0, "the default stream, meanwhile", "test", PROF_NO_ARGS, {});
  assert_int_equal(cu.cuStreamEndCapture(stream, &graph), 0);
  launch(stream, COUNT);
  cu.cuStreamSynchronize(stream);
  const sums s = settle(2 * COUNT);
  assert_int_equal(s.sides[0], 2 * COUNT);
  assert_int_equal(s.captured, COUNT + 1);
  assert_int_equal(s.times + s.late, 0);
  assert_int_equal(driver->captured_records, 0);
  assert_int_equal(prof_stop(), PROF_OK);
}

/* Whoever asks for an event while a stream is captured globally breaks that capture, from whatever thread: the collector does so all the time. */
static void the_collector_breaks_no_capture(void **state) {
  (void)state;
  enum { ROUNDS = 50 };
  void *graph;
  begin_on(0);
  void *const captured = make_stream(), *const busy = make_stream();
  assert_int_equal(prof_start(1), PROF_OK);
  for (int i = 0; i < ROUNDS; i++) {
    assert_int_equal(cu.cuStreamBeginCapture_v2(captured, CAPTURE_GLOBAL), 0);
    launch(busy, COUNT);
    usleep(3000);
    assert_int_equal(cu.cuStreamEndCapture(captured, &graph), 0);
    cu.cuStreamSynchronize(busy);
  }
  const sums s = settle(ROUNDS * COUNT);
  assert_int_equal(s.sides[0], ROUNDS * COUNT);
  assert_int_equal(s.times + s.late, 0);
  assert_int_equal(driver->broken_captures, 0);
  assert_int_equal(prof_stop(), PROF_OK);
}

/* ---- errors ---- */

static void what_the_driver_refuses_is_lost_and_told(void **state) {
  (void)state;
  begin_on(0);
  void *const stream = make_stream();
  assert_int_equal(prof_start(1), PROF_OK);
  driver->record_error = 600;
  launch(stream, COUNT);
  driver->record_error = 0;
  driver->elapsed_error = 999;
  launch(stream, COUNT);
  cu.cuStreamSynchronize(stream);
  const sums s = settle(2 * COUNT);
  assert_in_range(s.times, 2 * COUNT - 1, 2 * COUNT); /* the first one's begin is the zero, which needs no distance */
  assert_int_equal(prof_stop(), PROF_OK);
}

static void events_are_given_back(void **state) {
  (void)state;
  enum { MANY = 5000 };
  begin_on(0);
  void *const stream = make_stream();
  assert_int_equal(prof_start(1), PROF_OK);
  for (int i = 0; i < MANY; i++) {
    WITH_GPU_PROFILER(device, handle_of(stream), "short", "test", PROF_NO_ARGS, {});
    if (i % 100 == 99) {
      cu.cuStreamSynchronize(stream);
      usleep(1000);
    }
  }
  const sums s = settle(MANY);
  assert_int_equal(s.sides[0], MANY);
  assert_in_range(driver->events, 2, 2000);
  assert_int_equal(prof_stop(), PROF_OK);
}

#define TESTS(X)                                                                                                                                                                      \
  X(a_program_without_cuda_never_has_its_library) X(it_never_begins_for_the_program) X(its_devices_are_described) X(a_driver_without_devices_says_so)                                 \
  X(a_library_that_is_none_of_ours_is_said) X(a_default_stream_is_the_current_contexts) X(a_streams_device_is_its_own) X(without_a_context_a_default_stream_is_refused) X(a_context_may_go_with_scopes_in_flight)               \
  X(a_captured_stream_has_nothing_put_on_it) X(the_collector_breaks_no_capture) X(what_the_driver_refuses_is_lost_and_told) X(events_are_given_back)
ALONE_TESTS

int main(int argc, char **argv) { return alone_main(argc, argv); }
