/* Levels that are set from outside: whoever reads the capture shows each change or counts it as
   untold, and never both. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <prof/profiler.h>
#include <prof/trace.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "fault/support/captures.h"
#include "format/layout.h"

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

/* ---- killed ---- */

static prof_i_header *map_header(void) {
  const int fd = open(own.path, O_RDWR | O_CLOEXEC);
  assert_true(fd >= 0);
  prof_i_header *const header =
      mmap(NULL, PROF_I_HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  assert_true(header != MAP_FAILED);
  return header;
}

/* As prof_trace_set_level(), up to where it sets the level. Returns the change's number. */
static uint64_t tell_alone(prof_i_header *header, uint32_t before, uint32_t after) {
  struct timespec now;
  const uint64_t number = ++header->level_change_count, place = (number - 1) % PLACES;
  clock_gettime(CLOCK_MONOTONIC, &now);
  header->level_change_made[place] = number << 1;
  header->level_changes[place] =
      (prof_i_level_change){number, (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec,
                            before | (uint64_t)after << 32};
  return number;
}

static void a_change_whose_writer_was_killed_before_it_is_none(void **state) {
  (void)state;
  start();
  prof_i_header *const header = map_header();
  set_levels(1); /* 1 -> 2 */
  tell_alone(header, 2, 0);
  check_file(0);
  check_own(0);
  tell_alone(header, 2, 0);
  check_file(0);
  set_levels(MORE); /* 2 -> 1, ... */
  check_file(0);
  check_own(0);
  set_levels(PLACES);
  check_own(0);
  tell_alone(header, header->level, 0);
  munmap(header, PROF_I_HEADER_BYTES);
  assert_int_equal(prof_stop(), PROF_OK);
  check_file(0);
}

static void a_change_whose_writer_was_killed_after_it_is_one(void **state) {
  (void)state;
  start();
  prof_i_header *const header = map_header();
  for (int round = 0; round < 2; round++) {
    tell_alone(header, 1, 2);
    header->level = 2;
    own.set++;
    check_file(0);
    if (round) check_own(0); /* once the process looks before the next one, once not */
    set_levels(1);           /* 2 -> 1 */
    check_file(0);
    check_own(0);
  }
  munmap(header, PROF_I_HEADER_BYTES);
  assert_int_equal(prof_stop(), PROF_OK);
}

/* The second to tell is the first to set the level. */
static void two_at_once_are_both_shown(void **state) {
  (void)state;
  start();
  prof_i_header *const header = map_header();
  set_levels(1); /* 1 -> 2 */
  const uint64_t first = tell_alone(header, 1, 2), second = tell_alone(header, 2, 1);
  header->level_change_made[(second - 1) % PLACES] = second << 1 | 1;
  header->level_change_made[(first - 1) % PLACES] = first << 1 | 1;
  own.set += 2;
  check_file(0);
  check_own(0);
  munmap(header, PROF_I_HEADER_BYTES);
  assert_int_equal(prof_stop(), PROF_OK);
}

static int end(void **state) {
  (void)state;
  prof_stop();
  captures_clear();
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(a_reader_counts_more_than_the_header_keeps_before_the_process_looks,
                                end),
      cmocka_unit_test_teardown(in_a_full_capture_the_header_keeps_them, end),
      cmocka_unit_test_teardown(a_change_whose_writer_was_killed_before_it_is_none, end),
      cmocka_unit_test_teardown(a_change_whose_writer_was_killed_after_it_is_one, end),
      cmocka_unit_test_teardown(two_at_once_are_both_shown, end),
  };
  if (!captures_make_folder(false)) return 1;
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  captures_remove_folder();
  return failed;
}
