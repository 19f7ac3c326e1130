/* Synthetic series with a known right answer: medians and their intervals, drift, two modes, noise,
   comparisons. Also how often a series without fault is doubted, over a thousand seeds of each
   shape. */
#include <prof/op.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../src/op/internal.h"
#include "../fault/support/skip.h"

enum { COUNT = 200 };

/* Series of each shape; with PROF_LONG=1 four times as many. The sanitizers and valgrind look at
   memory, for which a few are enough; then no share is reported. */
static uint64_t seeds(void) {
  const char *const loaded = getenv("LD_PRELOAD");
  return SKIP_SANITIZED || (loaded && strstr(loaded, "vgpreload")) ? 20
         : getenv("PROF_LONG")                                     ? 1000
                                                                   : 250;
}
static bool is_told(void) { return seeds() >= 250; }
static int of_1000(int count) { return (int)((uint64_t)count * 1000 / seeds()); }
static bool is_at_least(int count, int least_of_1000) {
  return !is_told() || of_1000(count) >= least_of_1000;
}

/* ---- chance ---- */

static uint64_t state;

static void seed_with(uint64_t seed) { state = (seed + 1) * 0x9e3779b97f4a7c15ull; }

static double uniform(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (double)(state >> 11) / 9007199254740992.0;
}
static double normal(void) { /* near enough in the middle, and its ends are short */
  double sum = -6;
  for (int i = 0; i < 12; i++) sum += uniform();
  return sum;
}
/* chi-square, 2 degrees: exponential */
static double skewed(void) { return normal() * normal() + normal() * normal(); }

typedef struct shape {
  const char *name;
  double (*at)(size_t i, size_t count);
} shape;

static double a_constant(size_t i, size_t count) {
  (void)i, (void)count;
  return 7;
}
static double a_normal(size_t i, size_t count) {
  (void)i, (void)count;
  return 100 + normal();
}
static double a_uniform(size_t i, size_t count) {
  (void)i, (void)count;
  return 100 + 5 * uniform();
}
static double an_exponential(size_t i, size_t count) {
  (void)i, (void)count;
  return 100 + skewed();
}
static double some_steps(size_t i, size_t count) {
  (void)i, (void)count;
  return (double)(int)(50 + normal());
} /* a coarse timer */
static double few_outliers(size_t i, size_t count) {
  (void)i, (void)count;
  return uniform() < 0.02 ? 300 + 100 * uniform() : 100 + normal();
}
static double a_drift(size_t i, size_t count) {
  return 100 + normal() + 8 * (double)i / (double)count;
}
static double a_fall(size_t i, size_t count) {
  return 100 + normal() - 8 * (double)i / (double)count;
}
static double two_modes(size_t i, size_t count) {
  (void)i, (void)count;
  return (uniform() < 0.7 ? 100 : 115) + normal();
}
static double much_noise(size_t i, size_t count) {
  (void)i, (void)count;
  return 100 + 30 * uniform();
}
static double many_outliers(size_t i, size_t count) {
  (void)i, (void)count;
  return uniform() < 0.15 ? 200 + 400 * uniform() : 100 + normal();
}
static double tied(size_t i, size_t count) { /* slow waves: each sample is near the previous one */
  static double wave;
  (void)count;
  wave = i == 0 ? 0 : 0.98 * wave + 0.2 * normal();
  return 100 + wave;
}

static void make(const shape *what, uint64_t seed, double *samples, size_t count) {
  seed_with(seed);
  for (size_t i = 0; i < count; i++) samples[i] = what->at(i, count);
}

/* In how many of a thousand series each doubt arises. */
static void count_doubts(const shape *what, size_t count, int doubted[8], int *any_out) {
  double *const samples = malloc(count * sizeof *samples);
  assert_non_null(samples);
  for (int bit = 0; bit < 8; bit++) doubted[bit] = 0;
  *any_out = 0;
  for (uint64_t seed = 0; seed < seeds(); seed++) {
    prof_i_series series;
    prof_i_drift drift;
    prof_i_modes modes;
    uint32_t doubts;
    make(what, seed, samples, count);
    assert_true(prof_i_series_init(&series, samples, count));
    assert_true(prof_i_diagnose(&series, &doubts, &drift, &modes));
    prof_i_series_fini(&series);
    for (int bit = 0; bit < 8; bit++) doubted[bit] += (int)(doubts >> bit & 1);
    *any_out += doubts != 0;
  }
  free(samples);
}

