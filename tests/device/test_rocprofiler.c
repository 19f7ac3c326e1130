/* What rocprofiler-sdk records, on an emulated HIP runtime and an emulated rocprofiler (vendors: no
   device is behind them). Each kernel and copy appears once, on its device, with the scope that
   launched it. Also which tool came first, losses, releases. */
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
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "alone.h"
#include "hang_guard.h"
#include "hip_program.h"
#include "recorded.h"
#include "vendors/rocprofiler.h"

enum { COUNT = 20, KERNEL_NS = 100000, THREADS = 4 };

static emulated_rocp *rocp;

static void begin(void) {}

/* ---- the program ---- */

/* It is found by the option; that it is loaded here tells no more than where its state is. */
static void load_rocprofiler(const char *file) {
  char path[512];
  emulated_rocp *(*state)(void);
  snprintf(path, sizeof path, "%s/vendors/%s", getenv("PROF_TEST_PLUGIN_DIR"), file);
  setenv("PROF_BACKEND_ROCPROFILER", path, 1);
  void *const library = dlopen(path, RTLD_NOW);
  if (!library) fail_msg("%s", dlerror());
  *(void **)&state = dlsym(library, "emulated_rocp_state");
  rocp = state();
}

static void start(uint32_t level) {
  const prof_options options = {
      .size = sizeof options, .level = level, .devices = PROF_DEVICES_RECORDS};
  assert_int_equal(prof_start_with(&options), PROF_OK);
}

/* What is launched in the first 20 ms is not recorded. */
static void *begin_with_hip(void) {
  void *const stream = make_stream(0);
  WAIT_WHILE(__atomic_load_n(&rocp->active, __ATOMIC_RELAXED) < 3);
  return stream;
}

/* The program is linked to HIP, and begins with it after records have been requested. */
static void *begin_recording(uint32_t level) {
  load("libamdhip64.so.6");
  load_rocprofiler("librocprofiler-sdk.so.1");
  start(level);
  return begin_with_hip();
}

static void launch(void *kernel, void *stream) {
  assert_int_equal(hip.hipModuleLaunchKernel(kernel, 6, 4, 2, 64, 1, 1, 1024, stream, NULL, NULL),
                   0);
}

/* ---- the tests ---- */

static void each_kernel_is_there_once_with_what_launched_it(void **state) {
  (void)state;
  static prof_event event;
  prof_cursor *cursor = NULL;
  assert_non_null(dlopen("libstdc++.so.6", RTLD_NOW)); /* names are in words then */
  void *const stream = begin_recording(1), *const kernel =
                                               hip.emulated_hip_kernel("_Z4busyPfi", KERNEL_NS);
  for (int i = 0; i < COUNT; i++)
    WITH_BASE_PROFILER(PROF_HOST, "layer", "model", PROF_NO_ARGS, { launch(kernel, stream); });
  hip.hipStreamSynchronize(stream);
  settle(COUNT);
  prof_trace *const trace = stop_and_get();
  nothing_is_lost(trace);
  const found f = find(trace, "busy(float*, int)", "kernel");
  assert_int_equal(f.count, COUNT);
  assert_int_equal(f.launched_here, COUNT);
  /* more where the stream's thread has no processor */
  assert_in_range(f.nanoseconds, COUNT * (uint64_t)KERNEL_NS, UINT64_C(10000000000));
  assert_int_equal(launched_in(trace, "layer"), COUNT);
  assert_int_equal(calls_named(trace, "hipModuleLaunchKernel"), 0);
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  while (prof_cursor_next(cursor, &event) == 1 && !(event.flags & PROF_EVENT_ON_DEVICE)) {
  }
  const prof_trace_arg *const items = arg_of(&event, "work items"), *const block =
                                                                        arg_of(&event, "block");
  assert_int_equal(items->value.tensor.dims[0], 6 * 64);
  assert_int_equal(items->value.tensor.dims[1] * 10 + items->value.tensor.dims[2], 42);
  assert_int_equal(block->value.tensor.dims[0], 64);
  assert_int_equal(arg_of(&event, "shared memory")->value.u64, 1024);
  prof_cursor_destroy(cursor);
  prof_trace_destroy(trace);
  assert_int_equal(rocp->active, 1); /* names alone */
}

