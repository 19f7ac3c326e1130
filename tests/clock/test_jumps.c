/* The counter changes its rate, jumps, or stands while scopes are recorded: a machine that is
   moved, sleeps, or is slowed. Times before and after are what the script says, nothing is lost,
   and what happened is counted. */
#define _GNU_SOURCE
#include "fake.h"

/* The bound of what a capture with good clocks may say of its error: five readings of 10 ns each,
   and a line between them. */
static const uint64_t good_error_ns = 200;

static const uint64_t ghz = 1000000000;

/* 20 ms of recording with a pair each 5 ms: what stands between is sharp. */
static void record_a_while(void) {
  take_a_pair();
  for (int i = 0; i < 4; i++) {
    record_scopes(40, 20 * fake_us, 105 * fake_us);
    take_a_pair();
  }
}

/* Some scopes between the last pair and what happens next, or the other way round. */
static void record_nearby(void) { record_scopes(30, 30 * fake_us, 10 * fake_us); }

static void a_changed_rate_is_two_segments_that_meet(void **state) {
  (void)state;
  static const uint64_t rates[] = {3600000000, 2000000000, 3010000000, 2999000000, 300000000};
  for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
    fake_reset();
    start_recording();
    record_a_while();
    record_nearby();
    const uint32_t across = begin_scope();
    fake_pass(fake_ms);
    fake_set_rate(rates[i]);
    fake_pass(fake_ms);
    end_scope(across);
    record_nearby();
    record_a_while();
    const prof_trace_info info = stop_and_look();
    if (rates[i] < 2990000000 || rates[i] > 3010000000)
      assert_int_equal(info.clock_segments_count, 2);
    assert_int_equal(info.clock_jump_count, 0);
    assert_int_equal(info.clock_gap_ns, 0);
    /* where the lines meet is as good as the rates */
    assert_in_range(info.clock_error_ns, 1, 10 * good_error_ns);
  }
}

/* What all jumps of the counter have in common: from where they were, as good as before, in between
   too. */
static void jump_by(int64_t ticks) {
  fake_reset();
  start_recording();
  /* then the outer scope takes longer, and nobody knows */
  const bool is_short = ticks < 0 && ticks > -(int64_t)(150 * fake_ms);
  truth.is_vague = is_short;
  const uint32_t outer = begin_scope();
  truth.is_vague = false;
  if (is_short) truth.error_ns = good_error_ns;
  record_a_while();
  record_nearby();
  const uint32_t across = begin_scope();
  fake_pass(fake_ms);
  fake_jump(ticks);
  fake_pass(fake_ms);
  end_scope(across);
  record_nearby();
  record_a_while();
  record_scopes(3000, fake_us, fake_us); /* goes through several chunks */
  end_scope(outer);
  const prof_trace_info info = stop_and_look();
  assert_int_equal(info.clock_segments_count, 2);
  assert_int_equal(info.clock_jump_count, 1);
  assert_int_equal(info.clock_back_count, 0);
  assert_in_range(info.clock_gap_ns, 4 * fake_ms, 6 * fake_ms); /* between the pairs around it */
  if (!is_short) assert_in_range(info.clock_error_ns, 1, good_error_ns);
}

static void a_counter_that_begins_anew_is_followed(void **state) {
  (void)state;
  jump_by(-(int64_t)(15000 * fake_s) + 1000);
}

static void a_counter_that_leaps_ahead_is_followed(void **state) {
  (void)state;
  jump_by(1ll << 50);
  jump_by((int64_t)(3 * fake_s));
  jump_by((int64_t)(90 * fake_ms)); /* 30 ms */
}

static void a_counter_that_goes_back_is_followed(void **state) {
  (void)state;
  jump_by(-(1ll << 43));
  jump_by(-(int64_t)(3 * fake_s)); /* to before the capture's start */
  jump_by(-(int64_t)(120 * fake_ms));
}

