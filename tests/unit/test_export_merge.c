/* prof merge: the description of a capture, and its place on the time line.
   tests/python/test_merge.py has the files. */
#include "export/merge.h"
#include "trace_checks.h"

enum { MS = 1000000, PIDS_OF_KERNEL = 1 << 22, PIDS_MADE = 1 << 30 };

/* ---- the description of a capture ---- */

/* A pair whose CLOCK_REALTIME is ahead of the start's, and is read within a width of its own. */
static void put_clock(const capture *c, prof_i_head *meta, uint64_t ns, uint64_t width_ns,
                      int64_t wall_ahead_ns, uint64_t wall_width_ns) {
  long_record r;
  long_begin(&r, PROF_I_KIND_CLOCK, CAPTURE_START + ns, 0, 0);
  long_word(&r, CAPTURE_START + ns);
  long_word(&r, capture_header(c)->start_monotonic_ns + ns);
  long_word(&r, capture_header(c)->start_realtime_ns + ns + (uint64_t)wall_ahead_ns);
  long_word(&r, width_ns);
  long_word(&r, 0);
  long_word(&r, wall_width_ns);
  long_end(&r, meta);
}

static prof_i_merge_capture describe(int64_t wall_ahead_ns, int32_t rank, int32_t world_size) {
  capture c;
  prof_i_merge_capture found;
  capture_begin(&c, 1 << 20);
  prof_i_head *const meta = capture_meta(&c);
  capture_header(&c)->rank = rank;
  capture_header(&c)->world_size = world_size;
  capture_header(&c)->pid = 77;
  strcpy(capture_header(&c)->boot_id, "boot");
  capture_site(meta, 1, "a", "cat", 1);
  put_clock(&c, meta, 0, 40, 0, 300);
  put_clock(&c, meta, 100 * MS, 25, wall_ahead_ns, 200);
  capture_plain(capture_chunk(&c, PROF_I_UNIT_BYTES, 1), CAPTURE_START, 100 * MS, 1);
  prof_trace *const trace = open_capture(&c);
  prof_i_merge_describe(trace, &found);
  prof_trace_destroy(trace);
  capture_end(&c);
  return found;
}

/* That of the monotonic clock, of the last reading of the wall clock, and the steps of that. */
static void an_error_is_of_both_clocks_and_of_a_step(void **state) {
  (void)state;
  const prof_i_merge_capture none = describe(0, -1, 0), forward = describe(7 * MS, -1, 0),
                             back = describe(-7 * MS, -1, 0);
  assert_int_equal(none.error_ns, 40 + 200);
  assert_int_equal(forward.error_ns, 7 * MS + 40 + 200);
  assert_int_equal(back.error_ns, 7 * MS + 40 + 200);
}

static void a_capture_says_who_recorded_it_and_when(void **state) {
  (void)state;
  const prof_i_merge_capture found = describe(0, 3, 4);
  assert_string_equal(found.host, "host");
  assert_string_equal(found.boot_id, "boot");
  assert_int_equal(found.pid, 77);
  assert_int_equal(found.rank, 3);
  assert_false(found.has_processes);
  assert_int_equal(found.start_ns, 5000000);
  assert_int_equal(found.start_unix_ns, 1700000000000000000u);
  assert_int_equal(found.duration_ns, 100 * MS);
  assert_int_equal(describe(0, 0, 2).rank, 0);
  assert_int_equal(describe(0, 0, 1).rank, -1);
  assert_int_equal(describe(0, 0, -1).rank, 0); /* a size that is not known */
}

/* ---- the place on the time line ---- */

/* Times in ms. Its wall clock is 1 s ahead of CLOCK_MONOTONIC. */
static prof_i_merge_capture capture_of(const char *host, uint32_t pid, uint64_t start,
                                       uint64_t duration) {
  prof_i_merge_capture made = {.pid = pid,
                               .rank = -1,
                               .start_ns = start * MS,
                               .start_unix_ns = (1000 + start) * MS,
                               .duration_ns = duration * MS,
                               .error_ns = 100};
  strcpy(made.host, host);
  strcpy(made.boot_id, host);
  return made;
}

static void captures_of_a_host_are_placed_by_its_monotonic_clock(void **state) {
  (void)state;
  prof_i_merge_capture all[] = {capture_of("a", 1, 500, 10), capture_of("a", 2, 300, 10),
                                capture_of("a", 3, 520, 10), capture_of("a", 4, 530, 10)};
  const int64_t limit = 1 * MS + 100 + 100;
  all[1].start_unix_ns += (uint64_t)limit; /* this may be the readings' error */
  all[2].start_unix_ns += (uint64_t)limit + 1;
  all[3].start_unix_ns -= (uint64_t)limit + 1;
  assert_int_equal(prof_i_merge_align(all, 4, false), PROF_OK);
  const uint64_t placed[] = {1500, 1300, 1520, 1530};
  const int64_t moved[] = {0, 0, limit + 1, -limit - 1};
  for (int i = 0; i < 4; i++) {
    assert_int_equal(all[i].host_number, 0);
    assert_int_equal(all[i].placed_unix_ns, placed[i] * MS);
    assert_int_equal(all[i].wall_moved_ns, moved[i]);
    assert_int_equal(all[i].pid_offset, 0);
    assert_false(all[i].is_process_labelled);
  }
}