/* In the trace and in the Chrome JSON. */
static void a_queue_of_the_hardwares_is_called_one(void **state) {
  (void)state;
  static char text[1 << 20];
  char path[] = "/tmp/prof-queue-XXXXXX";
  uint32_t queues = 0;
  prof_trace_thread thread = {.size = sizeof thread};
  void *const stream = begin_recording(1), *const kernel = hip.emulated_hip_kernel("k", KERNEL_NS);
  launch(kernel, stream);
  hip.hipStreamSynchronize(stream);
  settle(1);
  prof_trace *const trace = stop_and_get();
  for (uint32_t i = 0; prof_trace_thread_get(trace, i, &thread) == PROF_OK; i++)
    queues += thread.is_stream && strncmp(thread.name, "queue 0x", strlen("queue 0x")) == 0;
  assert_int_equal(queues, 1);
  prof_trace_destroy(trace);
  close(mkstemp(path));
  assert_int_equal(prof_dump(path), PROF_OK);
  FILE *const file = fopen(path, "r");
  assert_non_null(file);
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  fclose(file);
  unlink(path);
  assert_non_null(strstr(text, "{\"name\":\"queue "));
  assert_null(strstr(text, "{\"name\":\"stream "));
}

/* Kernels stand on the hardware's queues, not on their streams. */
static void a_scopes_device_time_has_its_kernel_once(void **state) {
  (void)state;
  void *const stream = begin_recording(1), *const kernel =
                                               hip.emulated_hip_kernel("matmul", 1000000);
  for (int i = 0; i < COUNT; i++)
    WITH_BASE_PROFILER(PROF_HOST, "model", "model", PROF_NO_ARGS, {
      WITH_HIP_PROFILER(((prof_device){PROF_DEVICE_ROCM, 0}), stream, "dense", "operator",
                        PROF_NO_ARGS, { launch(kernel, stream); });
      hip.hipStreamSynchronize(stream);
    });
  settle(COUNT);
  prof_trace *const trace = stop_and_get();
  nothing_is_lost(trace);
  sides_have_their_kernels_in_them(trace);
  prof_trace_destroy(trace);
}

static void copies_say_how_much_and_which_way(void **state) {
  (void)state;
  static char room[64];
  void *const stream = begin_recording(1);
  WITH_BASE_PROFILER(PROF_HOST, "move", "model", PROF_NO_ARGS, {
    hip.hipMemcpyHtoDAsync(room, room, 5000, stream);
    hip.hipMemcpyDtoHAsync(room, room, 3000, stream);
  });
  hip.hipStreamSynchronize(stream);
  settle(2);
  prof_trace *const trace = stop_and_get();
  nothing_is_lost(trace);
  assert_int_equal(find(trace, "Memcpy HtoD", "gpu_memcpy").count, 1);
  assert_int_equal(find(trace, "Memcpy DtoH", "gpu_memcpy").count, 1);
  assert_int_equal(launched_in(trace, "move"), 2);
  prof_trace_destroy(trace);
}

/* rocprofiler's agents are in another order than HIP's devices. */
static void a_kernel_is_its_devices(void **state) {
  (void)state;
  static prof_event event;
  prof_cursor *cursor = NULL;
  begin_recording(1);
  void *const stream = make_stream(1);
  for (int i = 0; i < COUNT; i++) hip.emulated_hip_work(stream, 1000);
  hip.hipStreamSynchronize(stream);
  settle(COUNT);
  prof_trace *const trace = stop_and_get();
  nothing_is_lost(trace);
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  while (prof_cursor_next(cursor, &event) == 1)
    if (event.flags & PROF_EVENT_ON_DEVICE) assert_int_equal(event.device.index, 1);
  prof_cursor_destroy(cursor);
  prof_trace_destroy(trace);
}

static void at_level_2_calls_are_there(void **state) {
  (void)state;
  void *const stream = begin_recording(2), *const kernel = hip.emulated_hip_kernel("k", KERNEL_NS);
  for (int i = 0; i < COUNT; i++)
    WITH_BASE_PROFILER(PROF_HOST, "layer", "model", PROF_NO_ARGS, { launch(kernel, stream); });
  hip.hipStreamSynchronize(stream);
  settle(COUNT);
  prof_trace *const trace = stop_and_get();
  nothing_is_lost(trace);
  assert_int_equal(calls_named(trace, "hipModuleLaunchKernel"), COUNT);
  assert_int_equal(calls_named(trace, "hipStreamSynchronize"), 1);
  assert_int_equal(calls_in(trace, "hipModuleLaunchKernel", "layer"), COUNT);
  assert_int_equal(host_rows(trace, 0, NULL), 1);
  assert_int_equal(launched_in(trace, "layer"), COUNT);
  prof_trace_destroy(trace);
}