static int bit_of(uint32_t doubt) { return __builtin_ctz(doubt); }

static void series_without_fault_are_seldom_doubted(void **unused) {
  static const shape sound[] = {{"constant", a_constant},     {"normal", a_normal},
                                {"uniform", a_uniform},       {"exponential", an_exponential},
                                {"coarse timer", some_steps}, {"2 % outliers", few_outliers}};
  static const size_t counts[] = {12, 24, 40, 200};
  int worst = 0;
  (void)unused;
  for (size_t i = 0; i < sizeof sound / sizeof *sound; i++)
    for (size_t j = 0; j < sizeof counts / sizeof *counts; j++) {
      int doubted[8], any;
      count_doubts(&sound[i], counts[j], doubted, &any);
      print_message(
          "  %-13s %4zu samples: of 1000 doubted %d (noisy %d, drifting %d, two modes %d)\n",
          sound[i].name, counts[j], any, doubted[bit_of(PROF_OP_NOISY)],
          doubted[bit_of(PROF_OP_DRIFTING)], doubted[bit_of(PROF_OP_TWO_MODES)]);
      worst = any > worst ? any : worst;
    }
  assert_true(!is_told() || of_1000(worst) <= 10);
}

static void each_fault_is_seen(void **unused) {
  static const struct {
    shape what;
    uint32_t doubt;
  } faults[] = {{{"rises by 8 %", a_drift}, PROF_OP_DRIFTING},
                {{"falls by 8 %", a_fall}, PROF_OP_DRIFTING},
                {{"two modes", two_modes}, PROF_OP_TWO_MODES},
                {{"noise", much_noise}, PROF_OP_NOISY},
                {{"15 % outliers", many_outliers}, PROF_OP_NOISY}};
  (void)unused;
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
    int doubted[8], any;
    count_doubts(&faults[i].what, COUNT, doubted, &any);
    print_message("  %-13s seen in %d of 1000\n", faults[i].what.name,
                  doubted[bit_of(faults[i].doubt)]);
    assert_true(is_at_least(doubted[bit_of(faults[i].doubt)], 990));
  }
}

/* How often the interval holds the median of what the samples were drawn from: 100 for all
   these. */
static int count_right(const shape *what, size_t count, double right) {
  double samples[2000];
  int hits = 0;
  assert_true(count <= 2000);
  for (uint64_t seed = 0; seed < seeds(); seed++) {
    prof_i_series series;
    double low, high;
    make(what, seed, samples, count);
    assert_true(prof_i_series_init(&series, samples, count));
    const double confidence = prof_i_median_interval(&series, &low, &high);
    assert_true(confidence >= 0.949);
    hits += low <= right && right <= high;
    prof_i_series_fini(&series);
  }
  print_message("  %-13s %4zu samples: the interval held the median in %d of 1000\n", what->name,
                count, hits);
  return hits;
}

static void the_interval_holds_the_median_as_often_as_it_says(void **unused) {
  static const shape independent = {"normal", a_normal}, waves = {"slow waves", tied};
  (void)unused;
  for (size_t count = 6; count <= 2000; count = count < 40                         ? count + 7
                                                : count * 4 > 2000 && count < 2000 ? 2000
                                                                                   : count * 4)
    assert_true(is_at_least(count_right(&independent, count, 100), 935));
  /* if they are taken for independent: 177 */
  assert_true(is_at_least(count_right(&waves, 1000, 100), 850));
}

/* In how many of a thousand series without a tie a tie is reported, and by how much at worst. */
static int count_tied(const shape *what, size_t count, double *least_out) {
  double samples[1000];
  int ties = 0;
  assert_true(count <= 1000);
  *least_out = 1;
  for (uint64_t seed = 0; seed < seeds(); seed++) {
    prof_i_series series;
    make(what, seed, samples, count);
    assert_true(prof_i_series_init(&series, samples, count));
    const double share = prof_i_effective_count(&series) / (double)count;
    ties += share < 1;
    *least_out = share < *least_out ? share : *least_out;
    prof_i_series_fini(&series);
  }
  print_message(
      "  %-13s %4zu samples: taken for tied in %d of 1000, for %.2f of the samples at worst\n",
      what->name, count, ties, *least_out);
  return ties;
}

