/* Results that are kept in memory: for what, how many, and in a child. Those in a file are
   test_op_file.c's. */
#define _GNU_SOURCE
#include "hang_guard.h"
#include "op_checks.h"

static void results_are_kept_by_key_device_and_options(void **state) {
  subject s = {0};
  prof_op op = op_of(&s, "kept");
  prof_op_options options = {.size = sizeof options, .exec = 1, .repeat = 5, .repeat_all = 1};
  prof_op_result *first = NULL, *again = NULL;
  const prof_device other = {PROF_DEVICE_CPU, 1}, host = PROF_HOST;
  (void)state;
  assert_int_equal(prof_op_cache_count(NULL), 0);
  assert_int_equal(prof_op_profile(&op, &options, &first), PROF_OK);
  assert_int_equal(s.runs, 15);
  assert_int_equal(prof_op_profile(&op, &options, &again), PROF_OK);
  assert_int_equal(s.runs, 15);
  assert_int_equal(info_of(first).was_kept, 0);
  assert_int_equal(info_of(again).was_kept, 1);
  assert_memory_equal(prof_op_samples(first, NULL), prof_op_samples(again, NULL),
                      5 * sizeof(double));
  prof_op_result_destroy(again);
  options.no_reuse = 1;
  assert_int_equal(prof_op_profile(&op, &options, &again), PROF_OK);
  assert_int_equal(s.runs, 30);
  assert_int_equal(prof_op_cache_count(NULL), 1); /* in the other's place */
  prof_op_result_destroy(again);
  options.no_reuse = 0;
  options.repeat = 6;
  assert_int_equal(prof_op_profile(&op, &options, &again), PROF_OK);
  assert_int_equal(prof_op_cache_count(&host), 2);
  prof_op_result_destroy(again);
  op.device = other;
  assert_int_equal(prof_op_profile(&op, &options, &again), PROF_OK);
  prof_op_result_destroy(again);
  assert_int_equal(prof_op_cache_count(&other), 1);
  assert_int_equal(prof_op_cache_count(NULL), 3);
  prof_op_cache_reset(&host);
  assert_int_equal(prof_op_cache_count(NULL), 1);
  assert_int_equal(info_of(first).sample_count, 5); /* the caller's stays */
  prof_op_result_destroy(first);
}

static void a_zero_device_is_the_host_for_kept_results_too(void **state) {
  static const double us[] = {1};
  const prof_device zero = {0}, host = PROF_HOST, other = {PROF_DEVICE_CPU, 1};
  (void)state;
  prof_op_result_destroy(measured("kept", us, 1));
  assert_int_equal(prof_op_cache_count(&host), 1);
  assert_int_equal(prof_op_cache_count(&zero), 1);
  assert_int_equal(prof_op_cache_count(&other), 0);
  prof_op_cache_reset(&other);
  assert_int_equal(prof_op_cache_count(NULL), 1);
  prof_op_cache_reset(&zero);
  assert_int_equal(prof_op_cache_count(NULL), 0);
}

/* Of two drivers, or timers, that are the same in their first bytes. */
static void names_that_results_are_kept_for_are_not_cut(void **state) {
  subject s = {0};
  prof_op op = op_of(&s, "kept");
  prof_op_timer timer;
  prof_op_options options = {.size = sizeof options, .exec = 1, .repeat = 5, .repeat_all = 1};
  char name[513];
  (void)state;
  memset(name, 'a', sizeof name);
  for (int last = 0; last < 2; last++) {
    prof_op_result *result = NULL;
    static const double one[] = {1};
    script times = {.us = one, .count = 1};
    snprintf(name + 510, 3, "%d", last);
    op.driver = name;
    timer = timer_of(&times);
    timer.name = name + 448; /* 63 */
    options.timer = &timer;
    assert_int_equal(prof_op_profile(&op, &options, &result), PROF_OK);
    assert_int_equal(info_of(result).was_kept, 0);
    prof_op_result_destroy(result);
    op.driver = NULL;
    timer.name = name + 448;
    times = (script){.us = times.us, .count = 1};
    assert_int_equal(prof_op_profile(&op, &options, &result), PROF_OK);
    assert_int_equal(info_of(result).was_kept, 0);
    prof_op_result_destroy(result);
  }
  prof_op_cache_reset(NULL);
  snprintf(name + 511, 2, "2");
  op.driver = name;
  timer.name = "script";
  refuse(&op, &options, PROF_E_INVALID, "op.driver has 512 bytes; at most 511");
  op.driver = NULL;
  timer.name = name + 448;
  refuse(&op, &options, PROF_E_INVALID, "timer.name has 64 bytes; at most 63");
}

static void no_more_than_a_thousand_are_kept(void **state) {
  static const double us[] = {1};
  char key[32];
  (void)state;
  for (int i = 0; i < 1100; i++) {
    snprintf(key, sizeof key, "operator %d", i);
    prof_op_result_destroy(measured(key, us, 1));
  }
  assert_int_equal(prof_op_cache_count(NULL), 1024);
}

static void a_child_goes_on_with_what_was_kept(void **state) {
  static const double us[] = {1};
  int status = 0;
  (void)state;
  prof_op_result_destroy(measured("before the fork", us, 1));
  const pid_t child = fork();
  if (child == 0) {
    hang_guard();
    const size_t kept = prof_op_cache_count(NULL);
    prof_op_cache_reset(NULL);
    _exit(kept == 1 && prof_op_cache_count(NULL) == 0 ? 0 : 1);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_int_equal(prof_op_cache_count(NULL), 1);
}

#define ENTRY(test) cmocka_unit_test_setup(test, clean)

int main(void) {
  const struct CMUnitTest tests[] = {
      ENTRY(results_are_kept_by_key_device_and_options),
      ENTRY(a_zero_device_is_the_host_for_kept_results_too),
      ENTRY(names_that_results_are_kept_for_are_not_cut),
      ENTRY(no_more_than_a_thousand_are_kept),
      ENTRY(a_child_goes_on_with_what_was_kept),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
