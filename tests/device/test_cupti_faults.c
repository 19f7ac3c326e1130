/* What CUPTI refuses, loses or hangs in, on an emulated driver and an emulated CUPTI (vendors: no
   device is behind them). Also other tools, older releases, and a program that begins late. */
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
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "alone.h"
#include "cupti_program.h"
#include "hang_guard.h"

static const prof_device device = {PROF_DEVICE_CUDA, 0};

static void begin(void) {}

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

#define TESTS(X)                                     \
  X(another_tool_has_it)                             \
  X(what_is_refused_is_said)                         \
  X(what_does_not_fit_is_said)                       \
  X(one_that_is_newer_than_the_driver_is_said)       \
  X(no_cupti)                                        \
  X(what_has_no_times_is_counted)                    \
  X(what_stands_behind_an_unknown_record_is_counted) \
  X(what_was_not_done_at_the_stop_is_counted)        \
  X(a_context_may_go_while_it_records)               \
  X(what_was_recorded_before_an_error_is_there)      \
  X(recordings_come_and_go)                          \
  X(without_cuda_nothing_is_loaded_or_said)          \
  X(nobody_asks_cupti_for_scopes)                    \
  X(an_older_release)                                \
  X(many_more_than_fit)                              \
  X(no_buffer_is_left)                               \
  X(an_older_release_has_no_buffer_left)             \
  X(a_child_leaves_it_alone)                         \
  X(a_flush_that_hangs)
ALONE_TESTS

int main(int argc, char **argv) { return alone_main(argc, argv); }