static void a_short_series_of_slow_waves_counts_for_few(void **unused) {
  static const shape waves = {"slow waves", tied},
                     independent[] = {{"normal", a_normal}, {"exponential", an_exponential}};
  double least;
  (void)unused;
  /* if what is seen of the tie were all: 895 */
  assert_true(is_at_least(count_right(&waves, 200, 100), 930));
  assert_true(is_at_least(count_right(&waves, 500, 100), 930));
  for (size_t i = 0; i < sizeof independent / sizeof *independent; i++)
    for (size_t count = 40; count <= 1000; count *= 5) {
      assert_true(seeds() < 1000 || count_tied(&independent[i], count, &least) <= 40);
      assert_true(seeds() < 1000 || least > 0.3);
    }
}

/* Against a sort: many equal ones, rising, falling, and by chance. */
static void quantiles_are_the_same_without_sorting(void **unused) {
  double values[97], sorted[97];
  (void)unused;
  for (uint64_t seed = 0; seed < seeds(); seed++) {
    seed_with(seed);
    const size_t count = 1 + (size_t)(uniform() * 96);
    const int how = (int)(seed % 4);
    for (size_t i = 0; i < count; i++)
      values[i] = how == 0   ? (double)(int)(3 * uniform())
                  : how == 1 ? (double)i
                  : how == 2 ? -(double)i
                             : uniform();
    memcpy(sorted, values, count * sizeof *values);
    prof_i_sort_doubles(sorted, count);
    const double share = seed % 7 == 0 ? 1 : seed % 7 == 1 ? 0 : uniform();
    assert_true(prof_i_quantile_among(values, count, share) ==
                prof_i_quantile(sorted, count, share));
    prof_i_sort_doubles(values, count);
    assert_memory_equal(values, sorted, count * sizeof *values);
  }
}

static void statistics_are_those_of_the_textbook(void **unused) {
  static const double samples[] = {4, 1, 3, 2, 10};
  prof_i_series series;
  double low, high;
  (void)unused;
  assert_true(prof_i_series_init(&series, samples, 5));
  assert_true(prof_i_mean(&series) == 4);
  const double deviation = prof_i_deviation(&series, 4);
  assert_true(deviation > 3.535533 && deviation < 3.535535); /* sqrt(12.5) */
  assert_true(prof_i_quantile(series.sorted, 5, 0.5) == 3 &&
              prof_i_quantile(series.sorted, 5, 0.25) == 2);
  const double q90 = prof_i_quantile(series.sorted, 5, 0.9); /* numpy.quantile: 7.6 */
  assert_true(q90 > 7.599999 && q90 < 7.600001);
  assert_true(prof_i_median_interval(&series, &low, &high) == 1 - 2.0 / 32);
  assert_true(low == 1 && high == 10);
  prof_i_series_fini(&series);
  double x = 1e-12;
  for (int i = 0; i < 30; i++) {
    x *= 7;
    const double error = prof_i_sqrt(x) * prof_i_sqrt(x) / x - 1;
    assert_true(error < 1e-14 && error > -1e-14);
  }
  assert_true(prof_i_sqrt(0) == 0 && prof_i_sqrt(-1) == 0);
}

/* ---- comparing ---- */

static int count_ratios(double factor, size_t count, bool (*is_right)(const prof_i_ratio *ratio)) {
  double first[COUNT], second[COUNT];
  int right = 0;
  for (uint64_t seed = 0; seed < seeds(); seed++) {
    prof_i_series a, b;
    prof_i_ratio ratio;
    seed_with(seed);
    for (size_t i = 0; i < count; i++) first[i] = 100 + 2 * normal() + skewed();
    for (size_t i = 0; i < count; i++) second[i] = factor * (100 + 2 * normal() + skewed());
    assert_true(prof_i_series_init(&a, first, count) && prof_i_series_init(&b, second, count));
    assert_true(prof_i_ratio_of(&a, &b, &ratio));
    right += is_right(&ratio);
    prof_i_series_fini(&a);
    prof_i_series_fini(&b);
  }
  return right;
}
static bool holds_one(const prof_i_ratio *ratio) {
  return ratio->low <= 1 && 1 <= ratio->high && ratio->low <= ratio->middle &&
         ratio->middle <= ratio->high;
}
static bool holds_1_05(const prof_i_ratio *ratio) {
  return ratio->low <= 1.05 && 1.05 <= ratio->high;
}
static bool is_longer(const prof_i_ratio *ratio) { return ratio->low > 1.02; }