/* Each capture may have begun and ended by its error earlier or later. */
static void hosts_that_may_have_recorded_together_are_placed_by_their_wall_clocks(void **state) {
  (void)state;
  for (uint64_t gap = 199; gap <= 201; gap++) {
    prof_i_merge_capture all[] = {capture_of("a", 1, 500, 10), capture_of("b", 1, 100, 10)};
    all[1].start_unix_ns = all[0].start_unix_ns + 10 * MS + gap;
    const int status = prof_i_merge_align(all, 2, false);
    assert_int_equal(status, gap > 200 ? PROF_E_INVALID : PROF_OK);
    if (status != PROF_OK) break;
    assert_int_equal(all[1].host_number, 1);
    assert_int_equal(all[1].wall_moved_ns, 0);
    assert_int_equal(all[0].placed_unix_ns, 1500 * MS);
    assert_int_equal(all[1].placed_unix_ns, 1510 * MS + gap);
    assert_string_equal(all[1].label, "process 1 on b");
    assert_true(all[0].is_process_labelled && all[1].is_process_labelled);
  }
}

static void hosts_that_did_not_are_refused_with_the_time_between(void **state) {
  (void)state;
  prof_i_merge_capture all[] = {capture_of("late", 1, 9000, 10), capture_of("early", 1, 500, 2500),
                                capture_of("early", 2, 400, 10)};
  assert_int_equal(prof_i_merge_align(all, 3, false), PROF_E_INVALID);
  /* 9 s - 3 s, less twice the error */
  assert_non_null(strstr(prof_last_error(),
                         "host 'late' begin 6.000000 s after those of host 'early' have ended"));
  all[0].start_unix_ns += 200 + 1000;
  assert_int_equal(prof_i_merge_align(all, 3, false), PROF_E_INVALID);
  assert_non_null(strstr(prof_last_error(), "begin 6.000001 s after"));
}

static void boots_of_one_host_are_refused_as_what_they_are(void **state) {
  (void)state;
  prof_i_merge_capture all[] = {capture_of("a", 1, 9000, 10), capture_of("b", 2, 500, 10)};
  snprintf(all[1].host, sizeof all[1].host, "a");
  assert_int_equal(prof_i_merge_align(all, 2, false), PROF_E_INVALID);
  assert_non_null(strstr(prof_last_error(),
                         "after those of host 'a' (of another boot, or imported) have ended"));
}

static void a_long_capture_joins_hosts_that_recorded_one_after_the_other(void **state) {
  (void)state;
  prof_i_merge_capture all[] = {capture_of("a", 1, 500, 1000), capture_of("b", 1, 600, 10),
                                capture_of("c", 1, 900, 10), capture_of("d", 1, 1600, 10)};
  assert_int_equal(prof_i_merge_align(all, 3, false), PROF_OK);
  assert_int_equal(prof_i_merge_align(all, 4, false), PROF_E_INVALID);
  assert_non_null(strstr(prof_last_error(), "host 'd' begin 0.100000 s after those of host 'a'"));
}

static void unaligned_hosts_begin_with_the_first_capture_of_the_first_host(void **state) {
  (void)state;
  prof_i_merge_capture all[] = {capture_of("a", 1, 500, 10), capture_of("b", 1, 70000, 10),
                                capture_of("a", 2, 480, 10), capture_of("b", 2, 69990, 10)};
  assert_int_equal(prof_i_merge_align(all, 4, true), PROF_OK);
  const uint64_t placed[] = {1500, 1490, 1480, 1480};
  for (int i = 0; i < 4; i++) assert_int_equal(all[i].placed_unix_ns, placed[i] * MS);
}

static void a_boot_that_is_not_known_is_a_host_of_its_own(void **state) {
  (void)state;
  prof_i_merge_capture all[] = {capture_of("", 1, 500, 10), capture_of("", 2, 500, 10)};
  assert_int_equal(prof_i_merge_align(all, 2, false), PROF_OK);
  assert_int_equal(all[1].host_number, 1);
}

static void a_host_that_is_not_known_has_no_name(void **state) {
  (void)state;
  char text[PROF_I_MERGE_HOST_BYTES];
  prof_i_merge_capture all[] = {capture_of("", 1, 500, 10), capture_of("", 2, 9000, 10)};
  all[0].host[0] = all[1].host[0] = '\0';
  assert_string_equal(prof_i_merge_host_text(&all[0], text), "an unknown host");
  assert_int_equal(prof_i_merge_align(all, 2, false), PROF_E_INVALID);
  assert_non_null(strstr(prof_last_error(), "the captures of an unknown host begin"));
  assert_non_null(strstr(prof_last_error(), "after those of an unknown host have ended"));
  assert_int_equal(prof_i_merge_align(all, 2, true), PROF_OK);
  assert_null(strstr(all[1].label, " on "));
  snprintf(all[0].host, sizeof all[0].host, "node1");
  assert_string_equal(prof_i_merge_host_text(&all[0], text), "host 'node1'");
}