/* Ticks that occurred before: the order in a thread's chunk distinguishes them. */
static void a_counter_that_goes_back_a_little_says_the_same_twice(void **state) {
  (void)state;
  fake_reset();
  start_recording();
  truth.error_ns = good_error_ns;
  for (int i = 0; i < 10; i++) record_a_while();
  record_nearby();
  fake_jump(-(int64_t)(150 * fake_ms));
  record_nearby();
  for (int i = 0; i < 10; i++) record_a_while();
  const prof_trace_info info = stop_and_look();
  assert_int_equal(info.clock_jump_count, 1);
  /* of a scope around it nobody could say when it began */
  assert_in_range(info.clock_error_ns, 49 * fake_ms, 51 * fake_ms);
}

/* A virtual machine that is moved: another host's counter, at another rate. In between the moment
   is not known. */
static void a_moved_machine_has_another_counter(void **state) {
  (void)state;
  static const uint64_t rates[] = {2 * 1000000000ull, 4 * 1000000000ull};
  for (size_t i = 0; i < 2; i++) {
    for (int64_t to = 0; to < 2; to++) {
      fake_reset();
      start_recording();
      const uint32_t outer = begin_scope();
      record_a_while();
      truth.is_vague = true;
      record_nearby();
      fake_pass(300 * fake_ms);
      fake_set_counter(to ? 1ull << 55 : 77, rates[i]);
      record_nearby();
      take_a_pair();
      truth.is_vague = false;
      record_a_while();
      end_scope(outer);
      const prof_trace_info info = stop_and_look();
      assert_int_equal(info.clock_segments_count, 2);
      assert_int_equal(info.clock_jump_count, 1);
      assert_in_range(info.clock_gap_ns, 300 * fake_ms, 310 * fake_ms);
      assert_in_range(info.clock_error_ns, 1, 10 * good_error_ns);
    }
  }
}

/* Suspend to memory: CLOCK_MONOTONIC leaves it out, the counter does not, nor does the wall
   clock. */
static void a_sleep_that_the_counter_counts_takes_no_time(void **state) {
  (void)state;
  fake_reset();
  start_recording();
  const uint32_t outer = begin_scope();
  record_a_while();
  record_nearby();
  fake_sleep(3600 * fake_s);
  record_nearby();
  record_a_while();
  end_scope(outer);
  const prof_trace_info info = stop_and_look();
  assert_int_equal(info.clock_jump_count, 1);
  assert_int_equal(info.wall_step_count, 1);
  assert_in_range(info.wall_step_ns, 3600 * fake_s - 1000, 3600 * fake_s + 1000);
  assert_in_range(info.clock_error_ns, 1, good_error_ns);
  assert_in_range(info.duration_ns, 0, fake_s);
}

/* The other way round: the counter stood, the time went on. */
static void a_counter_that_stood_leaves_a_gap(void **state) {
  (void)state;
  fake_reset();
  start_recording();
  record_a_while();
  truth.is_vague = true;
  record_nearby();
  fake_stop_counter(true);
  fake_pass(3600 * fake_s);
  fake_stop_counter(false);
  record_nearby();
  take_a_pair();
  truth.is_vague = false;
  record_a_while();
  const prof_trace_info info = stop_and_look();
  assert_int_equal(info.clock_segments_count, 2);
  assert_int_equal(info.clock_jump_count, 0);
  assert_in_range(info.clock_gap_ns, 3600 * fake_s, 3601 * fake_s);
  assert_in_range(info.clock_error_ns, 1, 10 * good_error_ns);
}

/* Between the first pair and the second one nothing but the first rate, of 20 us, tells that
   something happened. */
static void a_jump_before_the_second_pair_is_seen(void **state) {
  (void)state;
  fake_reset();
  start_recording();
  record_nearby();
  fake_pass(10 * fake_s);
  fake_sleep(60 * fake_s);
  record_nearby();
  record_a_while();
  const prof_trace_info info = stop_and_look();
  assert_int_equal(info.clock_jump_count, 1);
  assert_in_range(info.duration_ns, 10 * fake_s, 11 * fake_s);
}

