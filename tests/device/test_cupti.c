/* What CUPTI records, on an emulated driver and an emulated CUPTI (vendors: no device is behind
   them). Each kernel, copy and fill appears once, on its stream, with the scope that launched
   it. */
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
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "alone.h"
#include "cupti_program.h"
#include "hang_guard.h"

static const prof_device device = {PROF_DEVICE_CUDA, 0};

static void begin(void) {}

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
  X(threads_that_have_ended_have_what_they_launched)
ALONE_TESTS

int main(int argc, char **argv) { return alone_main(argc, argv); }