/* ---- processes ---- */

static void processes_of_one_number_get_others(void **state) {
  (void)state;
  prof_i_merge_capture all[] = {capture_of("a", 7, 500, 10), capture_of("a", 8, 500, 10),
                                capture_of("a", 7, 500, 10), capture_of("a", 8, 500, 10),
                                capture_of("a", 9, 500, 10), capture_of("a", 9, 500, 10)};
  all[5].has_processes = true;
  all[1].rank = 0;
  assert_int_equal(prof_i_merge_align(all, 6, false), PROF_OK);
  const uint64_t offsets[] = {0, 0, PIDS_MADE - 7, PIDS_MADE + 1 - 8, 0, PIDS_OF_KERNEL};
  for (int i = 0; i < 6; i++) assert_int_equal(all[i].pid_offset, offsets[i]);
  assert_string_equal(all[1].label, "rank 0");
  assert_string_equal(all[0].label, "process 7");
  assert_string_equal(all[2].label, "process 7 (2)");
  assert_string_equal(all[3].label, "process 8");
  assert_string_equal(all[5].label, "process 9 (2)");
  for (int i = 0; i < 6; i++) assert_int_equal(all[i].is_process_labelled, i != 0 && i != 4);
}

static void imported_traces_have_room_for_255_more(void **state) {
  (void)state;
  enum { MOST = 256 };
  static prof_i_merge_capture all[MOST + 1];
  for (uint32_t i = 0; i <= MOST; i++) {
    all[i] = capture_of("a", 1, 500, 10);
    all[i].has_processes = true;
  }
  assert_int_equal(prof_i_merge_align(all, MOST, false), PROF_OK);
  assert_int_equal(all[MOST - 1].pid_offset, 255ull * PIDS_OF_KERNEL);
  assert_int_equal(prof_i_merge_align(all, MOST + 1, false), PROF_E_INVALID);
  assert_non_null(strstr(prof_last_error(), "more than 255"));
}

static void moved_numbers_meet_no_other_capture(void **state) {
  (void)state;
  prof_i_merge_capture all[] = {capture_of("a", 1, 500, 10), capture_of("a", 1, 500, 10),
                                capture_of("a", 5, 500, 10), capture_of("a", 5, 500, 10)};
  for (int i = 0; i < 2; i++) {
    all[i].has_processes = true;
    all[i].least_pid = 1;
    all[i].most_pid = PIDS_OF_KERNEL + 1;
  }
  for (int i = 2; i < 4; i++) all[i].least_pid = all[i].most_pid = 5;
  all[3].pid = all[3].least_pid = all[3].most_pid = PIDS_MADE;
  assert_int_equal(prof_i_merge_align(all, 4, false), PROF_OK);
  assert_int_equal(all[1].pid_offset, 2 * PIDS_OF_KERNEL);
  assert_int_equal(all[2].pid_offset, PIDS_MADE + 1 - 5);
}

/* One trace may have the numbers of all groups. */
static void numbers_too_far_apart_are_moved_as_well(void **state) {
  (void)state;
  prof_i_merge_capture all[] = {capture_of("a", 1, 500, 10), capture_of("a", 1, 500, 10)};
  for (int i = 0; i < 2; i++) {
    all[i].has_processes = true;
    all[i].most_pid = INT32_MAX;
  }
  assert_int_equal(prof_i_merge_align(all, 2, false), PROF_OK);
  assert_int_equal(all[1].pid_offset, PIDS_OF_KERNEL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_error_is_of_both_clocks_and_of_a_step),
      cmocka_unit_test(a_capture_says_who_recorded_it_and_when),
      cmocka_unit_test(captures_of_a_host_are_placed_by_its_monotonic_clock),
      cmocka_unit_test(hosts_that_may_have_recorded_together_are_placed_by_their_wall_clocks),
      cmocka_unit_test(hosts_that_did_not_are_refused_with_the_time_between),
      cmocka_unit_test(boots_of_one_host_are_refused_as_what_they_are),
      cmocka_unit_test(a_long_capture_joins_hosts_that_recorded_one_after_the_other),
      cmocka_unit_test(unaligned_hosts_begin_with_the_first_capture_of_the_first_host),
      cmocka_unit_test(a_boot_that_is_not_known_is_a_host_of_its_own),
      cmocka_unit_test(a_host_that_is_not_known_has_no_name),
      cmocka_unit_test(processes_of_one_number_get_others),
      cmocka_unit_test(imported_traces_have_room_for_255_more),
      cmocka_unit_test(moved_numbers_meet_no_other_capture),
      cmocka_unit_test(numbers_too_far_apart_are_moved_as_well)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
