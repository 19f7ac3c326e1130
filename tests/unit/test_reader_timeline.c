/* Ticks to nanoseconds: on the pairs exactly, between them straight, never back, whatever the pairs
   are. */
#include "reader/timeline.h"
#include "trace_checks.h"

static prof_i_timeline make(prof_i_time_pair *pairs, uint32_t count, uint64_t hz,
                            uint64_t *bad_count) {
  prof_i_timeline timeline;
  uint64_t bad = 0;
  assert_int_equal(prof_i_timeline_init(&timeline, pairs, count, hz, &bad), 0);
  if (bad_count)
    *bad_count = bad;
  else
    assert_int_equal(bad, 0);
  return timeline;
}

static uint64_t ns_at(const prof_i_timeline *timeline, uint64_t ticks) {
  const prof_i_time_line *line = timeline->lines;
  return prof_i_timeline_ns(timeline, &line, ticks);
}

#define MS 1000000ull

static void without_pairs_the_nominal_rate_holds(void **state) {
  (void)state;
  prof_i_time_pair pairs[] = {{0, 0, 0, UINT64_MAX}};
  prof_i_timeline t = make(pairs, 1, 2000000000, NULL);
  assert_int_equal(ns_at(&t, 0), 0);
  assert_int_equal(ns_at(&t, 2000), 1000);
  assert_int_equal(ns_at(&t, 2000000000ull * 3600), 3600ull * 1000000000);
  assert_int_equal(t.segment_count, 1);
  prof_i_timeline_fini(&t);
}

/* Slow clocks and fast ones, from the first ticks to the last that can be told. */
static void a_rate_has_40_binary_places_whatever_the_clock(void **state) {
  (void)state;
  const uint64_t hz[] = {100000,     24000000,   999999999,    1000000000,
                         1000000001, 3141592653, 1000000000000};
  for (size_t i = 0; i < sizeof hz / sizeof *hz; i++) {
    prof_i_time_pair pairs[] = {{0, 0, 0, UINT64_MAX}};
    prof_i_timeline t = make(pairs, 1, hz[i], NULL);
    const uint64_t rate = (uint64_t)(((prof_i_u128)1000000000 << 40) / hz[i]);
    for (uint64_t ticks = 1; ticks < 1ull << 60; ticks = ticks * 3 + ticks / 7) {
      const prof_i_u128 ns = (prof_i_u128)ticks * rate >> 40;
      if (ns >> 62) break; /* no longer told apart */
      assert_int_equal(ns_at(&t, ticks), (uint64_t)ns);
    }
    prof_i_timeline_fini(&t);
  }
}

static void times_go_through_the_pairs(void **state) {
  (void)state;
  prof_i_time_pair pairs[] = {{0, 0, 0, UINT64_MAX},
                              {0, 0, 30, 0},
                              {3000 * MS, 1000 * MS, 50, 0},
                              {6000 * MS, 2001 * MS, 40, 0}};
  /* the nominal rate is wrong: the pairs say it better */
  prof_i_timeline t = make(pairs, 4, 2000000000, NULL);
  assert_int_equal(ns_at(&t, 0), 0);
  assert_in_range(ns_at(&t, 1500ull * MS), 500 * MS - 1, 500 * MS);
  assert_int_equal(ns_at(&t, 3000ull * MS), 1000 * MS);
  assert_int_equal(ns_at(&t, 6000ull * MS), 2001ull * MS);
  /* on at the segment's own rate */
  assert_in_range(ns_at(&t, 9000ull * MS), 3001ull * MS, 3002ull * MS);
  assert_int_equal(t.error_ns, 50);
  assert_int_equal(t.segment_count, 1);
  prof_i_timeline_fini(&t);
}

static void a_new_segment_has_its_own_rate_and_never_goes_back(void **state) {
  (void)state;
  /* The host slept: ticks went on, the clock did not. */
  prof_i_time_pair pairs[] = {{0, 0, 0, 0},
                              {100 * MS, 100 * MS, 0, 0},
                              {900 * MS, 150 * MS, 0, 1},
                              {1000 * MS, 250 * MS, 0, 1}};
  prof_i_timeline t = make(pairs, 4, 1000000000, NULL);
  assert_int_equal(t.segment_count, 2);
  assert_int_equal(ns_at(&t, 120 * MS), 120 * MS);
  assert_int_equal(ns_at(&t, 500 * MS), 150 * MS); /* stands until the segment begins */
  assert_int_equal(ns_at(&t, 900 * MS), 150 * MS);
  assert_int_equal(ns_at(&t, 950 * MS), 200 * MS);
  prof_i_timeline_fini(&t);
}

