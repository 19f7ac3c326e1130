/* What is said of an operator: doubts, as scripted, the text, comparisons. */
#define _GNU_SOURCE
#include "op_checks.h"

/* ---- doubts, as scripted ---- */

static void doubts_are_those_of_the_samples(void **state) {
  double us[200];
  (void)state;
  for (int i = 0; i < 200; i++) us[i] = 100 + 0.1 * i + i % 3;
  prof_op_result *result = measured("drift", us, 200);
  assert_true(info_of(result).doubts & PROF_OP_DRIFTING);
  assert_true(info_of(result).drift > 0.15 && info_of(result).drift < 0.21);
  assert_non_null(strstr(prof_op_key(result), "drift"));
  prof_op_result_destroy(result);

  for (int i = 0; i < 200; i++) us[i] = (i * 7 % 10 < 4 ? 120 : 100) + i % 3;
  result = measured("modes", us, 200);
  assert_true(info_of(result).doubts & PROF_OP_TWO_MODES);
  assert_true(fabs(info_of(result).low_mode_us - 101) < 0.2 &&
              fabs(info_of(result).high_mode_us - 121) < 0.3);
  assert_true(fabs(info_of(result).high_mode_share - 0.4) < 0.01);
  prof_op_result_destroy(result);

  for (int i = 0; i < 200; i++) us[i] = 100 + i * 37 % 50;
  result = measured("noise", us, 200);
  assert_true(info_of(result).doubts & PROF_OP_NOISY);
  prof_op_result_destroy(result);

  for (int i = 0; i < 200; i++) us[i] = 100 + i * 37 % 3;
  result = measured("sound", us, 200);
  assert_int_equal(info_of(result).doubts, 0);
  size_t count = 0;
  const double *const samples = prof_op_samples(result, &count);
  assert_int_equal(count, 200);
  assert_memory_equal(samples, us, sizeof us); /* in the order in which they were taken */
  assert_true(prof_op_quantile(result, 0) == 100 && prof_op_quantile(result, 1) == 102 &&
              prof_op_quantile(result, 2) == 0);
  prof_op_result_destroy(result);
}

static void the_text_says_it(void **state) {
  static const double us[] = {10, 12, 11, 10.5, 11.5, 10.2, 11.1};
  char text[256], cut[8];
  (void)state;
  prof_op_result *const result = measured("text", us, 7);
  const size_t bytes = prof_op_text(result, text, sizeof text);
  assert_int_equal(bytes, strlen(text));
  if (info_of(result).has_energy)
    assert_non_null(strstr(text, " uJ a run"));
  else
    assert_string_equal(text, "11 us (10 to 12, 98 %), 7 samples of 1 run; not converged");
  assert_int_equal(prof_op_text(result, cut, sizeof cut), bytes);
  assert_string_equal(cut, "11 us (");
  assert_int_equal(prof_op_text(result, NULL, 0), bytes);
  assert_int_equal(prof_op_text(NULL, text, sizeof text), 0);
  assert_string_equal(text, "");
  prof_op_result_destroy(result);
}

static void expect_text(const double *us, size_t count, const char *begin) {
  char text[256];
  prof_op_result *const result = measured("digits", us, count);
  prof_op_text(result, text, sizeof text);
  if (strncmp(text, begin, strlen(begin)) != 0)
    fail_msg("'%s' does not begin with '%s'", text, begin);
  prof_op_result_destroy(result);
}

