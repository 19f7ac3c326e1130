/* When records begin, on an emulated driver and an emulated CUPTI (vendors: no device is behind
   them). Inside the program's cuInit(), where libprof_cuda.so is injected, from the first kernel
   on; and what a trace says of records that begin later than requested. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <prof/profiler.h>
#include <prof/trace.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "alone.h"
#include "cupti_program.h"
#include "hang_guard.h"

#if defined(__SANITIZE_THREAD__)
enum { WITH_TSAN = 1 }; /* which lets no child of a fork from among threads make threads */
#else
enum { WITH_TSAN = 0 };
#endif

static void begin(void) {}

/* ---- the program ---- */

/* How many kinds of records CUPTI must deliver now, requested by any thread. */
static uint32_t kinds_on(void) { return __atomic_load_n(&cupti->kinds, __ATOMIC_RELAXED); }

/* The driver will load it. It stands beside the libraries of which this program has one already. */
static void inject(void) {
  char path[512];
  snprintf(path, sizeof path, "%s/../../libprof_cuda.so", getenv("PROF_TEST_PLUGIN_DIR"));
  assert_int_equal(access(path, R_OK), 0);
  setenv("CUDA_INJECTION64_PATH", path, 1);
}

static void *launch_all(void) {
  void *const stream = make_stream(), *const kernel = cu.emulated_cuda_kernel("first", 1000);
  for (int i = 0; i < COUNT; i++)
    WITH_BASE_PROFILER(PROF_HOST, "layer", "model", PROF_NO_ARGS, { launch(kernel, stream); });
  cu.cuStreamSynchronize(stream);
  return stream;
}

static void all_are_there_from_the_first_on(const prof_trace *trace) {
  char *text = NULL;
  const found f = find(trace, "first", "kernel");
  nothing_is_lost(trace);
  assert_int_equal(f.count, COUNT);
  assert_int_equal(f.launched_here, COUNT);
  assert_int_equal(launched_in(trace, "layer"), COUNT);
  assert_int_equal(late_ns(trace), 0);
  assert_int_equal(prof_trace_device_text(trace, 0, &text), PROF_OK);
  if (strstr(text, "its records began")) fail_msg("%s", text);
  prof_free(text);
}

/* CUPTI is at rest again: until then the collector may be at it, where it has no processor. */
static void nothing_is_left_on(void) {
  WAIT_WHILE(__atomic_load_n(&cupti->subscribers, __ATOMIC_RELAXED));
  assert_int_equal(__atomic_load_n(&cupti->subscribers, __ATOMIC_RELAXED), 0);
  assert_int_equal(kinds_on(), 0);
}

static void ends_with_all_of_them(void) {
  prof_trace *const trace = stop_and_get();
  all_are_there_from_the_first_on(trace);
  prof_trace_destroy(trace);
  nothing_is_left_on();
}

/* ---- injected ---- */

static void an_injected_program_has_its_first_kernels(void **state) {
  (void)state;
  inject();
  name_cupti("libcupti.so.13");
  assert_int_equal(prof_start(1), PROF_OK);
  begin_on(0);
  load_cupti("libcupti.so.13"); /* prof's, if it is there already */
  assert_true(kinds_on() > 0);  /* before the first kernel, with no look of prof's thread between */
  launch_all();
  settle(COUNT);
  ends_with_all_of_them();
}

/* Before prof's own thread has looked again. */
static void an_injected_program_that_is_over_at_once(void **state) {
  (void)state;
  inject();
  load_cupti("libcupti.so.13");
  assert_int_equal(prof_start(1), PROF_OK);
  begin_on(0);
  launch_all();
  ends_with_all_of_them();
}

/* Its first recording lets go of CUPTI, and the second is as any. */
static void injected_recordings_come_and_go(void **state) {
  (void)state;
  inject();
  load_cupti("libcupti.so.13");
  assert_int_equal(prof_start(2), PROF_OK);
  begin_on(0);
  void *const stream = launch_all();
  settle(COUNT);
  assert_int_equal(prof_stop(), PROF_OK);
  nothing_is_left_on();
  /* in between: none of them */
  for (int i = 0; i < COUNT; i++) cu.emulated_cuda_work(stream, 1000);
  cu.cuStreamSynchronize(stream);
  assert_int_equal(prof_start(1), PROF_OK);
  cu.emulated_cuda_work(stream, 1000);
  cu.cuStreamSynchronize(stream);
  settle(COUNT + 1);
  prof_trace *const trace = stop_and_get();
  assert_int_equal(find(trace, "first", "kernel").count, COUNT);
  assert_int_equal(find(trace, "busy", "kernel").count, 1);
  assert_int_equal(late_ns(trace), 0);
  prof_trace_destroy(trace);
  nothing_is_left_on();
}

/* Its pools are made when the devices are known: what was handed out before is not there, and the
   trace says since when. */