/* A session after the counter began anew: its scopes are not taken for older ones, and older ones
   not for its own. */
static void sessions_are_told_apart_when_the_counter_began_anew(void **state) {
  (void)state;
  fake_reset();
  start_recording();
  record_a_while();
  assert_int_equal(prof_stop(), PROF_OK);
  fake_set_counter(1000, 3 * ghz);
  fake_pass(fake_s);
  assert_int_equal(prof_start(1), PROF_OK);
  record_scopes(3000, fake_us, fake_us);
  record_a_while();
  truth.is_vague = true;
  /* and while it lasts; no pair says so before the counter is where it was */
  fake_set_counter(500, 3 * ghz);
  record_scopes(3000, fake_us, fake_us);
  const uint32_t is_long = begin_scope();
  fake_pass(500 * fake_s); /* its end goes the slow way */
  end_scope(is_long);
  const prof_trace_info info = stop_and_look();
  assert_in_range(info.clock_jump_count, 1, 2);
}

static void what_was_cleared_stays_so_when_the_counter_goes_back(void **state) {
  (void)state;
  fake_reset();
  start_recording();
  record_a_while();
  assert_int_equal(prof_clear(), PROF_OK);
  truth.count = 0;
  record_a_while();
  fake_jump(-(int64_t)(600 * fake_s));
  record_a_while();
  prof_trace *trace = NULL;
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(prof_get(&trace), PROF_OK);
  prof_trace_info info = info_of(trace);
  assert_int_equal(info.lost_count[PROF_LOSS_CLEARED], 160);
  assert_int_equal(info.scope_count, 320);
  prof_trace_destroy(trace);
}

static void a_ring_keeps_the_last_ms_over_a_jump(void **state) {
  (void)state;
  fake_reset();
  start_with(PROF_CLOCK_DEFAULT, NULL, PROF_POLICY_RING, 30 * fake_ms);
  for (int i = 0; i < 3; i++) record_a_while();
  fake_jump(-(int64_t)(600 * fake_s));
  record_a_while();
  const uint64_t over = fake_host_ns();
  prof_trace *trace = NULL;
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(prof_get(&trace), PROF_OK);
  read_scopes(trace);
  for (uint32_t i = 0; i < truth.count; i++) {
    const bool is_late = truth.items[i].end.from > over - 30 * fake_ms + 10 * fake_us,
               is_early = truth.items[i].end.to < over - 30 * fake_ms;
    if (is_late) assert_int_equal(seen[i].times, 1);
    if (is_early) assert_int_equal(seen[i].times, 0);
  }
  prof_trace_destroy(trace);
}

/* Anything of it, in any order, by chance. */
static uint64_t random_below(uint64_t bound) {
  static uint64_t seed = 88172645463325252u;
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return (seed >> 11) % bound;
}

static void happen(uint64_t what) {
  switch (what) {
    case 0:
      fake_set_rate(ghz + random_below(4 * ghz));
      break;
    case 1:
      fake_sleep(random_below(7200 * fake_s));
      break;
    case 2:
      fake_jump((int64_t)((1ull << 30) + random_below(1ull << (30 + random_below(20)))));
      break;
    case 3:
      fake_set_counter(random_below(1ull << 40), ghz + random_below(4 * ghz));
      break;
    case 4:
      fake.wall += (int64_t)(random_below(9) * 3600 * fake_s) - (int64_t)(14400 * fake_s);
      break;
    case 5:
      fake_jump(-(int64_t)((1ull << 29) + random_below(1ull << 38)));
      break;
    default:
      fail();
  }
}

static void whatever_happens_times_before_and_after_are_right(void **state) {
  (void)state;
  for (int round = 0; round < (getenv("PROF_LONG") ? 1000 : 60); round++) {
    fake_reset();
    start_recording();
    /* but of scopes around a jump, where two eras have the same ticks */
    truth.error_ns = 10 * good_error_ns;
    truth.is_vague = true;
    const uint32_t outer = begin_scope();
    truth.is_vague = false;
    for (int i = 0; i < 6; i++) {
      record_a_while();
      truth.is_vague = true;
      record_nearby();
      happen(random_below(6));
      record_nearby();
      take_a_pair();
      truth.is_vague = false;
      fake_pass(random_below(30 * fake_s));
    }
    record_a_while();
    end_scope(outer);
    stop_and_look();
  }
}

