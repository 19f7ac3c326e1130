/* What CUPTI records, on an emulated driver and an emulated CUPTI (vendors: no device is behind
   them). Each kernel, copy and fill appears once, on its stream, with the scope that launched it.
   Also other tools, losses, releases, and a program that begins late. */
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
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "alone.h"
#include "cupti_program.h"
#include "hang_guard.h"

static const prof_device device = {PROF_DEVICE_CUDA, 0};

static void begin(void) {}

/* ---- the tests ---- */

static void each_kernel_is_there_once_with_what_launched_it(void **state) {
  (void)state;
  static prof_event event;
  prof_cursor *cursor = NULL;
  const bool has_cpp = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_NOLOAD) != NULL;
  void *const stream = begin_recording(1), *const kernel =
                                               cu.emulated_cuda_kernel("_Z4busyPfi", KERNEL_NS);
  for (int i = 0; i < COUNT; i++)
    WITH_BASE_PROFILER(PROF_HOST, "layer", "model", PROF_NO_ARGS, { launch(kernel, stream); });
  cu.cuStreamSynchronize(stream);
  settle(COUNT);
  prof_trace *const trace = stop_and_get();
  nothing_is_lost(trace);
  /* as it is where the process has no C++ library: prof brings it none. A sanitizer may */
  const found f = find(trace, has_cpp ? "busy(float*, int)" : "_Z4busyPfi", "kernel");
  assert_int_equal(f.count, COUNT);
  assert_int_equal(dlopen("libstdc++.so.6", RTLD_NOW | RTLD_NOLOAD) != NULL, has_cpp);
  assert_int_equal(f.launched_here, COUNT);
  /* more where the stream's thread has no processor */
  assert_in_range(f.nanoseconds, COUNT * (uint64_t)KERNEL_NS, UINT64_C(10000000000));
  assert_int_equal(launched_in(trace, "layer"), COUNT);
  assert_int_equal(calls_named(trace, "cuLaunchKernel"), 0);
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  while (prof_cursor_next(cursor, &event) == 1 && !(event.flags & PROF_EVENT_ON_DEVICE)) {
  }
  const prof_trace_arg *const grid = arg_of(&event, "grid"), *const block = arg_of(&event, "block");
  assert_int_equal(grid->value.tensor.dims[0] * 100 + grid->value.tensor.dims[1] * 10 +
                       grid->value.tensor.dims[2],
                   642);
  assert_int_equal(block->value.tensor.dims[0], 64);
  assert_int_equal(arg_of(&event, "registers per thread")->value.u64, 32);
  assert_int_equal(arg_of(&event, "shared memory")->value.u64, 1024 + 16);
  assert_int_equal(arg_of(&event, "context")->value.u64, 1);
  prof_cursor_destroy(cursor);
  prof_trace_destroy(trace);
  assert_int_equal(cupti->subscribers, 0);
  assert_int_equal(cupti->kinds, 0);
}

/* In a process that has C++'s library. */
static void kernels_have_names_that_people_read(void **state) {
  (void)state;
  const char *const names[] = {"_ZN2at6native29vectorized_elementwise_kernelILi4EfEEviT0_", "plain",
                               "_Z", "_Znonsense"};
  assert_non_null(dlopen("libstdc++.so.6", RTLD_NOW));
  void *const stream = begin_recording(1);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    launch(cu.emulated_cuda_kernel(names[i], 1000), stream);
  cu.cuStreamSynchronize(stream);
  settle(sizeof names / sizeof *names);
  prof_trace *const trace = stop_and_get();
  nothing_is_lost(trace);
  assert_int_equal(
      find(trace, "void at::native::vectorized_elementwise_kernel<4, float>(int, float)", "kernel")
          .count,
      1);
  for (size_t i = 1; i < sizeof names / sizeof *names; i++)
    if (find(trace, names[i], "kernel").count != 1) fail_msg("%s is not there once", names[i]);
  prof_trace_destroy(trace);
}

static void copies_and_fills_say_how_much_and_which_way(void **state) {
  (void)state;
  static char room[64];
  void *const stream = begin_recording(1);
  WITH_BASE_PROFILER(PROF_HOST, "move", "model", PROF_NO_ARGS, {
    cu.cuMemcpyHtoDAsync_v2(1, room, 5000, stream);
    cu.cuMemcpyDtoHAsync_v2(room, 1, 3000, stream);
    cu.cuMemsetD8Async(1, 0, 2000, stream);
  });
  cu.cuStreamSynchronize(stream);
  settle(3);
  prof_trace *const trace = stop_and_get();
  nothing_is_lost(trace);
  assert_int_equal(find(trace, "Memcpy HtoD (Pageable -> Device)", "gpu_memcpy").count, 1);
  assert_int_equal(find(trace, "Memcpy DtoH (Device -> Pinned)", "gpu_memcpy").count, 1);
  assert_int_equal(find(trace, "Memset (Device)", "gpu_memset").count, 1);
  assert_int_equal(launched_in(trace, "move"), 3);
  prof_trace_destroy(trace);
}