static void with_memory_records_begin_later_and_say_so(void **state) {
  (void)state;
  const prof_options options = {.size = sizeof options, .level = 1, .devices = PROF_DEVICES_MEMORY};
  inject();
  load_cupti("libcupti.so.13");
  assert_int_equal(prof_start_with(&options), PROF_OK);
  begin_on(0);
  WAIT_WHILE(!kinds_on());
  launch_all();
  settle(COUNT);
  prof_trace *const trace = stop_and_get();
  assert_true(late_ns(trace) > 0);
  prof_trace_destroy(trace);
  nothing_is_left_on();
}

static void injected_and_not_recording_it_is_not_there(void **state) {
  (void)state;
  inject();
  load_cupti("libcupti.so.13");
  begin_on(0);
  launch_all();
  assert_int_equal(__atomic_load_n(&cupti->calls, __ATOMIC_RELAXED), 0);
  assert_int_equal(prof_start(1), PROF_OK); /* waits until records have begun */
  assert_true(kinds_on() > 0);
  launch_all();
  settle(COUNT);
  prof_trace *const trace = stop_and_get();
  assert_int_equal(find(trace, "first", "kernel").count, COUNT);
  assert_int_equal(late_ns(trace), 0);
  prof_trace_destroy(trace);
}

static void scopes_alone_are_scopes_alone(void **state) {
  (void)state;
  const prof_options options = {.size = sizeof options, .level = 1, .devices = PROF_DEVICES_SCOPES};
  inject();
  load_cupti("libcupti.so.13");
  assert_int_equal(prof_start_with(&options), PROF_OK);
  begin_on(0);
  launch_all();
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(__atomic_load_n(&cupti->calls, __ATOMIC_RELAXED), 0);
}

static void an_injected_program_beside_another_tool(void **state) {
  (void)state;
  sums s = {0};
  inject();
  load_cupti("libcupti.so.13");
  cupti->holder = "Nsight";
  assert_int_equal(prof_start(1), PROF_OK);
  begin_on(0);
  assert_int_equal(kinds_on(), 0);
  for (unsigned naps = 0; !s.devices && hang_nap(&naps);) { /* until the trace reports it */
    prof_trace *const trace = get();
    s = sums_of(trace);
    prof_trace_destroy(trace);
  }
  if (!strstr(s.reason, "another tool uses CUPTI in this process: Nsight"))
    fail_msg("%s", s.reason);
  assert_int_equal(prof_stop(), PROF_OK);
  cupti->holder = NULL;
  assert_int_equal(prof_start(1), PROF_OK);
  WAIT_WHILE(!kinds_on()); /* a start waits for a second at most */
  launch_all();
  settle(COUNT);
  assert_int_equal(prof_stop(), PROF_OK);
  nothing_is_left_on();
}

static void a_driver_that_does_not_begin(void **state) {
  (void)state;
  inject();
  load_cupti("libcupti.so.13");
  assert_int_equal(prof_start(1), PROF_OK);
  load();
  driver->init_error = 999;
  assert_int_equal(cu.cuInit(0), 999);
  prof_trace *const trace = stop_and_get();
  nothing_is_lost(trace);
  prof_trace_destroy(trace);
}

static void *begin_too(void *unused) {
  (void)unused;
  return cu.cuInit(0) == 0 ? &cu : NULL;
}

/* The collector asks all the while: one that waits for the driver, while the driver waits for prof,
   would hold up all. */
static void many_threads_begin_at_once(void **state) {
  (void)state;
  pthread_t threads[THREADS];
  inject();
  load_cupti("libcupti.so.13");
  cupti->begins_ms = 50;
  start(1);
  load();
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, begin_too, NULL), 0);
  for (int i = 0; i < THREADS; i++) {
    void *result = NULL;
    pthread_join(threads[i], &result);
    assert_non_null(result);
  }
  begin_on(0);
  launch_all();
  settle(COUNT);
  ends_with_all_of_them();
}

/* ---- late ---- */

/* The thread that started has waited long enough: work that runs from now on is not recorded until
   CUPTI has begun. */
static void a_start_that_did_not_wait_to_the_end_is_late(void **state) {
  (void)state;
  load_cupti("libcupti.so.13");
  cupti->begins_ms = 1000 * hang_seconds();
  begin_on(0);
  start(1);
  assert_int_equal(kinds_on(), 0);
  __atomic_store_n(&cupti->begins_ms, 0, __ATOMIC_RELAXED);
  WAIT_WHILE(!kinds_on());
  launch_all();
  settle(1);
  prof_trace *const trace = stop_and_get();
  assert_true(late_ns(trace) > 0);
  prof_trace_destroy(trace);
}

/* The program loads the driver when recording is under way already: prof does not load it, and is
   there soon after. */
static void a_program_that_begins_late(void **state) {
  (void)state;
  name_cupti("libcupti.so.13");
  start(1);
  usleep(100000);
  assert_null(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD));
  load_cupti("libcupti.so.13");
  begin_on(0);
  void *const stream = make_stream();
  WAIT_WHILE(!__atomic_load_n(&cupti->kinds, __ATOMIC_RELAXED));
  for (int i = 0; i < COUNT; i++) cu.emulated_cuda_work(stream, 1000);
  cu.cuStreamSynchronize(stream);
  settle(COUNT);
  prof_trace *const trace = stop_and_get();
  assert_int_equal(find(trace, "busy", "kernel").count, COUNT);
  assert_true(late_ns(trace) > 0);
  prof_trace_destroy(trace);
}