/* Into a file, read from the file and through Chrome JSON. */
static void every_reader_says_the_same(void **state) {
  (void)state;
  char path[64];
  snprintf(path, sizeof path, "/tmp/prof-clock-jumps-%d.json", (int)getpid());
  fake_reset();
  start_with(PROF_CLOCK_DEFAULT, path, 0, 0);
  const uint32_t outer = begin_scope();
  record_a_while();
  fake_set_counter(4711, 2 * ghz);
  record_a_while();
  fake_sleep(60 * fake_s);
  record_a_while();
  end_scope(outer);
  prof_trace *const trace = stop_and_check();
  const prof_trace_info info = info_of(trace);
  assert_int_equal(info.clock_jump_count, 2);
  assert_int_equal(prof_dump(NULL), PROF_OK); /* its own check finds no fault */
  prof_health health = {.size = sizeof health};
  assert_int_equal(prof_health(&health), PROF_OK);
  prof_trace *file = NULL;
  assert_int_equal(prof_trace_open(health.capture_path, &file), PROF_OK);
  check_trace(file, "prof_trace_open");
  prof_trace_destroy(file);
  unlink(health.capture_path);

  read_scopes(trace);
  FILE *const json = fopen(path, "r");
  assert_non_null(json);
  static char line[4096];
  uint64_t base = 0;
  uint32_t count = 0;
  bool has_jumps = false;
  while (fgets(line, sizeof line, json)) {
    uint32_t i;
    double ts, dur;
    const char *const name = strstr(line, "\"name\":\"s"), *const at = strstr(line, "\"ts\":");
    sscanf(line, "\"baseTimeNanoseconds\": %" SCNu64, &base);
    has_jumps |= strstr(line, "\"clock_jumps\":2,") != NULL;
    if (!strstr(line, "\"ph\":\"X\"") || !name || sscanf(name, "\"name\":\"s%" SCNu32, &i) != 1)
      continue;
    assert_int_equal(sscanf(at, "\"ts\":%lf,\"dur\":%lf", &ts, &dur), 2);
    const double wall =
        (double)(seen[i].start - info.start_ns) + (double)(info.start_unix_ns - base);
    assert_true(ts * 1000 > wall - 2 && ts * 1000 < wall + 2);
    assert_true(dur * 1000 > (double)(seen[i].end - seen[i].start) - 2 &&
                dur * 1000 < (double)(seen[i].end - seen[i].start) + 2);
    count++;
  }
  fclose(json);
  unlink(path);
  assert_int_equal(count, truth.count);
  assert_true(has_jumps);
  prof_trace_destroy(trace);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_changed_rate_is_two_segments_that_meet),
      cmocka_unit_test(a_counter_that_begins_anew_is_followed),
      cmocka_unit_test(a_counter_that_leaps_ahead_is_followed),
      cmocka_unit_test(a_counter_that_goes_back_is_followed),
      cmocka_unit_test(a_counter_that_goes_back_a_little_says_the_same_twice),
      cmocka_unit_test(a_moved_machine_has_another_counter),
      cmocka_unit_test(a_sleep_that_the_counter_counts_takes_no_time),
      cmocka_unit_test(a_counter_that_stood_leaves_a_gap),
      cmocka_unit_test(a_jump_before_the_second_pair_is_seen),
      cmocka_unit_test(sessions_are_told_apart_when_the_counter_began_anew),
      cmocka_unit_test(what_was_cleared_stays_so_when_the_counter_goes_back),
      cmocka_unit_test(a_ring_keeps_the_last_ms_over_a_jump),
      cmocka_unit_test(whatever_happens_times_before_and_after_are_right),
      cmocka_unit_test(every_reader_says_the_same),
  };
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
