/* What is said where a device has none of its own times, on an emulated device: by health, under
   the table, and in exports. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

#include "scope_sums.h"

#include "alone.h"

static void expect_in(const char *text, const char *part) {
  if (!strstr(text, part)) fail_msg("'%s' is not in '%s'", part, text);
}

/* By health, under the table, and in both exports: after a stop. */
static void expect_warning(const char *device_and_why) {
  char *table = NULL, *json = NULL;
  prof_trace *const trace = get();
  expect_in(health().device_warning, device_and_why);
  assert_int_equal(prof_trace_table(trace, NULL, &table), PROF_OK);
  expect_in(table, ": the host's side of its scopes alone: ");
  expect_in(table, strstr(device_and_why, "alone: "));
  assert_int_equal(prof_trace_json(trace, NULL, &json, NULL), PROF_OK);
  expect_in(json, "\"name\":\"prof: see the arguments\"");
  expect_in(json, "\"devices without times\":[\"");
  expect_in(strstr(json, "\"prof\": {"), "\"devices\":[\"");
  expect_in(strstr(json, "\"devices\":[\""), strstr(device_and_why, "alone: "));
  prof_free(json);
  prof_free(table);
  prof_trace_destroy(trace);
}

/* A back end that makes no event says why, in each place that reports errors. */
static int makes_no_event(prof_backend_self *self, uint64_t stream, void **event_out) {
  (void)self, (void)stream, (void)event_out;
  return PROF_BACKEND_NO_MEMORY;
}

static void one_that_makes_no_event_is_said(void **state) {
  (void)state;
  enum { NOBODYS = 31, COUNT = 50 };
  prof_backend broken = emulated_backend;
  broken.name = "broken";
  broken.device_type = NOBODYS;
  broken.event_create = makes_no_event;
  assert_int_equal(prof_backend_add(&broken), PROF_OK);
  emulated_stream *const stream = emulated_create(1);
  for (int i = 0; i < COUNT; i++)
    WITH_GPU_PROFILER(((prof_device){NOBODYS, 1}), (uintptr_t)stream, "kernel", "test",
                      PROF_NO_ARGS, {});
  expect_in(health().device_warning, "no memory");
  prof_trace *const trace = get();
  const sums s = sums_of(trace);
  assert_int_equal(s.lost_times, COUNT);
  assert_int_equal(s.lost_full, 0);
  prof_trace_destroy(trace);
  assert_int_equal(prof_stop(), PROF_OK);
  emulated_destroy(stream);
}

static void nobody_serves_it_is_said(void **state) {
  (void)state;
  const prof_device nobodys = {77, 3};
  assert_string_equal(health().device_warning, "");
  WITH_GPU_PROFILER(nobodys, 5, "kernel", "test", PROF_NO_ARGS, {});
  /* also while it records */
  expect_in(health().device_warning,
            "device 77:3: the host's side of its scopes alone: no back end serves devices of that "
            "type; PROF_BACKENDS names plug-ins, and prof doctor lists all back ends");
  assert_int_equal(prof_stop(), PROF_OK);
  expect_warning(
      "device 77:3: the host's side of its scopes alone: no back end serves devices of that type; "
      "PROF_BACKENDS names plug-ins, and prof doctor lists all back ends");
}

static void a_refused_stream_is_said_until_another_is_served(void **state) {
  (void)state;
  emulated_stream *const stream = emulated_create(0);
  emulated_fault.refused_every = 1;
  launch(stream, 3, 0);
  char expected[128];
  snprintf(expected, sizeof expected,
           "device 12:0: the host's side of its scopes alone: stream 0x%llx: the vendor's library "
           "says an error",
           (unsigned long long)(uintptr_t)stream);
  expect_in(health().device_warning, expected);
  assert_int_equal(prof_stop(), PROF_OK);
  collector_has_ended();
  expect_warning(expected);
  emulated_fault.refused_every = 0;
  assert_int_equal(prof_start(1), PROF_OK);
  launch(stream, 2, 0);
  emulated_wait(stream);
  settle(3 + 2); /* those that were refused count, too */
  assert_string_equal(health().device_warning, "");
  assert_int_equal(prof_stop(), PROF_OK);
  assert_string_equal(health().device_warning, "");
  emulated_destroy(stream);
}

/* What was said in one capture is said again in the next. */
static void a_refused_stream_is_said_in_each_capture(void **state) {
  (void)state;
  const prof_options another = {.size = sizeof another, .level = 1};
  emulated_stream *const stream = emulated_create(0);
  emulated_fault.refused_every = 1;
  for (int i = 0; i < 3; i++) {
    launch(stream, 3, 0);
    assert_int_equal(prof_stop(), PROF_OK);
    expect_warning("device 12:0: the host's side of its scopes alone: stream 0x");
    assert_int_equal(prof_clear(), PROF_OK);
    assert_int_equal(prof_start_with(&another), PROF_OK);
  }
  emulated_destroy(stream);
}

static void a_device_that_is_never_done_is_said(void **state) {
  (void)state;
  emulated_stream *const stream = emulated_create(0);
  hold(1);
  launch(stream, 2, 0);
  assert_string_equal(health().device_warning, ""); /* it may be on its way */
  assert_int_equal(prof_stop(), PROF_OK);
  collector_has_ended();
  hold(0);
  expect_warning(
      "device 12:0: the host's side of its scopes alone: it was not done with its work when "
      "recording stopped");
  emulated_destroy(stream);
}

static void events_without_times_are_said(void **state) {
  (void)state;
  emulated_stream *const stream = emulated_create(0);
  emulated_fault.zero_every = 1;
  launch(stream, 2, 0);
  emulated_wait(stream);
  settle(2);
  assert_int_equal(prof_stop(), PROF_OK);
  expect_warning("device 12:0: the host's side of its scopes alone: its events tell no times");
  emulated_destroy(stream);
}

static void a_device_whose_streams_are_all_captured_is_said(void **state) {
  (void)state;
  emulated_stream *const stream = emulated_create(0);
  emulated_fault.is_capturing = 1;
  launch(stream, 2, 0);
  assert_int_equal(prof_stop(), PROF_OK);
  expect_in(health().device_warning,
            "device 12:0: the host's side of its scopes alone: the stream is being captured into a "
            "graph");
  emulated_destroy(stream);
}

#define TESTS(X)                                      \
  X(one_that_makes_no_event_is_said)                  \
  X(nobody_serves_it_is_said)                         \
  X(a_refused_stream_is_said_until_another_is_served) \
  X(a_refused_stream_is_said_in_each_capture)         \
  X(a_device_that_is_never_done_is_said)              \
  X(events_without_times_are_said)                    \
  X(a_device_whose_streams_are_all_captured_is_said)
ALONE_TESTS

int main(int argc, char **argv) { return alone_main(argc, argv); }
