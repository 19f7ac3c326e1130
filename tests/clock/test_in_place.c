/* What recording costs where it runs: a clock whose readings take as long as the script says stands
   for caches that are warm, or cold. */
#define _GNU_SOURCE
#include <pthread.h>

#include "fake.h"

/* A begin and an end of the twin have a reading of the clock each, and one behind each of them. */
enum { WARM_READ_NS = 10, COLD_READ_NS = 1010, READINGS = 4 };
/* The program's own work for each scope. Without it what windows find is more than all its time. */
enum { WORK_NS = 7000 };
/* The rest of the slow path has three: one in its begin, and one behind each. What it takes beyond
   three times a warm twin counts by half. */
enum { SLOW_READINGS = 3, SLOW_WARM = 3 };
static const uint64_t beyond_ns =
    READINGS * (COLD_READ_NS - WARM_READ_NS) +
    (SLOW_READINGS * COLD_READ_NS - SLOW_WARM * READINGS * WARM_READ_NS) / 2;

/* Windows open after 32 records, 64, 128, 256 and 512. Each stands for half of the records since
   the previous one (the first for all of them), and for half of those to the next. */
enum { FIRST = 32 };
static const uint64_t stands_for[] = {32 + 16, 16 + 32, 32 + 64, 64 + 128, 128 + 256};

static uint64_t recorded, work_ns = WORK_NS;

static void record(uint64_t count, uint64_t begin_read_ns, uint64_t end_read_ns) {
  static prof_site site;
  recorded += count;
  while (count--) {
    fake.read_ns = begin_read_ns;
    const uint64_t start = prof_scope_begin_at(&site, "op", "x");
    fake.read_ns = end_read_ns;
    prof_scope_end(start);
    fake.read_ns = WARM_READ_NS;
    fake_pass(work_ns);
  }
}

/* What windows found beyond warm scopes, of this program's only thread. */
static double beyond_now(uint64_t *least_ns_out) {
  prof_trace *trace = NULL;
  assert_int_equal(prof_get(&trace), PROF_OK);
  prof_trace_thread thread = {.size = sizeof thread};
  assert_int_equal(prof_trace_thread_get(trace, 0, &thread), PROF_OK);
  const prof_trace_info info = info_of(trace);
  assert_int_equal(info.event_count, recorded);
  assert_int_equal(info.own_ns, thread.own_ns);
  prof_trace_destroy(trace);
  prof_health health = {.size = sizeof health};
  assert_int_equal(prof_health(&health), PROF_OK);
  assert_int_equal(health.own_ns, info.own_ns);
  assert_int_equal(health.own_least_ns, info.own_least_ns);
  const double scopes_ns = (double)recorded * info.scope_cost_ns;
  if (least_ns_out) *least_ns_out = info.own_least_ns - (uint64_t)scopes_ns;
  return (double)info.own_ns - (double)info.own_least_ns;
}

static double own_ns(void) { return beyond_now(NULL); }

static void begin(void) {
  fake_reset();
  start_recording();
  recorded = 0;
  record(1, WARM_READ_NS, WARM_READ_NS);
}

static void check_within(double measured, double expected, double ns) {
  if (measured < expected - ns || measured > expected + ns)
    fail_msg("%.1f ns beyond the scopes' cost instead of %.1f", measured, expected);
}

static void check(double measured, double expected) { check_within(measured, expected, 3); }

static uint32_t is_sampled(void) {
  prof_trace *trace = NULL;
  prof_health health = {.size = sizeof health};
  assert_int_equal(prof_get(&trace), PROF_OK);
  const uint32_t is = info_of(trace).is_own_sampled;
  prof_trace_destroy(trace);
  assert_int_equal(prof_health(&health), PROF_OK);
  assert_int_equal(health.is_own_sampled, is);
  return is;
}

static void it_is_said_whether_any_scope_was_timed_in_place(void **state) {
  (void)state;
  begin();
  record(FIRST - 2, COLD_READ_NS, COLD_READ_NS);
  assert_int_equal(is_sampled(), 0);
  record(6, COLD_READ_NS, COLD_READ_NS);
  assert_int_equal(is_sampled(), 1);
  assert_int_equal(prof_stop(), PROF_OK);
}

static void scopes_in_warm_caches_take_what_was_calibrated(void **state) {
  (void)state;
  begin();
  const double before = own_ns();
  record(900, WARM_READ_NS, WARM_READ_NS);
  check(own_ns() - before, 0);
  assert_int_equal(prof_stop(), PROF_OK);
}

/* A scope in a window takes longer: the twin runs beside it. The slow path that runs then, too, is
   not the window's. */