static void calls_and_names_that_are_told_last(void **state) {
  (void)state;
  load("libamdhip64.so.6");
  load_rocprofiler("librocprofiler-sdk.so.1");
  rocp->calls_last = rocp->names_late = 1;
  start(1);
  void *const stream = begin_with_hip(), *const kernel = hip.emulated_hip_kernel("k", KERNEL_NS);
  for (int i = 0; i < COUNT; i++)
    WITH_BASE_PROFILER(PROF_HOST, "layer", "model", PROF_NO_ARGS, { launch(kernel, stream); });
  hip.hipStreamSynchronize(stream);
  settle(COUNT);
  prof_trace *const trace = stop_and_get();
  nothing_is_lost(trace);
  assert_int_equal(find(trace, "k", "kernel").launched_here, COUNT);
  assert_int_equal(launched_in(trace, "layer"), COUNT);
  prof_trace_destroy(trace);
}

typedef struct worker {
  pthread_t thread;
  char name[16];
} worker;

static void *work(void *own) {
  const worker *const w = own;
  void *const stream = make_stream(0), *const kernel = hip.emulated_hip_kernel(w->name, 20000);
  for (int i = 0; i < COUNT; i++)
    WITH_BASE_PROFILER(PROF_HOST, w->name, "model", PROF_NO_ARGS, { launch(kernel, stream); });
  hip.hipStreamSynchronize(stream);
  return NULL;
}

