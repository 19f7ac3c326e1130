/* Which clock is taken, and clocks that are coarse, stand still, run back a little, or are read by
   a thread that is interrupted. A start returns and nothing is lost. The error that the capture
   states is not less than the true one, nor much more. */
#define _GNU_SOURCE
#include "fake.h"

static const uint64_t good_error_ns = 200;

/* ---- which clock ---- */

typedef struct answers {
  bool is_forbidden, is_invariant;
  const char *clocksource;
  bool is_counter; /* the time-stamp counter may be the clock */
  const char *why_not;
} answers;

static const answers machines[] = {
    {false, true, "tsc", true, ""},
    {false, false, "tsc", true, ""}, /* the kernel knows best */
    /* a guest's kernel prefers its own, CPUID says that the counter is good */
    {false, true, "kvm-clock", true, ""},
    {false, true, "", true, ""}, /* a container that does not show it */
    {false, false, "kvm-clock", false, "not invariant"},
    {false, false, "hpet", false, "not invariant"},
    {false, false, "", false, "not invariant"},
    {true, true, "tsc", false, "PR_SET_TSC"},
    {true, false, "hpet", false, "PR_SET_TSC"},
};

static void the_counter_is_taken_only_where_it_is_safe(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
    fake_reset();
    fake.is_forbidden = machines[i].is_forbidden;
    fake.is_invariant = machines[i].is_invariant;
    fake.clocksource = machines[i].clocksource;
    start_recording();
    record_scopes(1500, fake_us, fake_us);
    const prof_trace_info info = stop_and_look();
    assert_int_equal(info.clock, machines[i].is_counter ? PROF_CLOCK_TSC : PROF_CLOCK_MONOTONIC);
    assert_in_range(info.clock_error_ns, 1, good_error_ns);
    if (!machines[i].is_counter) assert_int_equal(fake.counter_reads, 0); /* it might be SIGSEGV */

    const prof_options named = {
        .size = sizeof named, .clock = PROF_CLOCK_TSC, .cap_bytes = 9 << 20};
    assert_int_equal(prof_start_with(&named),
                     machines[i].is_counter ? PROF_OK : PROF_E_UNSUPPORTED);
    if (machines[i].is_counter)
      assert_int_equal(prof_stop(), PROF_OK);
    else
      assert_non_null(strstr(prof_last_error(), machines[i].why_not));
  }
}

static void the_monotonic_clock_can_be_asked_for(void **state) {
  (void)state;
  fake_reset();
  start_with(PROF_CLOCK_MONOTONIC, NULL, 0, 0);
  record_scopes(1500, fake_us, fake_us);
  const prof_trace_info info = stop_and_look();
  assert_int_equal(info.clock, PROF_CLOCK_MONOTONIC);
  assert_int_equal(fake.counter_reads, 0);
}

/* ---- clocks that go by steps ---- */

/* The counter is as fine as before, so scopes take the same time. Only their place is known to no
   more than a step. */
static void a_coarse_clock_makes_times_vague_not_durations(void **state) {
  (void)state;
  static const uint64_t steps[] = {15 * 1000000, 1000000, 15625000, 1000};
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
    fake_reset();
    fake.resolution_ns = steps[i];
    fake_pass(steps[i] / 3);
    const uint64_t before = fake.now;
    start_recording();
    /* a start waits for two steps, no longer */
    assert_in_range(fake.now - before, 0, 3 * steps[i] + fake_ms);
    const uint32_t outer = begin_scope();
    for (int n = 0; n < 40; n++) {
      record_scopes(50, 100 * fake_us, 10 * fake_us);
      take_a_pair();
      fake_pass(7 * fake_ms + (uint64_t)n * fake_us);
    }
    end_scope(outer);
    prof_trace *const trace = stop_and_check();
    const prof_trace_info info = info_of(trace);
    assert_in_range(info.clock_error_ns, steps[i], 3 * steps[i] + good_error_ns);
    assert_int_equal(info.clock_segments_count, 1);
    for (uint32_t n = 0; n < truth.count; n++) {
      const uint64_t took = truth.items[n].end.from - truth.items[n].begin.from,
                     said = seen[n].end - seen[n].start;
      const uint64_t off = took > said ? took - said : said - took;
      if (off > took / 100 + 100)
        fail_msg("s%" PRIu32 " took %" PRIu64 " ns, and is said to take %" PRIu64, n, took, said);
    }
    prof_trace_destroy(trace);
  }
}

