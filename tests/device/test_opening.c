/* Back ends that take their time to open. A caller that may wait does so until it is open. A caller
   that may not wait gets a report of what it went without. On the emulated vendor. */
#define _GNU_SOURCE
#include <prof/device.h>
#include <prof/profiler.h>
#include <prof/sampler.h>
#include <prof/trace.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "alone.h"
#include "emulated/emulated.h"
#include "hang_guard.h"
#include "sampled.h"

static const prof_device device = {EMULATED_TYPE, 0};
static uint32_t is_at_it, is_held; /* atomic. is_held: until somebody lets it go */

static void take_time(void) {
  __atomic_store_n(&is_at_it, 1, __ATOMIC_RELEASE);
  usleep(100000);
  WAIT_WHILE(__atomic_load_n(&is_held, __ATOMIC_ACQUIRE));
}

static void wait_until_somebody_is_at_it(void) {
  WAIT_WHILE(!__atomic_load_n(&is_at_it, __ATOMIC_ACQUIRE));
  assert_true(__atomic_load_n(&is_at_it, __ATOMIC_ACQUIRE));
}

static int look_slowly(const prof_backend_host *host) {
  take_time();
  return emulated_backend.probe ? emulated_backend.probe(host) : PROF_BACKEND_OK;
}

static int open_slowly(const prof_backend_host *host, prof_backend_self **self_out) {
  take_time();
  return emulated_backend.open(host, self_out);
}

static int open_for_nothing(const prof_backend_host *host, prof_backend_self **self_out) {
  (void)host;
  (void)self_out;
  take_time();
  return PROF_BACKEND_ABSENT;
}

static const char *why_not(prof_backend_self *self) {
  (void)self;
  return "there is none today";
}

static void begin(void) {}

static void use(const prof_backend *table) { assert_int_equal(prof_backend_add(table), PROF_OK); }

static void *have_a_scope(void *stream) {
  WITH_GPU_PROFILER(device, stream, "first", "test", PROF_NO_ARGS, {});
  return NULL;
}

/* A scope looks at the emulated vendor alone: others' libraries may be on this machine. */
static void a_sampler_waits_for_who_is_looking(void **state) {
  (void)state;
  prof_backend table = emulated_backend;
  pthread_t other;
  const prof_sampler_options options = {
      .size = sizeof options, .interval_ns = 10000000, .devices = "0,1"};
  table.probe = look_slowly;
  use(&table);
  emulated_stream *const stream = emulated_create(0);
  assert_int_equal(prof_start(1), PROF_OK);
  assert_int_equal(pthread_create(&other, NULL, have_a_scope, stream), 0);
  wait_until_somebody_is_at_it();
  if (prof_sampler_start(&options) != PROF_OK) fail_msg("%s", prof_last_error());
  stop_sampler();
  assert_int_equal(pthread_join(other, NULL), 0);
  assert_int_equal(prof_stop(), PROF_OK);
  emulated_destroy(stream);
}

/* On a busy machine the device's times may come late. */
static void wait_for_times(void) {
  prof_trace_device about = {.size = sizeof about};
  unsigned naps = 0;
  do {
    prof_trace *trace = NULL;
    assert_int_equal(prof_get(&trace), PROF_OK);
    assert_int_equal(prof_trace_device_get(trace, 0, &about), PROF_OK);
    prof_trace_destroy(trace);
  } while ((about.result != PROF_BACKEND_OK || about.scope_count == 0) && hang_nap(&naps));
}

/* One scope opens the back end, and another one comes meanwhile, which does not wait. */
static prof_trace_device two_at_once(void *stream, bool are_times_to_come, char **text_out) {
  prof_trace_device about = {.size = sizeof about};
  prof_trace *trace = NULL;
  pthread_t other;
  __atomic_store_n(&is_held, 1, __ATOMIC_RELEASE);
  assert_int_equal(prof_start(1), PROF_OK);
  assert_int_equal(pthread_create(&other, NULL, have_a_scope, stream), 0);
  wait_until_somebody_is_at_it();
  WITH_GPU_PROFILER(device, stream, "meanwhile", "test", PROF_NO_ARGS, {});
  __atomic_store_n(&is_held, 0, __ATOMIC_RELEASE);
  assert_int_equal(pthread_join(other, NULL), 0);
  have_a_scope(stream);
  if (are_times_to_come) wait_for_times();
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(prof_get(&trace), PROF_OK);
  assert_int_equal(prof_trace_device_get(trace, 0, &about), PROF_OK);
  assert_int_equal(prof_trace_device_text(trace, 0, text_out), PROF_OK);
  prof_trace_destroy(trace);
  return about;
}

static void a_scope_that_was_too_early_is_counted_and_says_why(void **state) {
  (void)state;
  prof_backend table = emulated_backend;
  prof_health health = {.size = sizeof health};
  char *text;
  table.open = open_slowly;
  use(&table);
  emulated_stream *const stream = emulated_create(0);
  const prof_trace_device about = two_at_once(stream, true, &text);
  assert_int_equal(about.result, PROF_BACKEND_OK);
  assert_true(about.scope_count >= 1);
  if (!strstr(text, "the host's side alone of some: another thread was just opening its back end"))
    fail_msg("%s", text);
  assert_int_equal(prof_health_get(&health), PROF_OK);
  assert_true(health.lost_count[PROF_LOSS_DEVICE_TIMES] >= 1);
  assert_string_equal(health.device_warning, "");
  prof_free(text);
  emulated_destroy(stream);
}

/* What comes to nothing says so, also to who asked before that was known. */
static void what_does_not_open_has_its_own_reason(void **state) {
  (void)state;
  prof_backend table = emulated_backend;
  char *text;
  table.open = open_for_nothing;
  table.last_error = why_not;
  use(&table);
  emulated_stream *const stream = emulated_create(0);
  const prof_trace_device about = two_at_once(stream, false, &text);
  assert_int_equal(about.result, PROF_BACKEND_ABSENT);
  if (!strstr(about.reason, "there is none today")) fail_msg("%s", text);
  prof_free(text);
  emulated_destroy(stream);
}

#define TESTS(X)                                        \
  X(a_sampler_waits_for_who_is_looking)                 \
  X(a_scope_that_was_too_early_is_counted_and_says_why) \
  X(what_does_not_open_has_its_own_reason)
ALONE_TESTS

int main(int argc, char **argv) { return alone_main(argc, argv); }