static void threads_have_what_they_launched(void **state) {
  (void)state;
  static worker all[THREADS];
  begin_recording(1);
  for (int i = 0; i < THREADS; i++) {
    snprintf(all[i].name, sizeof all[i].name, "worker %d", i);
    assert_int_equal(pthread_create(&all[i].thread, NULL, work, &all[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(all[i].thread, NULL);
  settle((uint64_t)THREADS * COUNT);
  prof_trace *const trace = stop_and_get();
  nothing_is_lost(trace);
  for (int i = 0; i < THREADS; i++) assert_int_equal(launched_in(trace, all[i].name), COUNT);
  prof_trace_destroy(trace);
}

/* Scopes on streams are recorded all the same. */
static void records_scopes_alone(void *stream, const char *why) {
  const prof_device device = {PROF_DEVICE_ROCM, 0};
  sums s = {0};
  for (int i = 0; i < COUNT; i++)
    WITH_HIP_PROFILER(device, handle_of(stream), "op", "model", PROF_NO_ARGS,
                      { hip.emulated_hip_work(stream, 1000); });
  hip.hipStreamSynchronize(stream);
  for (unsigned naps = 0; s.sides < COUNT && hang_nap(&naps);) {
    prof_trace *const trace = get();
    s = sums_of(trace);
    prof_trace_destroy(trace);
  }
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(s.sides, COUNT);
  assert_int_equal(s.records, 0);
  const prof_backend_state about = state_of_back_end("hip");
  if (!strstr(about.reason, why)) fail_msg("%s", about.reason);
  assert_non_null(strstr(about.reason, "records no kernels by itself"));
}

static void hip_began_before_records_were_asked_for(void **state) {
  (void)state;
  load("libamdhip64.so.6");
  load_rocprofiler("librocprofiler-sdk.so.1");
  void *const stream = make_stream(0);
  start(1);
  records_scopes_alone(
      stream,
      "ask before the program's first call of HIP: it had begun, or another tool was there");
  assert_int_equal(rocp->configured, 0);
}

static void another_tool_has_it(void **state) {
  (void)state;
  load("libamdhip64.so.6");
  load_rocprofiler("librocprofiler-sdk.so.1");
  rocp->has_tool = 1;
  start(1);
  records_scopes_alone(make_stream(0), "another tool was there");
}

static void what_is_refused_is_said(void **state) {
  (void)state;
  load("libamdhip64.so.6");
  load_rocprofiler("librocprofiler-sdk.so.1");
  rocp->service_error = 4;
  start(1);
  records_scopes_alone(
      make_stream(0),
      "rocprofiler_configure_buffer_tracing_service: Kind identifier is invalid (4)");
}

static void no_rocprofiler(void **state) {
  (void)state;
  load("libamdhip64.so.6");
  setenv("PROF_BACKEND_ROCPROFILER", "/nowhere/librocprofiler-sdk.so.1", 1);
  start(1);
  records_scopes_alone(make_stream(0), "PROF_BACKEND_ROCPROFILER: ");
}

/* Who records scopes alone does not touch rocprofiler. */
static void nobody_asks_it_for_scopes(void **state) {
  (void)state;
  const prof_device device = {PROF_DEVICE_ROCM, 0};
  load("libamdhip64.so.6");
  load_rocprofiler("librocprofiler-sdk.so.1");
  assert_int_equal(prof_start(1), PROF_OK);
  void *const stream = make_stream(0);
  for (int i = 0; i < COUNT; i++)
    WITH_HIP_PROFILER(device, handle_of(stream), "op", "model", PROF_NO_ARGS,
                      { hip.emulated_hip_work(stream, 1000); });
  hip.hipStreamSynchronize(stream);
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(rocp->calls, 0);
}

/* To begin with HIP is the program's affair, which may fork before. */
static void a_runtime_that_nobody_uses_is_left_alone(void **state) {
  (void)state;
  load("libamdhip64.so.6");
  load_rocprofiler("librocprofiler-sdk.so.1");
  start(1);
  WITH_BASE_PROFILER(PROF_HOST, "host", "model", PROF_NO_ARGS, { usleep(100000); });
  assert_int_equal(__atomic_load_n(&runtime->calls, __ATOMIC_RELAXED), 0);
  void *const stream = make_stream(0); /* now it does: kernels are recorded from 20 ms on */
  WAIT_WHILE(__atomic_load_n(&rocp->active, __ATOMIC_RELAXED) < 3);
  for (int i = 0; i < COUNT; i++) hip.emulated_hip_work(stream, 1000);
  hip.hipStreamSynchronize(stream);
  settle(COUNT);
  prof_trace *const trace = stop_and_get();
  assert_int_equal(find(trace, "busy", "kernel").count, COUNT);
  prof_trace_destroy(trace);
}

static void what_has_no_times_is_counted(void **state) {
  (void)state;
  void *const stream = begin_recording(1);
  __atomic_store_n(&rocp->no_times, 3, __ATOMIC_RELAXED);
  for (int i = 0; i < COUNT; i++) hip.emulated_hip_work(stream, 1000);
  hip.hipStreamSynchronize(stream);
  settle(COUNT);
  prof_trace *const trace = stop_and_get();
  assert_int_equal(find(trace, "busy", "kernel").count, COUNT - 3);
  assert_int_equal(sums_of(trace).lost[PROF_LOSS_DEVICE_TIMES], 3);
  prof_trace_destroy(trace);
}

/* A buffer that is full drops what comes, and says how much. */
static void what_is_dropped_is_counted(void **state) {
  (void)state;
  enum { MANY = 400, TIMES = 100 };
  uint64_t launches = 0;
  void *const stream = begin_recording(1), *const kernel = hip.emulated_hip_kernel("k", 0);
  __atomic_store_n(&rocp->room, 100, __ATOMIC_RELAXED);
  /* once, unless this thread has no processor while it launches: prof empties the buffer five times
     a second */
  for (int i = 0; i < TIMES && __atomic_load_n(&rocp->dropped, __ATOMIC_RELAXED) == 0; i++) {
    for (int k = 0; k < MANY; k++) launch(kernel, stream);
    hip.hipStreamSynchronize(stream);
    launches += MANY;
  }
  settle(MANY / 2);
  __atomic_store_n(&rocp->room, 0, __ATOMIC_RELAXED);
  for (int i = 0; i < COUNT; i++) hip.emulated_hip_work(stream, 1000);
  hip.hipStreamSynchronize(stream);
  settle(launches + COUNT);
  prof_trace *const trace = stop_and_get();
  const sums s = sums_of(trace);
  assert_true(rocp->dropped > 0);
  assert_int_equal(s.lost[PROF_LOSS_DEVICE_FULL], rocp->dropped);
  assert_int_equal(find(trace, "busy", "kernel").count, COUNT);
  assert_int_equal(find(trace, "k", "kernel").count, s.records - COUNT);
  prof_trace_destroy(trace);
}

static void recordings_come_and_go(void **state) {
  (void)state;
  enum { TIMES = 50 };
  void *const stream = begin_recording(1);
  for (int i = 0; i < TIMES; i++) {
    if (i) start(1 + (uint32_t)i % 2);
    hip.emulated_hip_work(stream, 1000);
    hip.hipStreamSynchronize(stream);
    assert_int_equal(prof_stop(), PROF_OK);
  }
  settle(TIMES);
  prof_trace *const trace = get();
  const sums s = sums_of(trace);
  assert_int_equal(come(&s), TIMES);
  assert_in_range(s.records, TIMES / 2, TIMES);
  prof_trace_destroy(trace);
  assert_int_equal(rocp->configured, 1);
  assert_int_equal(rocp->active, 1);
}

/* ROCm 6.3's: its calls' records and its callbacks are shorter, its operations have other
   numbers. */
static void an_older_release(void **state) {
  (void)state;
  load("libamdhip64.so.6");
  load_rocprofiler("librocprofiler-sdk.so.0");
  start(2);
  void *const stream = begin_with_hip(), *const kernel = hip.emulated_hip_kernel("k", 1000);
  for (int i = 0; i < COUNT; i++)
    WITH_BASE_PROFILER(PROF_HOST, "layer", "model", PROF_NO_ARGS, { launch(kernel, stream); });
  hip.hipStreamSynchronize(stream);
  settle(COUNT);
  prof_trace *const trace = stop_and_get();
  nothing_is_lost(trace);
  assert_int_equal(find(trace, "k", "kernel").launched_here, COUNT);
  assert_int_equal(launched_in(trace, "layer"), COUNT);
  assert_int_equal(calls_named(trace, "hipModuleLaunchKernel"), COUNT);
  prof_trace_destroy(trace);
}

static void a_child_leaves_it_alone(void **state) {
  (void)state;
  int status = -1;
  void *const stream = begin_recording(1);
  hip.emulated_hip_work(stream, 1000);
  hip.hipStreamSynchronize(stream);
  settle(1);
  const pid_t child = fork();
  if (child == 0) {
    const uint32_t calls = rocp->calls;
    WITH_BASE_PROFILER(PROF_HOST, "child", "model", PROF_NO_ARGS, { usleep(50000); });
    prof_stop();
    _exit(rocp->calls == calls ? 0 : 1);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  prof_trace *const trace = stop_and_get();
  assert_int_equal(sums_of(trace).records, 1);
  prof_trace_destroy(trace);
}

/* LeakSanitizer of GCC 12 crashes when it looks at a thread that stays in a library's call at the
   process's end. */
static int leaves_a_thread;
int __lsan_is_turned_off(void); /* NOLINT: the name is the sanitizer's */
int __lsan_is_turned_off(void) { return leaves_a_thread; }

/* A flush that never ends holds up neither the stop nor the process's end. */
static void a_flush_that_hangs(void **state) {
  (void)state;
  void *const stream = begin_recording(1);
  leaves_a_thread = 1;
  hip.emulated_hip_work(stream, 1000);
  hip.hipStreamSynchronize(stream);
  hang_guard();
  __atomic_store_n(&rocp->hangs, 1, __ATOMIC_RELAXED);
  assert_int_equal(prof_stop(), PROF_OK);
}

#define TESTS(X)                                     \
  X(a_queue_of_the_hardwares_is_called_one)          \
  X(each_kernel_is_there_once_with_what_launched_it) \
  X(copies_say_how_much_and_which_way)               \
  X(a_scopes_device_time_has_its_kernel_once)        \
  X(a_kernel_is_its_devices)                         \
  X(at_level_2_calls_are_there)                      \
  X(calls_and_names_that_are_told_last)              \
  X(threads_have_what_they_launched)                 \
  X(hip_began_before_records_were_asked_for)         \
  X(another_tool_has_it)                             \
  X(what_is_refused_is_said)                         \
  X(no_rocprofiler)                                  \
  X(nobody_asks_it_for_scopes)                       \
  X(a_runtime_that_nobody_uses_is_left_alone)        \
  X(what_has_no_times_is_counted)                    \
  X(what_is_dropped_is_counted)                      \
  X(recordings_come_and_go)                          \
  X(an_older_release)                                \
  X(a_child_leaves_it_alone)                         \
  X(a_flush_that_hangs)
ALONE_TESTS

int main(int argc, char **argv) { return alone_main(argc, argv); }