/* Both clocks go by steps: a scope takes a multiple of one. */
static void a_coarse_clock_alone_says_so(void **state) {
  (void)state;
  fake_reset();
  fake.resolution_ns = 15 * fake_ms;
  start_with(PROF_CLOCK_MONOTONIC, NULL, 0, 0);
  for (int n = 0; n < 40; n++) {
    record_scopes(50, 100 * fake_us, 10 * fake_us);
    take_a_pair();
    fake_pass(7 * fake_ms + (uint64_t)n * fake_us);
  }
  const prof_trace_info info = stop_and_look();
  assert_in_range(info.clock_error_ns, 15 * fake_ms, 46 * fake_ms);
}

/* Nothing can be known but the order, and that nothing is lost. */
static void a_clock_that_stands_still_stops_nobody(void **state) {
  (void)state;
  fake_reset();
  fake.stands_at = fake_host_ns();
  start_recording();
  record_scopes(1500, fake_us, fake_us);
  take_a_pair();
  fake_pass(fake_s);
  record_scopes(1500, fake_us, fake_us);
  prof_trace *trace = NULL;
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(prof_get(&trace), PROF_OK);
  const prof_trace_info info = info_of(trace);
  assert_int_equal(info.scope_count, 3000);
  assert_int_equal(info.bad_count, 0);
  read_scopes(trace);
  for (uint32_t i = 1; i < truth.count; i++)
    if (seen[i].times != 1 || seen[i].start < seen[i - 1].end)
      fail_msg("s%" PRIu32 " is there %" PRIu32 " times, %" PRId64 " ns after the one before", i,
               seen[i].times, (int64_t)(seen[i].start - seen[i - 1].end));
  prof_trace_destroy(trace);
}

/* It stops in the midst of a capture, as in a sleep, and the counter goes on; then both go. */
static void a_clock_that_stands_for_a_while_is_a_gap(void **state) {
  (void)state;
  fake_reset();
  start_recording();
  record_scopes(100, 20 * fake_us, 80 * fake_us);
  take_a_pair();
  fake.stands_at = fake_host_ns();
  const uint64_t stood = fake.now;
  truth.is_vague = true;
  fake_pass(30 * fake_ms);
  take_a_pair();
  fake_pass(30 * fake_ms);
  take_a_pair();
  fake.slept += fake.now - stood;
  fake.stands_at = 0;
  truth.is_vague = false;
  for (int i = 0; i < 4; i++) {
    take_a_pair();
    record_scopes(100, 20 * fake_us, 80 * fake_us);
  }
  const prof_trace_info info = stop_and_look();
  assert_true(info.clock_segments_count > 1);
  assert_in_range(info.clock_error_ns, 1, 10 * good_error_ns);
}

/* Readings that take no time at all: pairs on one tick. */
static void pairs_may_stand_on_one_tick(void **state) {
  (void)state;
  fake_reset();
  start_recording();
  fake.read_ns = 0;
  for (int i = 0; i < 50; i++) {
    take_a_pair();
    take_a_pair();
    record_scopes(20, fake_us, 99 * fake_us);
    take_a_pair();
    take_a_pair();
    take_a_pair();
  }
  const prof_trace_info info = stop_and_look();
  assert_int_equal(info.clock_segments_count, 1);
  assert_in_range(info.clock_error_ns, 1, good_error_ns);
}

static void a_clock_that_runs_back_a_little_is_believed_to_that(void **state) {
  (void)state;
  /* odd: each second reading is of the other clock */
  for (uint64_t every = 3; every <= 7; every += 2) {
    fake_reset();
    fake.back_every = every;
    fake.back_ns = 40;
    start_recording();
    for (int i = 0; i < 200; i++) {
      record_scopes(5, 3 * fake_us, 2 * fake_us);
      take_a_pair();
      take_a_pair();
    }
    const prof_trace_info info = stop_and_look();
    assert_int_equal(info.clock_segments_count, 1);
    assert_in_range(info.clock_error_ns, 1, 2 * good_error_ns);
  }
}