/* The side of a scope and the kernel in it are on one stream, which has one row. */
static void a_kernel_stands_on_the_row_of_its_streams_scopes(void **state) {
  (void)state;
  static prof_event event;
  prof_cursor *cursor = NULL;
  uint64_t kernels = 0, sides = 0;
  void *const stream = begin_recording(1), *const kernel = cu.emulated_cuda_kernel("k", KERNEL_NS);
  for (int i = 0; i < COUNT; i++) {
    WITH_GPU_PROFILER(device, handle_of(stream), "op", "model", PROF_NO_ARGS,
                      { launch(kernel, stream); });
    WITH_GPU_PROFILER(device, 0, "default", "model", PROF_NO_ARGS, { launch(kernel, NULL); });
    WITH_GPU_PROFILER(device, 2, "per thread", "model", PROF_NO_ARGS,
                      { launch(kernel, (void *)(uintptr_t)2); });
  }
  cu.cuStreamSynchronize(stream);
  cu.cuStreamSynchronize(NULL);
  cu.cuStreamSynchronize((void *)(uintptr_t)2);
  settle(3 * COUNT);
  prof_trace *const trace = stop_and_get();
  nothing_is_lost(trace);
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  while (prof_cursor_next(cursor, &event) == 1) {
    if (!(event.flags & PROF_EVENT_ON_DEVICE)) continue;
    if (event.stream != handle_of(stream) && event.stream != 0 && event.stream != 2)
      fail_msg("stream 0x%lx", (unsigned long)event.stream);
    kernels += event.launch.record == PROF_BACKEND_KERNEL;
    sides += event.launch.record == 0;
  }
  assert_int_equal(kernels, 3 * COUNT);
  assert_int_equal(sides, 3 * COUNT);
  prof_cursor_destroy(cursor);
  prof_trace_destroy(trace);
}

/* What the line under the table says behind "times within ..." */
static void times_are_of(const prof_trace *trace, uint32_t is_clock_read, uint32_t has_two_clocks,
                         const char *end) {
  prof_trace_device about = {.size = sizeof about};
  char *line = NULL;
  assert_int_equal(prof_trace_device_get(trace, 0, &about), PROF_OK);
  assert_int_equal(prof_trace_device_text(trace, 0, &line), PROF_OK);
  const char *const at = strstr(line, " of the host's");
  if (!at || strcmp(at + strlen(" of the host's"), end) != 0)
    fail_msg("'%s' does not end with '%s'", line, end);
  assert_int_equal(about.is_clock_read, is_clock_read);
  assert_int_equal(about.has_two_clocks, has_two_clocks);
  prof_free(line);
}

static void the_clock_that_is_read_is_its_records(void **state) {
  (void)state;
  void *const stream = begin_recording(1), *const kernel = cu.emulated_cuda_kernel("k", KERNEL_NS);
  launch(kernel, stream);
  settle(1);
  prof_trace *trace = get();
  times_are_of(trace, 1, 0, "");
  prof_trace_destroy(trace);
  WITH_GPU_PROFILER(device, handle_of(stream), "op", "model", PROF_NO_ARGS,
                    { launch(kernel, stream); });
  cu.cuStreamSynchronize(stream);
  wait_for_sides(1);
  trace = stop_and_get();
  times_are_of(
      trace, 1, 1,
      " (its scopes' too early by that at most: the clock that can be read is its records' alone)");
  prof_trace_destroy(trace);
  assert_int_equal(state_of_back_end("cuda").abilities & (PROF_CAN_CLOCKS | PROF_CAN_RECORD_CLOCKS),
                   PROF_CAN_RECORD_CLOCKS);
}

static void of_scopes_alone_no_clock_can_be_read(void **state) {
  (void)state;
  begin_on(0);
  void *const stream = make_stream();
  assert_int_equal(prof_start(1), PROF_OK);
  WITH_GPU_PROFILER(device, handle_of(stream), "op", "model", PROF_NO_ARGS,
                    { cu.emulated_cuda_work(stream, KERNEL_NS); });
  cu.cuStreamSynchronize(stream);
  wait_for_sides(1);
  prof_trace *const trace = stop_and_get();
  times_are_of(trace, 0, 0, " (too early by that at most: its clock cannot be read)");
  prof_trace_destroy(trace);
}

static void at_level_2_calls_are_there(void **state) {
  (void)state;
  void *const stream = begin_recording(2), *const kernel = cu.emulated_cuda_kernel("k", KERNEL_NS);
  for (int i = 0; i < COUNT; i++)
    WITH_BASE_PROFILER(PROF_HOST, "layer", "model", PROF_NO_ARGS,
                       { cu.emulated_cuda_runtime_launch(kernel, stream); });
  cu.cuStreamSynchronize(stream);
  settle(COUNT);
  prof_trace *const trace = stop_and_get();
  nothing_is_lost(trace);
  /* without the release that brought it */
  assert_int_equal(calls_named(trace, "cudaLaunchKernel"), COUNT);
  assert_int_equal(calls_named(trace, "cuLaunchKernel"), COUNT);
  /* among the scopes of their thread */
  assert_int_equal(calls_in(trace, "cudaLaunchKernel", "layer"), COUNT);
  assert_int_equal(calls_in(trace, "cuLaunchKernel", "cudaLaunchKernel"), COUNT);
  assert_int_equal(launched_in(trace, "layer"), COUNT); /* and not in its calls */
  assert_int_equal(host_rows(trace, 0, NULL), 1);
  prof_trace_destroy(trace);
}