static void windows_count_for_the_time_they_take(void **state) {
  (void)state;
  begin();
  record(FIRST - 2, WARM_READ_NS, WARM_READ_NS);
  uint64_t before, after;
  beyond_now(&before);
  uint64_t at = fake.now;
  record(80, WARM_READ_NS, WARM_READ_NS); /* two windows */
  const uint64_t with_ns = fake.now - at;
  beyond_now(&after);
  at = fake.now;
  record(10, WARM_READ_NS, WARM_READ_NS); /* none */
  const uint64_t window_ns = with_ns - 8 * (fake.now - at);
  const double took = (double)after - (double)before;
  if (took < (double)window_ns / 2 || took > (double)window_ns)
    fail_msg("%.0f ns counted of the %llu that windows took", took, (unsigned long long)window_ns);
  assert_int_equal(prof_stop(), PROF_OK);
}

static void scopes_that_take_longer_in_place_count_for_that(void **state) {
  (void)state;
  begin();
  double before = own_ns();
  uint64_t next = FIRST;
  for (size_t i = 0; i < sizeof stands_for / sizeof *stands_for; i++, next *= 2) {
    record(next - recorded, COLD_READ_NS, COLD_READ_NS); /* the last of them opens the window */
    check(own_ns() - before, 0);
    record(5, COLD_READ_NS, COLD_READ_NS);
    const double now = own_ns();
    check(now - before, (double)(stands_for[i] * beyond_ns));
    before = now;
  }
  assert_int_equal(prof_stop(), PROF_OK);
}

/* All of a window's begins were: the window after it stands for its records, too. */
static void runs_that_were_interrupted_are_left_out(void **state) {
  (void)state;
  begin();
  const double before = own_ns();
  record(FIRST + 5, 30000, COLD_READ_NS);
  check(own_ns() - before, 0);
  record(FIRST, COLD_READ_NS, COLD_READ_NS);
  check(own_ns() - before, (double)((stands_for[0] + stands_for[1]) * beyond_ns));
  assert_int_equal(prof_stop(), PROF_OK);
}

/* The twin reads the clock, too. */
static void record_until_a_window_opens(void) {
  uint64_t at;
  do {
    at = fake.now;
    record(1, WARM_READ_NS, WARM_READ_NS);
  } while (fake.now - at < 4 * WARM_READ_NS);
}

/* In a program that does little else, the clock takes 8 us in one of its windows: less than what is
   taken for an interruption. That window stands for thousands of scopes. */
static void an_odd_window_counts_for_no_more_than_the_time_that_there_was(void **state) {
  (void)state;
  enum { MANY = 60000, ODD_READ_NS = 8000, ODD = 3 };
  work_ns = 100;
  fake_reset();
  const uint64_t since = fake.now;
  begin();
  record(MANY, WARM_READ_NS, WARM_READ_NS);
  for (int i = 0; i < ODD; i++) {
    record_until_a_window_opens();
    const uint64_t at = fake.now;
    const double before = own_ns();
    record(5, ODD_READ_NS, WARM_READ_NS);
    prof_health health = {.size = sizeof health};
    assert_int_equal(prof_health(&health), PROF_OK);
    assert_in_range(health.own_ns, 1, fake.now - since);
    assert_in_range(health.own_least_ns, 1, fake.now - since);
    assert_in_range(health.own_most_ns, 1, (fake.now - since) * health.threads_seen_count);
    assert_true(own_ns() - before < (double)(at - since) / 2);
  }
  work_ns = WORK_NS;
  assert_int_equal(prof_stop(), PROF_OK);
}

/* Each scope takes all of the time between two: the windows say four times as much. */
static void a_thread_takes_no_more_than_its_time(void **state) {
  (void)state;
  work_ns = 0;
  fake_reset();
  const uint64_t since = fake.now;
  begin();
  for (int i = 0; i < 3000; i++) {
    record(10, COLD_READ_NS, COLD_READ_NS);
    if (i % 100) continue;
    prof_health health = {.size = sizeof health};
    assert_int_equal(prof_health(&health), PROF_OK);
    assert_true(health.own_ns <= fake.now - since);
  }
  work_ns = WORK_NS;
  assert_int_equal(prof_stop(), PROF_OK);
}

static void record_seldom(uint64_t count, uint64_t read_ns) {
  for (; count; count--) {
    record(1, read_ns, read_ns);
    fake_pass(fake_ms);
  }
}

/* A window for each 32 records, not for twice as many each time. */
static void scopes_that_come_seldom_have_more_windows(void **state) {
  (void)state;
  begin();
  record_seldom(5 * FIRST - recorded, WARM_READ_NS); /* the last of them opens the fifth */
  const double before = own_ns();
  record_seldom(2 * FIRST, COLD_READ_NS);
  check(own_ns() - before, (double)(2 * FIRST * beyond_ns));
  assert_int_equal(prof_stop(), PROF_OK);
}

/* Its twin does not wait for the time after which another thread may have it. */
static void a_window_that_a_stop_has_closed_keeps_none_from_opening(void **state) {
  (void)state;
  begin();
  record(FIRST - recorded, WARM_READ_NS, WARM_READ_NS);
  assert_int_equal(prof_stop(), PROF_OK);
  begin();
  const double before = own_ns();
  record(FIRST + 4, COLD_READ_NS, COLD_READ_NS);
  check(own_ns() - before, (double)(stands_for[0] * beyond_ns));
  assert_int_equal(prof_stop(), PROF_OK);
}