static void the_ratio_is_within_its_interval_as_often_as_it_says(void **unused) {
  (void)unused;
  for (size_t count = 10; count <= COUNT; count *= 4) {
    const int same = count_ratios(1, count, holds_one),
              longer = count_ratios(1.05, count, holds_1_05);
    print_message("  %3zu samples each: the interval held 1 in %d, 1.05 in %d of 1000\n", count,
                  same, longer);
    assert_true(is_at_least(same, 930) && is_at_least(longer, 930));
  }
  const int sure = count_ratios(1.05, 160, is_longer);
  print_message("  5 %% longer, 160 samples: said with certainty in %d of 1000\n", sure);
  assert_true(is_at_least(sure, 990));
}

/* Two series that are alike stand wholly one beyond the other in 2 of C(n + m, n) orders: in 5 %
   and fewer from 4 and 4 on, from 1 and 39. */
static void a_ratio_has_an_interval_only_from_enough_samples(void **unused) {
  static const struct {
    size_t n, m;
    bool has_one;
  } cases[] = {{1, 1, false},  {3, 3, false}, {4, 4, true},   {2, 7, false}, {2, 8, true},
               {1, 38, false}, {1, 39, true}, {38, 1, false}, {39, 1, true}};
  double samples[40];
  (void)unused;
  seed_with(1);
  for (size_t i = 0; i < 40; i++) samples[i] = 100 + uniform();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    prof_i_series a, b;
    prof_i_ratio ratio;
    assert_true(prof_i_series_init(&a, samples, cases[i].n) &&
                prof_i_series_init(&b, samples, cases[i].m));
    assert_true(prof_i_ratio_of(&a, &b, &ratio));
    assert_int_equal(cases[i].has_one, ratio.low > 0);
    assert_int_equal(cases[i].has_one, ratio.high < 1e300);
    prof_i_series_fini(&a);
    prof_i_series_fini(&b);
  }
  for (size_t rounds = 1; rounds <= 8; rounds++) {
    prof_i_ratio ratio;
    assert_true(prof_i_paired_ratio_of(samples, samples + 8, rounds, &ratio));
    assert_int_equal(rounds >= 6, ratio.low > 0);
    assert_int_equal(rounds >= 6, ratio.high < 1e300);
  }
}

/* Both are disturbed by the same neighbour, in waves, and each by its own noise. */
static void what_disturbs_both_falls_out_of_pairs(void **unused) {
  double first[COUNT], second[COUNT];
  int same = 0, longer = 0;
  (void)unused;
  for (uint64_t seed = 0; seed < seeds(); seed++) {
    prof_i_ratio ratio;
    double busy = 1;
    seed_with(seed);
    for (int i = 0; i < COUNT; i++) {
      if (uniform() < 0.02) busy = busy > 1 ? 1 : 1.8;
      first[i] = busy * (100 + 2 * normal() + skewed());
      second[i] = busy * (100 + 2 * normal() + skewed());
    }
    assert_true(prof_i_paired_ratio_of(first, second, COUNT, &ratio));
    same += holds_one(&ratio);
    for (int i = 0; i < COUNT; i++) second[i] *= 1.05;
    assert_true(prof_i_paired_ratio_of(first, second, COUNT, &ratio));
    longer += is_longer(&ratio);
  }
  print_message(
      "  200 rounds beside a neighbour: the interval held 1 in %d of 1000, 5 %% longer was said "
      "with certainty in %d\n",
      same, longer);
  assert_true(is_at_least(same, 935) && is_at_least(longer, 990));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(statistics_are_those_of_the_textbook),
      cmocka_unit_test(quantiles_are_the_same_without_sorting),
      cmocka_unit_test(the_interval_holds_the_median_as_often_as_it_says),
      cmocka_unit_test(a_short_series_of_slow_waves_counts_for_few),
      cmocka_unit_test(series_without_fault_are_seldom_doubted),
      cmocka_unit_test(each_fault_is_seen),
      cmocka_unit_test(the_ratio_is_within_its_interval_as_often_as_it_says),
      cmocka_unit_test(a_ratio_has_an_interval_only_from_enough_samples),
      cmocka_unit_test(what_disturbs_both_falls_out_of_pairs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