/* ---- interrupted readings ---- */

static void one_good_reading_of_five_is_enough(void **state) {
  (void)state;
  fake_reset();
  start_recording();
  for (int i = 0; i < 20; i++) {
    record_scopes(50, 20 * fake_us, 80 * fake_us);
    fake.interrupted = 5;
    fake.spared = (uint64_t)i % 5 + 1;
    fake.interrupted_ns = 10 * fake_ms;
    take_a_pair();
    assert_int_equal(fake.interrupted, 0);
  }
  const prof_trace_info info = stop_and_look();
  assert_int_equal(info.clock_segments_count, 1);
  assert_in_range(info.clock_error_ns, 1, good_error_ns);
}

/* A pair that cannot be good is no step of the clock, and others near it replace it. */
static void a_bad_pair_among_good_ones_does_not_count(void **state) {
  (void)state;
  fake_reset();
  start_recording();
  for (int i = 0; i < 20; i++) {
    record_scopes(50, 20 * fake_us, 80 * fake_us);
    fake.interrupted = i == 7 ? 5 : 0;
    fake.interrupted_ns = 2 * fake_ms;
    take_a_pair();
  }
  const prof_trace_info info = stop_and_look();
  assert_int_equal(info.clock_segments_count, 1);
  assert_in_range(info.clock_error_ns, 1, good_error_ns);
}

/* All readings are interrupted, from the first on: nothing is known better than that, and it is
   said. The health's word is no better than the capture's. */
static void bad_pairs_alone_make_a_large_error(void **state) {
  (void)state;
  fake_reset();
  fake.interrupted = UINT64_MAX / 2;
  fake.interrupted_ns = 300 * fake_us;
  start_recording();
  for (int i = 0; i < 20; i++) {
    record_scopes(50, 20 * fake_us, 80 * fake_us);
    take_a_pair();
  }
  prof_health health = {.size = sizeof health};
  assert_int_equal(prof_health(&health), PROF_OK);
  assert_in_range(health.clock_error_ns, 150 * fake_us, 3 * fake_ms);
  const prof_trace_info info = stop_and_look();
  assert_in_range(info.clock_error_ns, 150 * fake_us, 3 * fake_ms);
}

/* Interrupted between the two kernel's clocks: the wall clock is not taken for one that was set. */
static void an_interruption_is_no_step_of_the_wall_clock(void **state) {
  (void)state;
  fake_reset();
  start_recording();
  for (int i = 0; i < 10; i++) {
    record_scopes(50, 20 * fake_us, 80 * fake_us);
    fake.interrupted = i % 3 ? 0 : 5;
    fake.interrupted_ns = 20 * fake_ms;
    take_a_pair();
  }
  const prof_trace_info info = stop_and_look();
  assert_int_equal(info.wall_step_count, 0);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_counter_is_taken_only_where_it_is_safe),
      cmocka_unit_test(the_monotonic_clock_can_be_asked_for),
      cmocka_unit_test(a_coarse_clock_makes_times_vague_not_durations),
      cmocka_unit_test(a_coarse_clock_alone_says_so),
      cmocka_unit_test(a_clock_that_stands_still_stops_nobody),
      cmocka_unit_test(a_clock_that_stands_for_a_while_is_a_gap),
      cmocka_unit_test(pairs_may_stand_on_one_tick),
      cmocka_unit_test(a_clock_that_runs_back_a_little_is_believed_to_that),
      cmocka_unit_test(one_good_reading_of_five_is_enough),
      cmocka_unit_test(a_bad_pair_among_good_ones_does_not_count),
      cmocka_unit_test(bad_pairs_alone_make_a_large_error),
      cmocka_unit_test(an_interruption_is_no_step_of_the_wall_clock),
  };
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