static void a_capture_has_its_own_figures(void **state) {
  (void)state;
  begin();
  record(600, COLD_READ_NS, COLD_READ_NS);
  assert_int_equal(prof_stop(), PROF_OK);
  begin();
  const double before = own_ns();
  record(600, WARM_READ_NS, WARM_READ_NS);
  check(own_ns() - before, 0);
  assert_int_equal(prof_stop(), PROF_OK);
}

static void *record_cold(void *count) {
  record(1, WARM_READ_NS, WARM_READ_NS); /* takes a chunk */
  record(*(const uint64_t *)count - 1, COLD_READ_NS, COLD_READ_NS);
  return NULL;
}

/* The thread's share is moved into the capture, and its slot's next owner begins at 0. */
static void what_a_thread_took_stays_its_own(void **state) {
  (void)state;
  fake_reset();
  start_recording();
  recorded = 0;
  uint64_t own[2];
  static const uint64_t counts[2] = {FIRST + 5, FIRST - 1};
  for (int i = 0; i < 2; i++) {
    pthread_t thread;
    uint64_t count = counts[i];
    assert_int_equal(pthread_create(&thread, NULL, record_cold, &count), 0);
    pthread_join(thread, NULL);
  }
  prof_trace *trace = NULL;
  assert_int_equal(prof_get(&trace), PROF_OK);
  const prof_trace_info info = info_of(trace);
  for (uint32_t i = 0; i < 2; i++) {
    prof_trace_thread thread = {.size = sizeof thread};
    assert_int_equal(prof_trace_thread_get(trace, i, &thread), PROF_OK);
    assert_int_equal(thread.event_count, counts[i]);
    own[i] = thread.own_ns;
  }
  const double cost_ns = info.scope_cost_ns, apart = (double)own[0] - (double)own[1];
  prof_trace_destroy(trace);
  const double expected =
      (double)(stands_for[0] * beyond_ns) + (double)(counts[0] - counts[1]) * cost_ns;
  /* The second takes over the first's chunk. The first's window takes some 40 readings. */
  assert_true(apart > expected - 40 * WARM_READ_NS);
  assert_true(apart < expected + 50 * COLD_READ_NS);
  /* The second had no window: its scopes count as the first's in the upper bound. */
  const double first_ns = (double)(stands_for[0] * beyond_ns);
  const double few_ns = 2.5 * first_ns * (double)counts[1] / (double)counts[0];
  const double most_ns = (double)info.own_ns + 1.5 * (double)(info.own_ns - info.own_least_ns);
  assert_true((double)info.own_most_ns > most_ns + few_ns * 0.99);
  prof_health health = {.size = sizeof health};
  assert_int_equal(prof_health(&health), PROF_OK);
  assert_true((double)health.own_most_ns > most_ns + few_ns * 0.99);
  /* Of a thread that is gone, what is below 100 us is in the sum alone. */
  assert_in_range(info.own_ns, own[0] + own[1], own[0] + own[1] + 100 * fake_us);
  assert_int_equal(prof_stop(), PROF_OK);
}

/* 140 000 scopes in a second: warm ones are some percent of it, cold ones most. */
static uint64_t steps_of_the_budget(uint64_t read_ns) {
  const prof_options options = {
      .size = sizeof options, .cap_bytes = 32 << 20, .budget_permille = 100};
  fake_reset();
  assert_int_equal(prof_start_with(&options), PROF_OK);
  record(140000, read_ns, read_ns);
  prof_health health = {.size = sizeof health};
  assert_int_equal(prof_health(&health), PROF_OK);
  assert_int_equal(prof_stop(), PROF_OK);
  return health.changes_count;
}

static void the_budget_goes_by_what_scopes_take_in_place(void **state) {
  (void)state;
  assert_int_equal(steps_of_the_budget(WARM_READ_NS), 0);
  assert_int_not_equal(steps_of_the_budget(COLD_READ_NS), 0);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(it_is_said_whether_any_scope_was_timed_in_place),
      cmocka_unit_test(scopes_in_warm_caches_take_what_was_calibrated),
      cmocka_unit_test(windows_count_for_the_time_they_take),
      cmocka_unit_test(scopes_that_take_longer_in_place_count_for_that),
      cmocka_unit_test(runs_that_were_interrupted_are_left_out),
      cmocka_unit_test(an_odd_window_counts_for_no_more_than_the_time_that_there_was),
      cmocka_unit_test(a_thread_takes_no_more_than_its_time),
      cmocka_unit_test(scopes_that_come_seldom_have_more_windows),
      cmocka_unit_test(a_window_that_a_stop_has_closed_keeps_none_from_opening),
      cmocka_unit_test(a_capture_has_its_own_figures),
      cmocka_unit_test(what_a_thread_took_stays_its_own),
      cmocka_unit_test(the_budget_goes_by_what_scopes_take_in_place),
  };
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
