/* Levels that are set from outside: whoever reads the capture shows each change or counts it as
   untold, and never both. */
#define _GNU_SOURCE
#include <prof/profiler.h>
#include <prof/trace.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/layout.h"
#include "fault/support/captures.h"

enum { PLACES = PROF_I_LEVEL_CHANGES, MORE = 6 };

static struct {
  uint32_t set; /* changes from outside so far */
  char path[512];
} own;

static void start(void) {
  static uint64_t cap_bytes = 1 << 20; /* another one is another capture */
  const prof_options options = {.size = sizeof options,
                                .level = 1,
                                .policy = PROF_POLICY_KEEP,
                                .path = captures_path("out.json"),
                                .cap_bytes = cap_bytes += 1 << 16};
  prof_health health = {.size = sizeof health};
  assert_int_equal(prof_start_with(&options), PROF_OK);
  assert_int_equal(prof_health_get(&health), PROF_OK);
  snprintf(own.path, sizeof own.path, "%s", health.capture_path);
  own.set = 0;
}

static void set_levels(uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    assert_int_equal(prof_trace_set_level(own.path, own.set++ % 2 ? 1 : 2, NULL), PROF_OK);
}

/* All in their order, and each once. */
static void check(prof_trace *trace, uint64_t untold) {
  prof_trace_info info = {.size = sizeof info};
  uint64_t latest_ns = 0;
  prof_trace_info_get(trace, &info);
  assert_int_equal(info.untold_change_count, untold);
  assert_int_equal(info.change_count, own.set - untold);
  for (uint32_t i = 0; i < info.change_count; i++) {
    prof_trace_change change = {.size = sizeof change};
    assert_int_equal(prof_trace_change_get(trace, i, &change), PROF_OK);
    assert_int_equal(change.reason, PROF_REASON_OUTSIDE);
    assert_int_equal(change.level_before + change.level_after, 3);
    assert_true(change.at_ns >= latest_ns);
    latest_ns = change.at_ns;
  }
  prof_trace_destroy(trace);
}

/* The process does not look for them here. */
static void check_file(uint64_t untold) {
  prof_trace *trace = NULL;
  assert_int_equal(prof_trace_open(own.path, &trace), PROF_OK);
  check(trace, untold);
}

static void check_own(uint64_t untold) {
  prof_trace *trace = NULL;
  assert_int_equal(prof_get(&trace), PROF_OK);
  check(trace, untold);
}

static void a_reader_counts_more_than_the_header_keeps_before_the_process_looks(void **state) {
  (void)state;
  start();
  for (uint32_t round = 1; round <= 3; round++) {
    set_levels(PLACES + MORE);
    check_file(round * MORE);
    check_own(round * MORE);
    check_file(round * MORE);
  }
  assert_int_equal(prof_stop(), PROF_OK);
  check_file(3 * MORE);
}

static void fill(void) {
  prof_health health = {.size = sizeof health};
  while (!health.is_full) {
    for (int i = 0; i < 1000; i++) WITH_BASE_PROFILER(PROF_HOST, "fills", "x", PROF_NO_ARGS, {});
    assert_int_equal(prof_health_get(&health), PROF_OK);
  }
}

static uint64_t untold_now(void) {
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  assert_int_equal(prof_get(&trace), PROF_OK);
  prof_trace_info_get(trace, &info);
  prof_trace_destroy(trace);
  return info.untold_change_count;
}

static void in_a_full_capture_the_header_keeps_them(void **state) {
  (void)state;
  start();
  fill();
  uint64_t untold = 0;
  while (!untold) { /* until the last extent has no room for a record */
    set_levels(2);
    untold = untold_now();
    assert_in_range(untold, 0, 2);
    check_own(untold);
    check_file(untold);
  }
  set_levels(PLACES);
  check_own(untold + PLACES);
  check_file(untold + PLACES);
  prof_clear();
  check_own(untold + PLACES);
  set_levels(PLACES);
  untold = untold_now(); /* a clear need not make room for them */
  check_own(untold);
  assert_int_equal(prof_stop(), PROF_OK);
  check_file(untold);
}

static int end(void **state) {
  (void)state;
  prof_stop();
  captures_clear();
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(
          a_reader_counts_more_than_the_header_keeps_before_the_process_looks, end),
      cmocka_unit_test_teardown(in_a_full_capture_the_header_keeps_them, end),
  };
  if (!captures_make_folder(false)) return 1;
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  captures_remove_folder();
  return failed;
}