static void *launch_without_scopes(void *argument) {
  worker *const w = argument;
  pthread_setname_np(pthread_self(), "no scopes");
  w->tid = (uint64_t)syscall(SYS_gettid);
  for (int i = 0; i < COUNT; i++) launch(w->kernel, w->stream);
  return NULL;
}

/* Threads that prof has never met: each has a row, by the kernel's number. */
static void calls_of_threads_without_scopes(void **state) {
  (void)state;
  worker all[THREADS];
  pthread_t threads[THREADS];
  void *const stream = begin_recording(2), *const kernel = cu.emulated_cuda_kernel("k", KERNEL_NS);
  for (int i = 0; i < THREADS; i++) {
    all[i] = (worker){.stream = stream, .kernel = kernel};
    assert_int_equal(pthread_create(&threads[i], NULL, launch_without_scopes, &all[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  cu.cuStreamSynchronize(stream);
  settle(THREADS * COUNT);
  prof_trace *const trace = stop_and_get();
  nothing_is_lost(trace);
  assert_int_equal(calls_named(trace, "cuLaunchKernel"), THREADS * COUNT);
  for (int i = 0; i < THREADS; i++) {
    prof_trace_thread thread = {.size = sizeof thread};
    assert_int_equal(host_rows(trace, all[i].tid, &thread), 1);
    assert_int_equal(thread.event_count, COUNT);
  }
  /* their launches are known, too */
  assert_int_equal(find(trace, "k", "kernel").launched_here, THREADS * COUNT);
  prof_trace_destroy(trace);
}

/* Calls and what they launched come in any order. */
static void calls_that_are_told_last(void **state) {
  (void)state;
  void *const stream = begin_recording(1), *const kernel = cu.emulated_cuda_kernel("k", KERNEL_NS);
  cupti->calls_last = 1;
  for (int i = 0; i < COUNT; i++)
    WITH_BASE_PROFILER(PROF_HOST, "layer", "model", PROF_NO_ARGS, { launch(kernel, stream); });
  cu.cuStreamSynchronize(stream);
  settle(COUNT);
  prof_trace *const trace = stop_and_get();
  nothing_is_lost(trace);
  assert_int_equal(find(trace, "k", "kernel").launched_here, COUNT);
  assert_int_equal(launched_in(trace, "layer"), COUNT);
  prof_trace_destroy(trace);
}

static void a_graph_is_its_kernels(void **state) {
  (void)state;
  static prof_event event;
  prof_cursor *cursor = NULL;
  uint64_t nodes = 0;
  void *const stream = begin_recording(1), *const graph = cu.emulated_cuda_graph(
                                               cu.emulated_cuda_kernel("node", 10000), 5);
  for (int i = 0; i < COUNT; i++)
    WITH_BASE_PROFILER(PROF_HOST, "replay", "model", PROF_NO_ARGS,
                       { cu.cuGraphLaunch(graph, stream); });
  cu.cuStreamSynchronize(stream);
  settle(5 * COUNT);
  prof_trace *const trace = stop_and_get();
  nothing_is_lost(trace);
  assert_int_equal(find(trace, "node", "kernel").count, 5 * COUNT);
  assert_int_equal(launched_in(trace, "replay"), 5 * COUNT);
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  while (prof_cursor_next(cursor, &event) == 1)
    if (event.flags & PROF_EVENT_ON_DEVICE)
      nodes |= UINT64_C(1) << (uint32_t)arg_of(&event, "graph node id")->value.u64;
  assert_int_equal(nodes, 0x3e); /* 1 to 5 */
  prof_cursor_destroy(cursor);
  prof_trace_destroy(trace);
}

/* PROF_BACKEND_CUPTI_GRAPHS=whole */
static void a_graph_is_one_where_that_is_asked_for(void **state) {
  (void)state;
  setenv("PROF_BACKEND_CUPTI_GRAPHS", "whole", 1);
  void *const stream = begin_recording(1),
              *const graph = cu.emulated_cuda_graph(cu.emulated_cuda_kernel("node", 10000), 5),
              *const kernel = cu.emulated_cuda_kernel("beside", 1000);
  for (int i = 0; i < COUNT; i++)
    WITH_BASE_PROFILER(PROF_HOST, "replay", "model", PROF_NO_ARGS,
                       { cu.cuGraphLaunch(graph, stream); });
  launch(kernel, stream);
  cu.cuStreamSynchronize(stream);
  settle(COUNT + 1);
  prof_trace *const trace = stop_and_get();
  nothing_is_lost(trace);
  const found f = find(trace, "CUDA graph 1", "gpu_other");
  assert_int_equal(f.count, COUNT);
  assert_int_equal(f.launched_here, COUNT);
  assert_true(f.nanoseconds >= COUNT * 5 * UINT64_C(10000));
  assert_int_equal(find(trace, "node", "kernel").count, 0);
  assert_int_equal(find(trace, "beside", "kernel").count, 1);
  assert_int_equal(launched_in(trace, "replay"), COUNT);
  assert_int_equal(cupti->kinds, 0);
  prof_trace_destroy(trace);
}

static void a_scopes_device_time_has_its_kernel_once(void **state) {
  (void)state;
  void *const stream = begin_recording(1), *const kernel =
                                               cu.emulated_cuda_kernel("matmul", 1000000);
  for (int i = 0; i < COUNT; i++)
    WITH_BASE_PROFILER(PROF_HOST, "model", "model", PROF_NO_ARGS, {
      WITH_CUDA_PROFILER(((prof_device){PROF_DEVICE_CUDA, 0}), stream, "dense", "operator",
                         PROF_NO_ARGS, { launch(kernel, stream); });
      if (i % 2) cu.cuStreamSynchronize(stream);
    });
  settle(COUNT);
  prof_trace *const trace = stop_and_get();
  nothing_is_lost(trace);
  sides_have_their_kernels_in_them(trace);
  prof_trace_destroy(trace);
}

/* Kernels cross the edges of sides by what the clocks are wrong, and the sides stand in each other
   all the same. */
static void scopes_in_each_other_have_their_kernels_once(void **state) {
  (void)state;
  void *const stream = begin_recording(1), *const kernel =
                                               cu.emulated_cuda_kernel("matmul", 1000000);
  uint64_t outer_total, middle_total, total;
  for (int i = 0; i < COUNT; i++)
    WITH_CUDA_PROFILER(device, stream, "outer", "model", PROF_NO_ARGS, {
      WITH_CUDA_PROFILER(device, stream, "middle", "model", PROF_NO_ARGS, {
        WITH_CUDA_PROFILER(device, stream, "inner", "model", PROF_NO_ARGS, {
          launch(kernel, stream);
          launch(kernel, stream);
        });
      });
      if (i % 4 == 3) cu.cuStreamSynchronize(stream);
    });
  settle(2 * COUNT);
  wait_for_sides(3 * COUNT);
  prof_trace *const trace = stop_and_get();
  const uint64_t sides = find(trace, "outer", "model").nanoseconds, slack = sides / 50;
  nothing_is_lost(trace);
  const uint64_t outer = device_ns_of(trace, PROF_GROUP_NAME, "outer", &outer_total),
                 middle = device_ns_of(trace, PROF_GROUP_NAME, "middle", &middle_total);
  const uint64_t inner = device_ns_of(trace, PROF_GROUP_NAME, "inner", &total);
  assert_in_range(outer + middle + inner, sides - slack, sides + slack);
  assert_in_range(inner, find(trace, "matmul", "kernel").nanoseconds - slack, sides + slack);
  assert_in_range(outer_total, sides - slack, sides + slack);
  assert_true(total <= middle_total && middle_total <= outer_total);
  prof_trace_destroy(trace);
}

static int records_on(void *stream) {
  static prof_event event;
  prof_cursor *cursor = NULL;
  int count = 0;
  prof_trace *const trace = get();
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  while (prof_cursor_next(cursor, &event) == 1)
    count += is_text(event.category, event.category_bytes, "kernel") &&
             event.stream == handle_of(stream);
  prof_cursor_destroy(cursor);
  prof_trace_destroy(trace);
  return count;
}

/* The default stream has two names. However often a program changes between them, other streams'
   kernels stand with their scopes. */
static void streams_of_two_names(void **state) {
  (void)state;
  enum { RECORDINGS = 110, EACH = 40 };
  begin_recording(1);
  void *const kernel = cu.emulated_cuda_kernel("k", 1000);
  for (int i = 0; i < RECORDINGS; i++) {
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): CU_STREAM_LEGACY */
    for (uintptr_t k = 0; k < EACH; k++)
      WITH_CUDA_PROFILER(device, (void *)(k % 2), "default", "c", PROF_NO_ARGS,
                         { launch(kernel, (void *)(k % 2)); });
    cu.cuStreamSynchronize(NULL);
    assert_int_equal(prof_stop(), PROF_OK);
    start(1);
  }
  void *const later = make_stream();
  for (int i = 0; i < COUNT; i++)
    WITH_CUDA_PROFILER(device, later, "later", "c", PROF_NO_ARGS, { launch(kernel, later); });
  cu.cuStreamSynchronize(later);
  WAIT_WHILE(records_on(later) < COUNT); /* late ones before them count, too */
  assert_int_equal(records_on(later), COUNT);
  assert_int_equal(prof_stop(), PROF_OK);
}

static void *work(void *own) {
  const worker *const w = own;
  cu.cuCtxPushCurrent_v2(w->context);
  void *const stream = make_stream(), *const kernel = cu.emulated_cuda_kernel(w->name, 20000);
  for (int i = 0; i < COUNT; i++)
    WITH_BASE_PROFILER(PROF_HOST, w->name, "model", PROF_NO_ARGS, { launch(kernel, stream); });
  cu.cuStreamSynchronize(stream);
  return NULL;
}

static void threads_have_what_they_launched(void **state) {
  (void)state;
  static worker all[THREADS];
  begin_recording(1);
  for (int i = 0; i < THREADS; i++) {
    snprintf(all[i].name, sizeof all[i].name, "worker %d", i);
    cu.cuCtxGetCurrent(&all[i].context);
    assert_int_equal(pthread_create(&all[i].thread, NULL, work, &all[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(all[i].thread, NULL);
  settle((uint64_t)THREADS * COUNT);
  prof_trace *const trace = stop_and_get();
  nothing_is_lost(trace);
  for (int i = 0; i < THREADS; i++) assert_int_equal(launched_in(trace, all[i].name), COUNT);
  prof_trace_destroy(trace);
}

static void *work_once(void *own) {
  const worker *const w = own;
  cu.cuCtxPushCurrent_v2(w->context);
  WITH_BASE_PROFILER(PROF_HOST, "once", "model", PROF_NO_ARGS, { launch(w->kernel, w->stream); });
  return NULL;
}

/* Each takes the place of the previous one, and its records come when many have ended. */
static void threads_that_have_ended_have_what_they_launched(void **state) {
  enum { MANY = 100 };
  (void)state;
  worker w = {.stream = begin_recording(1), .kernel = cu.emulated_cuda_kernel("short", 1000)};
  cu.cuCtxGetCurrent(&w.context);
  for (int i = 0; i < MANY; i++) {
    assert_int_equal(pthread_create(&w.thread, NULL, work_once, &w), 0);
    pthread_join(w.thread, NULL);
  }
  settle(MANY);
  prof_trace *const trace = stop_and_get();
  nothing_is_lost(trace);
  assert_int_equal(launched_in(trace, "once"), MANY);
  prof_trace_destroy(trace);
}

static void another_tool_has_it(void **state) {
  (void)state;
  load_cupti("libcupti.so.13");
  cupti->holder = "Nsight";
  begin_on(0);
  start(1);
  void *const stream = make_stream();
  for (int i = 0; i < COUNT; i++)
    WITH_GPU_PROFILER(device, handle_of(stream), "op", "model", PROF_NO_ARGS,
                      { cu.emulated_cuda_work(stream, 1000); });
  cu.cuStreamSynchronize(stream);
  sums s = {0};
  for (unsigned naps = 0; s.sides < COUNT && hang_nap(&naps);) {
    prof_trace *const trace = get();
    s = sums_of(trace);
    prof_trace_destroy(trace);
  }
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(s.sides, COUNT);
  assert_int_equal(s.records, 0);
  const prof_backend_state about = state_of_back_end("cuda");
  assert_string_equal(about.reason,
                      "works, but records no kernels by itself: another tool uses CUPTI in this "
                      "process: Nsight; scopes on streams are recorded");
  assert_int_equal(cupti->kinds, 0);
  cupti->holder = NULL; /* it has gone: the next recording has kernels */
  start(1);
  cu.emulated_cuda_work(stream, 1000);
  cu.cuStreamSynchronize(stream);
  settle(1);
  prof_trace *const trace = stop_and_get();
  assert_int_equal(find(trace, "busy", "kernel").count, 1);
  prof_trace_destroy(trace);
}

static void what_is_refused_is_said(void **state) {
  (void)state;
  load_cupti("libcupti.so.13");
  cupti->enable_error = 35;
  begin_on(0);
  start(1);
  assert_int_equal(prof_stop(), PROF_OK);
  const prof_backend_state about = state_of_back_end("cuda");
  assert_string_equal(
      about.reason,
      "works, but records no kernels by itself: cuptiActivityEnable: "
      "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35): for root or CAP_SYS_ADMIN alone, until the nvidia "
      "module has NVreg_RestrictProfilingToAdminUsers=0; scopes on streams are recorded");
  assert_int_equal(cupti->subscribers, 0);
  assert_int_equal(cupti->kinds, 0);
}

/* A CUPTI of another major than the driver's; a virtual machine, or MIG, that does not permit it.
   Scopes go on. */
static void what_does_not_fit_is_said(void **state) {
  (void)state;
  static const struct {
    int32_t error;
    const char *reason;
  } cases[] = {
      {14, "cuptiSubscribe_v2: CUPTI_ERROR_NOT_COMPATIBLE (14); scopes on streams are recorded"},
      {40,
       "(40): the virtual GPU's host must permit it (vGPU plugin: enable_profiling); scopes on "
       "streams are recorded"},
      {41,
       "(41): confidential computing permits it in devtools mode alone; scopes on streams are "
       "recorded"},
      {43,
       "(43): a MIG instance must have its GPU instance alone; scopes on streams are recorded"}};
  load_cupti("libcupti.so.13");
  begin_on(0);
  void *const stream = make_stream();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    cupti->subscribe_error = cases[i].error;
    start(1);
    for (int k = 0; k < COUNT; k++)
      WITH_GPU_PROFILER(device, handle_of(stream), "op", "model", PROF_NO_ARGS,
                        { cu.emulated_cuda_work(stream, 1000); });
    cu.cuStreamSynchronize(stream);
    const prof_backend_state about = state_of_back_end("cuda");
    if (!strstr(about.reason, cases[i].reason)) fail_msg("%s", about.reason);
    wait_for_sides(COUNT * (i + 1));
    prof_trace *const trace = stop_and_get();
    assert_int_equal(sums_of(trace).sides, COUNT * (i + 1));
    prof_trace_destroy(trace);
  }
  assert_int_equal(cupti->kinds, 0);
}

/* The process has it: prof brings none. */
static void one_that_is_newer_than_the_driver_is_said(void **state) {
  (void)state;
  load_cupti("libcupti.so.13");
  begin_on(0);
  cupti->subscribe_error = 14;
  driver->driver_version = 12040;
  start(1);
  assert_int_equal(prof_stop(), PROF_OK);
  assert_string_equal(state_of_back_end("cuda").reason,
                      "works, but records no kernels by itself: cuptiSubscribe_v2: "
                      "CUPTI_ERROR_NOT_COMPATIBLE (14): CUPTI is CUDA 13's, the driver serves up "
                      "to 12.4: PROF_BACKEND_CUPTI names another; scopes on streams are recorded");
}

static void no_cupti(void **state) {
  (void)state;
  begin_on(0);
  name_cupti("libnothing.so");
  start(1);
  assert_int_equal(prof_stop(), PROF_OK);
  const prof_backend_state about = state_of_back_end("cuda");
  assert_non_null(strstr(about.reason, "PROF_BACKEND_CUPTI: "));
  assert_non_null(strstr(about.reason, "libnothing.so"));
}

static void what_has_no_times_is_counted(void **state) {
  (void)state;
  void *const stream = begin_recording(1);
  cupti->no_times = 3;
  for (int i = 0; i < COUNT; i++) cu.emulated_cuda_work(stream, 1000);
  cu.cuStreamSynchronize(stream);
  settle(COUNT);
  prof_trace *const trace = stop_and_get();
  assert_int_equal(find(trace, "busy", "kernel").count, COUNT - 3);
  assert_int_equal(sums_of(trace).lost[PROF_LOSS_DEVICE_TIMES], 3);
  prof_trace_destroy(trace);
}

static void what_stands_behind_an_unknown_record_is_counted(void **state) {
  (void)state;
  void *const stream = begin_recording(1);
  cupti->unknown = 1;
  for (int i = 0; i < COUNT; i++) cu.emulated_cuda_work(stream, 1000);
  cu.cuStreamSynchronize(stream);
  settle(COUNT + 1);
  prof_trace *const trace = stop_and_get();
  assert_int_equal(find(trace, "busy", "kernel").count, COUNT);
  assert_int_equal(sums_of(trace).lost[PROF_LOSS_DEVICE_FULL], 1);
  prof_trace_destroy(trace);
}

static void what_was_not_done_at_the_stop_is_counted(void **state) {
  (void)state;
  void *const stream = begin_recording(1);
  cu.emulated_cuda_work(stream, 1000);
  cu.cuStreamSynchronize(stream);
  cu.emulated_cuda_work(stream, 20000000000); /* longer than anybody waits */
  settle(1);
  prof_trace *const trace = stop_and_get();
  const sums s = sums_of(trace);
  assert_int_equal(s.records, 1);
  assert_string_equal(s.reason, "it was not done with its work when recording stopped");
  assert_int_equal(s.lost[PROF_LOSS_DEVICE_LATE], 1);
  assert_int_equal(s.lost[PROF_LOSS_DEVICE_TIMES], 0);
  prof_trace_destroy(trace);
}

/* What was done is there, in each of them. */
static void a_context_may_go_while_it_records(void **state) {
  (void)state;
  begin_recording(1);
  for (int i = 0; i < COUNT; i++) {
    void *const context = begin_on(0), *const stream = make_stream();
    for (int k = 0; k < COUNT; k++)
      WITH_GPU_PROFILER(device, handle_of(stream), "op", "model", PROF_NO_ARGS,
                        { cu.emulated_cuda_work(stream, KERNEL_NS); });
    if (i % 2) cu.cuStreamSynchronize(stream);
    assert_int_equal(cu.cuCtxDestroy_v2(context), 0);
  }
  settle(COUNT / 2 * COUNT);
  prof_trace *const trace = stop_and_get();
  assert_in_range(find(trace, "busy", "kernel").count, COUNT / 2 * COUNT, COUNT * COUNT);
  assert_int_equal(driver->gone_touches, 0);
  assert_int_equal(cupti->kinds, 0);
  prof_trace_destroy(trace);
}

/* A kernel goes wrong: what was recorded before it is there, the program's own calls have the
   error, and recording ends as always. */
static void what_was_recorded_before_an_error_is_there(void **state) {
  (void)state;
  void *const stream = begin_recording(1);
  for (int i = 0; i < COUNT; i++)
    WITH_GPU_PROFILER(device, handle_of(stream), "op", "model", PROF_NO_ARGS,
                      { cu.emulated_cuda_work(stream, 1000); });
  cu.cuStreamSynchronize(stream);
  __atomic_store_n(&driver->last_error, 719, __ATOMIC_RELAXED);
  assert_int_equal(cu.cuStreamSynchronize(stream), 719);
  settle(COUNT);
  prof_trace *const trace = stop_and_get();
  assert_int_equal(find(trace, "busy", "kernel").count, COUNT);
  assert_int_equal(cupti->subscribers, 0);
  prof_trace_destroy(trace);
}

static void recordings_come_and_go(void **state) {
  (void)state;
  enum { TIMES = 100 };
  load_cupti("libcupti.so.13");
  begin_on(0);
  void *const stream = make_stream();
  for (int i = 0; i < TIMES; i++) {
    start(1 + (uint32_t)i % 2);
    cu.emulated_cuda_work(stream, 1000);
    cu.cuStreamSynchronize(stream);
    assert_int_equal(prof_stop(), PROF_OK);
  }
  settle(TIMES); /* a collector that had no processor when recording stopped ends after it */
  prof_trace *const trace = get();
  const sums s = sums_of(trace);
  assert_int_equal(come(&s), TIMES); /* each there or counted */
  assert_in_range(s.records, TIMES / 2, TIMES);
  prof_trace_destroy(trace);
  assert_int_equal(cupti->subscribers, 0);
  assert_int_equal(cupti->kinds, 0);
  assert_int_equal(cupti->requests, cupti->returned);
  assert_int_equal(cupti->never, 0);
}

static void without_cuda_nothing_is_loaded_or_said(void **state) {
  (void)state;
  name_cupti("libcupti.so.13");
  start(2);
  WITH_BASE_PROFILER(PROF_HOST, "layer", "model", PROF_NO_ARGS, { usleep(60000); });
  prof_trace *const trace = stop_and_get();
  const sums s = sums_of(trace);
  assert_int_equal(s.devices, 0);
  nothing_is_lost(trace);
  prof_trace_destroy(trace);
  assert_null(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD));
  assert_null(dlopen(getenv("PROF_BACKEND_CUPTI"), RTLD_NOW | RTLD_NOLOAD));
}

/* Who records scopes alone does not touch CUPTI. */
static void nobody_asks_cupti_for_scopes(void **state) {
  (void)state;
  load_cupti("libcupti.so.13");
  begin_on(0);
  assert_int_equal(prof_start(1), PROF_OK);
  void *const stream = make_stream();
  for (int i = 0; i < COUNT; i++)
    WITH_GPU_PROFILER(device, handle_of(stream), "op", "model", PROF_NO_ARGS,
                      { cu.emulated_cuda_work(stream, 1000); });
  cu.cuStreamSynchronize(stream);
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(cupti->calls, 0);
}

/* CUDA 11.8's: it records all calls or none, its records are shorter, and nobody has a name. */
static void an_older_release(void **state) {
  (void)state;
  load_cupti("libcupti.so.11.8");
  begin_on(0);
  start(1);
  void *const stream = make_stream(), *const kernel = cu.emulated_cuda_kernel("k", 1000);
  for (int i = 0; i < COUNT; i++)
    WITH_BASE_PROFILER(PROF_HOST, "layer", "model", PROF_NO_ARGS,
                       { cu.emulated_cuda_runtime_launch(kernel, stream); });
  cu.cuStreamSynchronize(stream);
  settle(COUNT);
  prof_trace *const trace = stop_and_get();
  nothing_is_lost(trace);
  assert_int_equal(find(trace, "k", "kernel").launched_here, COUNT);
  assert_int_equal(launched_in(trace, "layer"), COUNT);
  assert_int_equal(calls_named(trace, "cudaLaunchKernel"), 0);
  assert_int_equal(cupti->kinds, 0);
  prof_trace_destroy(trace);
}

/* More than its buffers hold, while the collector returns them in order of arrival. */
static void many_more_than_fit(void **state) {
  (void)state;
  enum { MANY = 30000 };
  void *const stream = begin_recording(1), *const kernel = cu.emulated_cuda_kernel("k", 0);
  for (int i = 0; i < MANY; i++) launch(kernel, stream);
  cu.cuStreamSynchronize(stream);
  settle(MANY);
  prof_trace *const trace = stop_and_get();
  const sums s = sums_of(trace);
  assert_int_equal(come(&s), MANY);
  assert_int_equal(s.records, MANY);
  prof_trace_destroy(trace);
  assert_true(cupti->requests >= 5); /* of a MiB each: 256 bytes a launch */
}

/* So many threads use CUDA that the next one gets no buffer. This release drops the records that
   have no buffer, and says how many those were. */
static void no_buffer_is_left(void **state) {
  (void)state;
  void *const stream = begin_recording(1);
  cupti->hoards = 600;
  for (int i = 0; i < COUNT; i++) cu.emulated_cuda_work(stream, 1000);
  cu.cuStreamSynchronize(stream);
  settle(COUNT);
  prof_trace *trace = stop_and_get();
  const sums s = sums_of(trace);
  assert_int_equal(s.records, 0);
  assert_true(s.lost[PROF_LOSS_DEVICE_FULL] >= COUNT); /* and their calls */
  assert_in_range(cupti->refused, 600 - 512 + 1, 600);
  assert_int_equal(cupti->requests, cupti->returned + cupti->refused);
  prof_trace_destroy(trace);
  start(1); /* all came back: what is recorded now has them again */
  for (int i = 0; i < COUNT; i++) cu.emulated_cuda_work(stream, 1000);
  cu.cuStreamSynchronize(stream);
  settle(s.lost[PROF_LOSS_DEVICE_FULL] + COUNT);
  trace = stop_and_get();
  assert_int_equal(find(trace, "busy", "kernel").count, COUNT);
  assert_int_equal(sums_of(trace).lost[PROF_LOSS_DEVICE_FULL], s.lost[PROF_LOSS_DEVICE_FULL]);
  prof_trace_destroy(trace);
}

/* This release would crash if it were given none: each beyond the last is one that nobody reads,
   and counted. */
static void an_older_release_has_no_buffer_left(void **state) {
  (void)state;
  load_cupti("libcupti.so.11.8");
  begin_on(0);
  start(1);
  void *const stream = make_stream();
  cupti->hoards = 600;
  for (int i = 0; i < COUNT; i++) cu.emulated_cuda_work(stream, 1000);
  cu.cuStreamSynchronize(stream);
  settle(600 - 512 + 1);
  prof_trace *const trace = stop_and_get();
  const sums s = sums_of(trace);
  assert_int_equal(cupti->refused, 0);
  assert_int_equal(s.records, 0);
  assert_in_range(s.lost[PROF_LOSS_DEVICE_FULL], 600 - 512 + 1, 600);
  prof_trace_destroy(trace);
}

static void a_child_leaves_it_alone(void **state) {
  (void)state;
  int status = -1;
  void *const stream = begin_recording(1);
  cu.emulated_cuda_work(stream, 1000);
  cu.cuStreamSynchronize(stream);
  settle(1);
  const pid_t child = fork();
  if (child == 0) {
    const uint32_t calls = cupti->calls; /* recording goes on in the child */
    WITH_BASE_PROFILER(PROF_HOST, "child", "model", PROF_NO_ARGS, { usleep(50000); });
    prof_stop();
    _exit(cupti->calls == calls ? 0 : 1);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  prof_trace *const trace = stop_and_get();
  assert_int_equal(sums_of(trace).records, 1);
  prof_trace_destroy(trace);
}

/* A flush that never ends holds up neither the stop nor the process's end. */
static void a_flush_that_hangs(void **state) {
  (void)state;
  void *const stream = begin_recording(1);
  cu.emulated_cuda_work(stream, 1000);
  cu.cuStreamSynchronize(stream);
  hang_guard();
  __atomic_store_n(&cupti->hangs, 1, __ATOMIC_RELAXED);
  assert_int_equal(prof_stop(), PROF_OK);
}

#define TESTS(X)                                      \
  X(each_kernel_is_there_once_with_what_launched_it)  \
  X(kernels_have_names_that_people_read)              \
  X(copies_and_fills_say_how_much_and_which_way)      \
  X(a_kernel_stands_on_the_row_of_its_streams_scopes) \
  X(the_clock_that_is_read_is_its_records)            \
  X(of_scopes_alone_no_clock_can_be_read)             \
  X(at_level_2_calls_are_there)                       \
  X(calls_of_threads_without_scopes)                  \
  X(calls_that_are_told_last)                         \
  X(a_graph_is_its_kernels)                           \
  X(a_graph_is_one_where_that_is_asked_for)           \
  X(threads_have_what_they_launched)                  \
  X(a_scopes_device_time_has_its_kernel_once)         \
  X(scopes_in_each_other_have_their_kernels_once)     \
  X(streams_of_two_names)                             \
  X(threads_that_have_ended_have_what_they_launched)  \
  X(another_tool_has_it)                              \
  X(what_is_refused_is_said)                          \
  X(what_does_not_fit_is_said)                        \
  X(one_that_is_newer_than_the_driver_is_said)        \
  X(no_cupti)                                         \
  X(what_has_no_times_is_counted)                     \
  X(what_stands_behind_an_unknown_record_is_counted)  \
  X(what_was_not_done_at_the_stop_is_counted)         \
  X(a_context_may_go_while_it_records)                \
  X(what_was_recorded_before_an_error_is_there)       \
  X(recordings_come_and_go)                           \
  X(without_cuda_nothing_is_loaded_or_said)           \
  X(nobody_asks_cupti_for_scopes)                     \
  X(an_older_release)                                 \
  X(many_more_than_fit)                               \
  X(no_buffer_is_left)                                \
  X(an_older_release_has_no_buffer_left)              \
  X(a_child_leaves_it_alone)                          \
  X(a_flush_that_hangs)
ALONE_TESTS

int main(int argc, char **argv) { return alone_main(argc, argv); }