static void times_are_said_in_four_digits_and_a_unit(void **state) {
  static const double one[] = {300200}, zero[] = {0}, round_up[] = {9999.6}, below[] = {9999.4},
                      long_one[] = {123456789},
                      wide[] = {0.002, 0.002, 0.002, 0.002, 0.002, 0.002, 300200},
                      short_ones[] = {0.002436, 0.002437, 0.002435, 0.002436,
                                      0.002436, 0.002436, 0.0024358};
  char text[256];
  (void)state;
  expect_text(one, 1, "300.2 ms, 1 sample of 1 run"); /* of which there is no interval */
  expect_text(zero, 1, "0 us, 1 sample of 1 run");
  expect_text(below, 1, "9999 us,");
  expect_text(round_up, 1, "10 ms,");
  expect_text(long_one, 1, "123.5 s,");
  expect_text(short_ones, 7, "2.436 ns (2.435 to 2.437, 98 %), 7 samples of 1 run");
  expect_text(wide, 7, "2 ns (2 to 300200000, 98 %), 7 samples of 1 run");
  double us = 1.23456789e-7;
  for (int magnitude = 0; magnitude < 22; magnitude++, us *= 10) {
    const double spread[] = {us / 1e6, us, us, us, us, us, us * 1e6 < 1e15 ? us * 1e6 : us};
    prof_op_result *const result = measured("magnitudes", spread, 7);
    prof_op_text(result, text, sizeof text);
    if (strstr(text, "e+") || strstr(text, "e-")) fail_msg("'%s' has an exponent", text);
    prof_op_result_destroy(result);
  }
}

/* ---- comparing ---- */

static prof_op_comparison compared(double factor, double spread, double threshold) {
  double first[60], second[60];
  prof_op_comparison comparison = {.size = sizeof comparison};
  for (int i = 0; i < 60; i++) {
    first[i] = 100 + spread * (i * 37 % 60) / 60;
    second[i] = factor * (100 + spread * (i * 23 % 60) / 60);
  }
  prof_op_result *const a = measured("first", first, 60), *const b = measured("second", second, 60);
  assert_int_equal(prof_op_compare(a, b, threshold, &comparison), PROF_OK);
  prof_op_result_destroy(a);
  prof_op_result_destroy(b);
  return comparison;
}

static void comparisons_say_no_more_than_is_sure(void **state) {
  (void)state;
  assert_int_equal(compared(0.8, 2, 0).order, PROF_OP_FASTER);
  assert_int_equal(compared(1.25, 2, 0).order, PROF_OP_SLOWER);
  assert_int_equal(compared(1.0, 2, 0).order, PROF_OP_SAME);
  assert_int_equal(compared(1.02, 2, 0).order, PROF_OP_UNCLEAR); /* at the threshold */
  assert_int_equal(compared(1.02, 2, 0.1).order, PROF_OP_SAME);
  /* noisy runs: no verdict, however far apart */
  assert_int_equal(compared(0.5, 60, 0).order, PROF_OP_UNCLEAR);
  assert_true(compared(0.5, 60, 0).doubts & PROF_OP_NOISY);
  const prof_op_comparison c = compared(0.8, 2, 0);
  assert_true(fabs(c.ratio - 0.8) < 0.002 && c.ratio_low < c.ratio && c.ratio < c.ratio_high &&
              c.ratio_high - c.ratio_low < 0.02);
}

/* What was cut short by its time is not handed out for what was asked for in full. */
static void a_time_limit_is_part_of_what_is_asked_for(void **state) {
  const prof_op op = {.size = sizeof op, .key = "slow", .run = nap};
  const prof_op_options one = {.size = sizeof one,
                               .no_warmup = 1,
                               .exec = 1,
                               .repeat = 4,
                               .repeat_all = 1,
                               .time_limit_ns = 1};
  prof_op_result *result = NULL;
  double us[4] = {0};
  (void)state;
  assert_int_equal(prof_op_profile(&op, &one, &result), PROF_OK);
  assert_int_equal(info_of(result).sample_count, 1);
  prof_op_result_destroy(result);
  assert_int_equal(prof_op_latency(&op, 0, 1, 4, us, NULL), PROF_OK);
  for (int i = 0; i < 4; i++) assert_true(us[i] >= 2000);
}

#define ENTRY(test) cmocka_unit_test_setup(test, clean)

int main(void) {
  const struct CMUnitTest tests[] = {
      ENTRY(doubts_are_those_of_the_samples),           ENTRY(the_text_says_it),
      ENTRY(times_are_said_in_four_digits_and_a_unit),  ENTRY(comparisons_say_no_more_than_is_sure),
      ENTRY(a_time_limit_is_part_of_what_is_asked_for),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
