/* CUDA's back end on an emulated driver (vendors/cuda.c: no device is behind it). When the driver's
   library is touched, contexts, default streams, capture into graphs, errors, and what goes away
   under it. */
#define _GNU_SOURCE
#include <dlfcn.h>
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
#include <unistd.h>

#include <cmocka.h>

#include "alone.h"
#include "cuda_program.h"
#include "hang_guard.h"
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
  for (int i = 0; i < count; i++)
    WITH_GPU_PROFILER(device, handle_of(stream), "kernel", "test", PROF_NO_ARGS,
                      { cu.emulated_cuda_work(stream, WORK_NS); });
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
  for (unsigned naps = 0; s.sides[0] + s.sides[1] + s.times + s.late < wanted && hang_nap(&naps);
       s = look())
    continue;
  return s;
}

/* ---- when the library is touched ---- */

static void a_program_without_cuda_never_has_its_library(void **state) {
  (void)state;
  const prof_options options = {
      .size = sizeof options, .level = 2, .devices = PROF_DEVICES_RECORDS};
  assert_int_equal(setenv("LD_LIBRARY_PATH", "", 1), 0);
  assert_int_equal(prof_start_with(&options), PROF_OK);
  WITH_BASE_PROFILER(PROF_HOST, "host", "test", PROF_NO_ARGS, {});
  WITH_GPU_PROFILER(((prof_device){PROF_DEVICE_VULKAN, 0}), 4096, "another's", "test", PROF_NO_ARGS,
                    {});
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

/* Of a divided device (MIG) CUDA has an instance by a name of its own, as any device. */
static void an_instance_of_a_divided_device_has_its_name(void **state) {
  (void)state;
  load();
  driver->is_divided = 1;
  begin_on(0);
  assert_int_equal(prof_start(1), PROF_OK);
  launch(NULL, COUNT);
  cu.cuStreamSynchronize(NULL);
  assert_int_equal(settle(COUNT).sides[0], COUNT);
  assert_int_equal(prof_stop(), PROF_OK);
  prof_trace *trace = NULL;
  char *line = NULL;
  assert_int_equal(prof_get(&trace), PROF_OK);
  assert_int_equal(prof_trace_device_text(trace, 0, &line), PROF_OK);
  if (!strstr(line, "cuda:0 Emulated CUDA 0 MIG 1g.10gb: ")) fail_msg("%s", line);
  prof_free(line);
  prof_trace_destroy(trace);
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

/* What the system finds under the driver's name is something else, or too old: said, and the
   program goes on. In a process that finds it there. */
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
  assert_string_equal(
      about.reason,
      "libcuda.so.1 has no cuDriverGetVersion(): CUDA 10.0's driver is the oldest that serves");
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
  /* events of two contexts have no distance: each change begins another zero */
  assert_int_equal(s.sides[0], 6 * COUNT);
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

/* The handle comes again, as another context's stream. */
static void a_stream_that_has_gone(void **state) {
  (void)state;
  begin_on(0);
  void *const stream = make_stream();
  assert_int_equal(prof_start(1), PROF_OK);
  launch(stream, COUNT);
  cu.cuStreamSynchronize(stream);
  assert_int_equal(settle(COUNT).sides[0], COUNT);
  assert_int_equal(cu.cuStreamDestroy_v2(stream), 0);
  for (int i = 0; i < COUNT; i++)
    WITH_GPU_PROFILER(device, handle_of(stream), "gone", "test", PROF_NO_ARGS, {});
  sums s = settle(2 * COUNT);
  assert_int_equal(s.sides[0], COUNT);
  assert_int_equal(s.times, COUNT);
  assert_non_null(strstr(state_of_back_end("cuda").reason, "CUDA_ERROR_INVALID_HANDLE (400)"));
  begin_on(1);
  assert_ptr_equal(make_stream(), stream);
  launch(stream, COUNT);
  cu.cuStreamSynchronize(stream);
  s = settle(3 * COUNT);
  assert_int_equal(s.sides[1], COUNT);
  assert_int_equal(s.times, COUNT);
  assert_int_equal(driver->gone_touches, 0);
  assert_int_equal(prof_stop(), PROF_OK);
}

/* cudaDeviceReset(): all of the primary context goes, and what comes next is another one at the
   same handle. */
static void a_device_may_be_reset_with_scopes_in_flight(void **state) {
  (void)state;
  enum { ROUNDS = 20 };
  void *context, *current;
  load();
  assert_int_equal(cu.cuInit(0), 0);
  assert_int_equal(prof_start(1), PROF_OK);
  for (int i = 0; i < ROUNDS; i++) {
    assert_int_equal(cu.cuDevicePrimaryCtxRetain(&context, 0), 0);
    assert_int_equal(cu.cuCtxSetCurrent(context), 0);
    void *const stream = i % 4 < 2 ? make_stream() : NULL;
    launch(stream, COUNT);
    if (i % 2) cu.cuStreamSynchronize(stream);
    assert_int_equal(cu.cuDevicePrimaryCtxReset_v2(0), 0);
    assert_int_equal(cu.cuCtxGetCurrent(&current), 0);
    assert_ptr_equal(current, context);
  }
  launch(NULL, COUNT); /* goes on without a word of the program's */
  cu.cuStreamSynchronize(NULL);
  const sums s = settle((ROUNDS + 1) * COUNT);
  assert_int_equal(s.sides[0] + s.times, (ROUNDS + 1) * COUNT);
  assert_in_range(s.sides[0], COUNT, (ROUNDS + 1) * COUNT);
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(driver->gone_touches, 0);
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
  for (int i = 0; i < COUNT; i++)
    WITH_GPU_PROFILER(device, handle_of(stream), "into the graph", "test", PROF_NO_ARGS, {});
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

/* A query of an event while a stream is captured globally breaks that capture, from any thread: the
   collector makes such queries all the time. */
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
  /* the first one's begin is the zero, which needs no distance */
  assert_in_range(s.times, 2 * COUNT - 1, 2 * COUNT);
  assert_int_equal(prof_stop(), PROF_OK);
}

/* Said, and tried again by each scope: the program may give some back. */
static void no_memory_for_an_event_is_said(void **state) {
  (void)state;
  begin_on(0);
  void *const stream = make_stream();
  assert_int_equal(prof_start(1), PROF_OK);
  driver->create_error = 2;
  launch(stream, COUNT);
  sums s = settle(COUNT);
  assert_int_equal(s.times, COUNT);
  assert_int_equal(s.result, PROF_BACKEND_NO_MEMORY);
  assert_non_null(strstr(s.reason, "cuEventCreate: CUDA_ERROR_OUT_OF_MEMORY (2), out of memory"));
  driver->create_error = 0;
  launch(stream, COUNT);
  cu.cuStreamSynchronize(stream);
  s = settle(2 * COUNT);
  assert_int_equal(s.sides[0], COUNT);
  assert_int_equal(s.times, COUNT);
  assert_int_equal(prof_stop(), PROF_OK);
}

/* All calls return the error from then on, and it is the program's: its own calls return it, too.
   Once it is known, prof makes no more calls. */
static void after_a_kernel_that_went_wrong_nothing_is_asked(void **state) {
  (void)state;
  begin_on(0);
  void *const stream = make_stream();
  assert_int_equal(prof_start(1), PROF_OK);
  launch(stream, COUNT);
  cu.cuStreamSynchronize(stream);
  assert_int_equal(settle(COUNT).sides[0], COUNT);
  launch(stream, COUNT);
  __atomic_store_n(&driver->last_error, 700, __ATOMIC_RELAXED);
  sums s = settle(2 * COUNT);
  assert_int_equal(s.sides[0] + s.times, 2 * COUNT);
  for (int i = 0; i < COUNT; i++)
    WITH_GPU_PROFILER(device, handle_of(stream), "behind it", "test", PROF_NO_ARGS, {});
  const uint32_t asked = __atomic_load_n(&driver->after_last, __ATOMIC_RELAXED);
  for (int session = 0; session < 2; session++) {
    for (int i = 0; i < COUNT; i++)
      WITH_GPU_PROFILER(device, handle_of(stream), "behind it", "test", PROF_NO_ARGS, {});
    WITH_GPU_PROFILER(device, 0, "on another stream", "test", PROF_NO_ARGS, {});
    assert_int_equal(prof_stop(), PROF_OK);
    assert_int_equal(prof_start(1), PROF_OK);
  }
  s = look();
  assert_int_equal(s.sides[0] + s.times, 5 * COUNT + 2);
  assert_in_range(s.times, 3 * COUNT + 2, 4 * COUNT + 2);
  assert_int_equal(s.result, PROF_BACKEND_OK);
  /* The capture has it, too, once the collector has said so. */
  for (unsigned naps = 0; !strstr(s.reason, "(700)") && hang_nap(&naps); s = look()) continue;
  assert_non_null(strstr(s.reason, "CUDA_ERROR_ILLEGAL_ADDRESS (700)"));
  assert_int_equal(__atomic_load_n(&driver->after_last, __ATOMIC_RELAXED), asked);
  assert_int_equal(cu.cuStreamSynchronize(stream), 700);
  assert_non_null(strstr(state_of_back_end("cuda").reason,
                         "CUDA_ERROR_ILLEGAL_ADDRESS (700), an illegal memory access was "
                         "encountered: no more CUDA in this process"));
  assert_int_equal(prof_stop(), PROF_OK);
}

/* ---- what is current ---- */

/* Whatever the driver says, each scope leaves the thread's contexts as they were. */
static void *looks_at_contexts(void *stream) {
  void *first, *second, *popped;
  if (cu.cuCtxCreate_v2(&first, 0, 0) || cu.cuCtxCreate_v2(&second, 0, 1)) return "a context";
  for (int i = 0; i < 5; i++) {
    void *before, *within, *after;
    if (i == 3) cu.cuCtxPopCurrent_v2(&popped);
    if (i == 4) cu.cuCtxPopCurrent_v2(&popped);
    cu.cuCtxGetCurrent(&before);
    WITH_GPU_PROFILER(device, i == 1 ? 0 : handle_of(stream), "looks", "test", PROF_NO_ARGS,
                      { cu.cuCtxGetCurrent(&within); });
    cu.cuCtxGetCurrent(&after);
    if (before != within || before != after) return "not as it was";
    if (before != (i < 3 ? second : i < 4 ? first : NULL)) return "not the thread's own";
  }
  return NULL;
}

static void the_current_context_is_the_programs(void **state) {
  (void)state;
  enum { FAULTS = 6 };
  void *stream, *popped;
  begin_on(0);
  stream = make_stream();
  assert_int_equal(cu.cuCtxPopCurrent_v2(&popped), 0);
  assert_int_equal(prof_start(1), PROF_OK);
  for (int fault = 0; fault < FAULTS; fault++) {
    void *why;
    pthread_t other;
    driver->create_error = fault == 1 ? 2 : 0;
    driver->record_error = fault == 2 ? 400 : 0;
    if (fault == 3) assert_int_equal(cu.cuStreamBeginCapture_v2(stream, CAPTURE_GLOBAL), 0);
    if (fault == 4) cu.cuStreamDestroy_v2(stream);
    if (fault == 5) __atomic_store_n(&driver->last_error, 719, __ATOMIC_RELAXED);
    assert_int_equal(pthread_create(&other, NULL, looks_at_contexts, stream), 0);
    assert_int_equal(pthread_join(other, &why), 0);
    if (why) fail_msg("fault %d: %s", fault, (const char *)why);
  }
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
    if (i % 100 != 99) continue;
    cu.cuStreamSynchronize(stream);
    settle((uint64_t)i + 1);
  }
  const sums s = settle(MANY);
  assert_int_equal(s.sides[0], MANY);
  assert_in_range(driver->events, 2, 2000);
  assert_int_equal(prof_stop(), PROF_OK);
}

#define TESTS(X)                                     \
  X(a_program_without_cuda_never_has_its_library)    \
  X(it_never_begins_for_the_program)                 \
  X(its_devices_are_described)                       \
  X(an_instance_of_a_divided_device_has_its_name)    \
  X(a_driver_without_devices_says_so)                \
  X(a_library_that_is_none_of_ours_is_said)          \
  X(a_default_stream_is_the_current_contexts)        \
  X(a_streams_device_is_its_own)                     \
  X(without_a_context_a_default_stream_is_refused)   \
  X(a_context_may_go_with_scopes_in_flight)          \
  X(a_stream_that_has_gone)                          \
  X(a_device_may_be_reset_with_scopes_in_flight)     \
  X(a_captured_stream_has_nothing_put_on_it)         \
  X(the_collector_breaks_no_capture)                 \
  X(what_the_driver_refuses_is_lost_and_told)        \
  X(no_memory_for_an_event_is_said)                  \
  X(after_a_kernel_that_went_wrong_nothing_is_asked) \
  X(the_current_context_is_the_programs)             \
  X(events_are_given_back)
ALONE_TESTS

int main(int argc, char **argv) { return alone_main(argc, argv); }
