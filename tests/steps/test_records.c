/* Kernels that a device with a coarse clock puts at one moment. The launch of each is looked for
   among all that began then. Their export takes few more steps than that of others. */
#define _GNU_SOURCE
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

#include "count_steps.h"
#include "device/collector.h"
#include "device/emulated/emulated.h"
#include "hang_guard.h"

enum { MANY = 20000, TIMES = 4 };

static prof_trace *get(void) {
  prof_trace *trace = NULL;
  assert_int_equal(prof_get(&trace), PROF_OK);
  return trace;
}

static uint64_t record_count(const prof_trace *trace) {
  prof_trace_device about = {.size = sizeof about};
  return prof_trace_device_get(trace, 0, &about) == PROF_OK ? about.record_count : 0;
}

static uint64_t records_now(void) {
  prof_trace *const trace = get();
  const uint64_t count = record_count(trace);
  prof_trace_destroy(trace);
  return count;
}

/* Of an export of so many more kernels than were recorded before. */
static uint64_t steps_of_export(bool are_of_one_moment, uint64_t count) {
  const prof_options options = {
      .size = sizeof options, .level = 1, .devices = PROF_DEVICES_RECORDS};
  char *text = NULL;
  emulated_stream *const stream = emulated_create(1);
  assert_int_equal(prof_start_with(&options), PROF_OK);
  emulated_fault.record_is_past = are_of_one_moment;
  __atomic_store_n(&emulated_fault.drain_hangs, are_of_one_moment, __ATOMIC_RELAXED);
  for (int i = 0; i < MANY; i++) emulated_launch(stream, 0);
  emulated_wait(stream);
  __atomic_store_n(&emulated_fault.drain_hangs, 0, __ATOMIC_RELAXED);
  WAIT_WHILE(records_now() < count);
  assert_int_equal(prof_stop(), PROF_OK);
  collector_has_ended();
  prof_trace *const trace = get();
  assert_int_equal(record_count(trace), count);
  const uint64_t begun = steps_now;
  assert_int_equal(prof_trace_json(trace, NULL, &text, NULL), PROF_OK);
  const uint64_t took = steps_now - begun;
  prof_free(text);
  prof_trace_destroy(trace);
  emulated_destroy(stream);
  return took;
}

static void many_of_one_moment_are_exported_in_as_many_steps_as_others(void **state) {
  (void)state;
  hang_guard();
  emulated_fault.has_clock = 1;
  emulated_fault.clock_offset_ns = 7000000000;
  assert_int_equal(prof_backend_add(&emulated_backend), PROF_OK);
  const uint64_t others = steps_of_export(false, MANY), both = steps_of_export(true, 2 * MANY);
  printf("  %d kernels: %llu steps, with as many of one moment %llu\n", MANY,
         (unsigned long long)others, (unsigned long long)both);
  assert_true(others > 0 && both < TIMES * others);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(many_of_one_moment_are_exported_in_as_many_steps_as_others)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