static void pairs_that_contradict_are_left_out(void **state) {
  (void)state;
  uint64_t bad = 0;
  prof_i_time_pair pairs[] = {{0, 0, 0, 0},
                              {100 * MS, 100 * MS, 0, 0},
                              {200 * MS, 50 * MS, 0, 0},
                              {300 * MS, UINT64_MAX, 0, 0},
                              {1ull << 62, 400 * MS, 0, 0}};
  prof_i_timeline t = make(pairs, 5, 0, &bad); /* and the nominal rate is 0 */
  assert_int_equal(bad, 4);
  assert_int_equal(ns_at(&t, 200 * MS), 200 * MS);
  prof_i_timeline_fini(&t);
}

static void time_never_runs_back(void **state) {
  (void)state;
  uint64_t seed = 88172645463325252u;
  for (int round = 0; round < 300; round++) {
    prof_i_time_pair pairs[40];
    pairs[0] = (prof_i_time_pair){0, 0, 0, UINT64_MAX};
    for (int i = 1; i < 40; i++) {
      uint64_t words[3];
      for (int w = 0; w < 3; w++) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        words[w] = seed >> (seed & 63);
      }
      pairs[i] =
          (prof_i_time_pair){words[0] >> (round % 30), words[1] >> (round % 40), 1, words[2] % 4};
    }
    uint64_t bad = 0;
    prof_i_timeline t;
    assert_int_equal(prof_i_timeline_init(&t, pairs, 40, seed >> (round % 60), &bad), 0);
    const prof_i_time_line *line = t.lines;
    uint64_t last_ns = 0, ticks = 0;
    for (int i = 0; i < 4000; i++) {
      const uint64_t ns = prof_i_timeline_ns(&t, &line, ticks);
      if (ns < last_ns || ns > 1ull << 62)
        fail_msg("round %d: %llu ticks give %llu ns after %llu", round, (unsigned long long)ticks,
                 (unsigned long long)ns, (unsigned long long)last_ns);
      last_ns = ns;
      seed ^= seed << 13;
      seed ^= seed >> 7;
      seed ^= seed << 17;
      ticks += seed >> (12 + i % 50);
      if (i % 100 == 0)
        ticks = t.lines[(uint32_t)i / 100 % t.line_count].from, last_ns = 0, line = t.lines;
    }
    /* the way back finds the first tick that is not before */
    for (uint64_t ns = 1; ns < 1ull << 61; ns = ns * 3 + 1) {
      const uint64_t at = prof_i_timeline_ticks_at(&t, ns);
      if (at > 0 && at < 1ull << 60) assert_true(ns_at(&t, at - 1) < ns && ns_at(&t, at) >= ns);
    }
    prof_i_timeline_fini(&t);
  }
}

static void a_capture_with_clock_pairs_is_read_by_them(void **state) {
  (void)state;
  capture c;
  prof_i_head *const meta = begin_with_sites(&c, 1 << 20, 1);
  capture_header(&c)->ticks_hz = 999999999;
  capture_clock(&c, meta, 0, 0, 0);
  capture_clock(&c, meta, 40 * MS, 10 * MS, 0); /* four ticks a ns */
  prof_i_head *const chunk = capture_chunk(&c, PROF_I_UNIT_BYTES, 1);
  capture_plain(chunk, CAPTURE_START + 400, 4000, 1);
  prof_trace *const trace = open_capture(&c);
  const events all = read_events(trace);
  assert_event(&all.items[0], 100, 1000, 1000, 0);
  assert_int_equal(info_of(trace).duration_ns, 10 * MS);
  assert_int_equal(info_of(trace).clock_error_ns, 40);
  free(all.items);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void ticks_may_wrap_at_60_bits(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 1);
  capture_header(&c)->start_ticks = (1ull << 60) - 100;
  prof_i_head *const chunk = capture_chunk(&c, PROF_I_UNIT_BYTES, 1);
  capture_plain(chunk, (1ull << 60) - 50, 10, 1);
  capture_plain(chunk, 20, 10, 1); /* 120 after the start */
  /* a processor whose counter is 30 behind: clamped to the start */
  capture_plain(chunk, (1ull << 60) - 130, 260, 1);
  prof_trace *const trace = open_capture(&c);
  const events all = read_events(trace);
  assert_int_equal(all.count, 3);
  assert_event(&all.items[0], 0, 230, 210, 0);
  assert_event(&all.items[1], 50, 10, 10, 1);
  assert_event(&all.items[2], 120, 10, 10, 1);
  free(all.items);
  prof_trace_destroy(trace);
  capture_end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(without_pairs_the_nominal_rate_holds),
      cmocka_unit_test(a_rate_has_40_binary_places_whatever_the_clock),
      cmocka_unit_test(times_go_through_the_pairs),
      cmocka_unit_test(a_new_segment_has_its_own_rate_and_never_goes_back),
      cmocka_unit_test(pairs_that_contradict_are_left_out),
      cmocka_unit_test(time_never_runs_back),
      cmocka_unit_test(a_capture_with_clock_pairs_is_read_by_them),
      cmocka_unit_test(ticks_may_wrap_at_60_bits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