/* It is over before prof has looked again: nothing is there, and the trace says why that may be. */
static void a_program_that_is_over_soon(void **state) {
  (void)state;
  char *text = NULL;
  name_cupti("libcupti.so.13");
  start(1);
  usleep(100000);
  load_cupti("libcupti.so.13");
  begin_on(0);
  void *const stream = make_stream();
  for (int i = 0; i < COUNT; i++) cu.emulated_cuda_work(stream, 1000);
  cu.cuStreamSynchronize(stream);
  prof_trace *const trace = stop_and_get();
  assert_true(find(trace, "busy", "kernel").count <= COUNT);
  assert_true(late_ns(trace) > 0);
  assert_int_equal(prof_trace_device_text(trace, 0, &text), PROF_OK);
  if (!strstr(text, "its records began up to ") ||
      !strstr(text, " after the program began with it: what ran before is not there, nor counted"))
    fail_msg("%s", text);
  prof_free(text);
  assert_int_equal(prof_trace_json(trace, NULL, &text, NULL), PROF_OK);
  if (!strstr(text, "\"prof: no loss, but records began late\"") ||
      !strstr(text, "\"records began late\":[\"cuda:0 ") || strstr(text, "devices without times"))
    fail_msg("%s", text);
  prof_free(text);
  prof_trace_destroy(trace);
}

/* Somebody records at level 1, pauses, and the program begins with CUDA meanwhile: what ran then
   was not asked for. */
static void a_pause_is_not_missed(void **state) {
  static const char who = 0;
  (void)state;
  name_cupti("libcupti.so.13");
  assert_int_equal(prof_level_want_with(&who, 1, PROF_DEVICES_RECORDS), PROF_OK);
  usleep(100000);
  assert_int_equal(prof_level_want_with(&who, PROF_LEVEL_PAUSED, PROF_DEVICES_RECORDS), PROF_OK);
  usleep(1200000);
  load_cupti("libcupti.so.13");
  begin_on(0);
  void *const stream = make_stream();
  assert_int_equal(prof_level_want_with(&who, 1, PROF_DEVICES_RECORDS), PROF_OK);
  cu.emulated_cuda_work(stream, 1000);
  cu.cuStreamSynchronize(stream);
  settle(1);
  prof_trace *const trace = get();
  assert_int_equal(late_ns(trace), 0);
  prof_trace_destroy(trace);
  assert_int_equal(prof_level_want(&who, 0), PROF_OK);
}

/* Its parent had waited for CUDA when it was made. */
static void a_child_is_not_as_late_as_its_parent(void **state) {
  (void)state;
  int status;
  if (WITH_TSAN) {
    puts("skip: ThreadSanitizer ends a child that makes a thread");
    skip();
  }
  name_cupti("libcupti.so.13");
  start(1);
  usleep(100000);
  const pid_t child = fork();
  if (child == 0) {
    prof_stop();
    load_cupti("libcupti.so.13");
    begin_on(0);
    void *const stream = make_stream();
    start(1);
    cu.emulated_cuda_work(stream, 1000);
    cu.cuStreamSynchronize(stream);
    settle(1);
    prof_trace *const trace = stop_and_get();
    _exit(late_ns(trace) == 0 ? 0 : 1);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  prof_stop();
}

/* The program uses CUDA already, and goes on with it when recording begins anew: nothing was
   missed. */
static void records_from_the_begin_are_not_late(void **state) {
  (void)state;
  void *const stream = begin_recording(1);
  for (int i = 0; i < 2; i++) {
    for (int k = 0; k < COUNT; k++) cu.emulated_cuda_work(stream, 1000);
    cu.cuStreamSynchronize(stream);
    settle(COUNT);
    prof_trace *const trace = stop_and_get();
    assert_int_equal(find(trace, "busy", "kernel").count, (i + 1) * COUNT);
    assert_int_equal(late_ns(trace), 0);
    prof_trace_destroy(trace);
    if (i == 0) start(1);
  }
}

#define TESTS(X)                                  \
  X(an_injected_program_has_its_first_kernels)    \
  X(an_injected_program_that_is_over_at_once)     \
  X(injected_recordings_come_and_go)              \
  X(with_memory_records_begin_later_and_say_so)   \
  X(injected_and_not_recording_it_is_not_there)   \
  X(scopes_alone_are_scopes_alone)                \
  X(an_injected_program_beside_another_tool)      \
  X(a_driver_that_does_not_begin)                 \
  X(many_threads_begin_at_once)                   \
  X(a_start_that_did_not_wait_to_the_end_is_late) \
  X(a_program_that_begins_late)                   \
  X(a_program_that_is_over_soon)                  \
  X(records_from_the_begin_are_not_late)          \
  X(a_pause_is_not_missed)                        \
  X(a_child_is_not_as_late_as_its_parent)
ALONE_TESTS

int main(int argc, char **argv) { return alone_main(argc, argv); }
