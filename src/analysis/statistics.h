/* Statistics: rank tests of two small samples, and the distribution of durations. The memory is the
   caller's. One thread at a time an object. */
#ifndef PROF_ANALYSIS_STATISTICS_H
#define PROF_ANALYSIS_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- two samples ---- */

/* Rank statistics: an exact test, and an interval for the ratio of two samples. They assume
   no distribution. compare.c applies them to the medians of runs. Pure functions on the caller's
   memory, which is O(n * n * n).

   Test: Mann and Whitney, "On a test of whether one of two random variables is stochastically
   larger than the other", Ann. Math. Stat. 18 (1947). Equal values get the mean of their ranks. p
   is then exact too: it is of the permutations of these mean ranks.

   Interval: Hodges and Lehmann, "Estimates of location based on rank tests", Ann. Math. Stat. 34
   (1963), with the order statistics of Moses: Hollander, Wolfe and Chicken, "Nonparametric
   Statistical Methods", 3rd edition, section 4.3. Applied to logarithms, differences are ratios.
   The order of ratios is that of their logarithms, so no logarithm is taken. Equal values make the
   interval wider, never too narrow. */

enum { PROF_I_SAMPLE_MAX = 100 }; /* values of one sample at most */

/* The distribution of the rank sum of `count[0]` of count[0] + count[1] different values. Begins as
   zeros. */
typedef struct prof_i_rank_test {
  uint32_t count[2];
  double *shares;  /* of each doubled rank sum */
  double level;    /* the highest p below 0.05 that different values can have; 0: none */
  uint32_t rank;   /* of the interval's ends among the ratios, from 1; 0: no interval */
  double coverage; /* of the interval, at least 0.95 */
} prof_i_rank_test;

typedef struct prof_i_ratio_interval {
  double low, middle, high; /* middle: the median of all ratios */
} prof_i_ratio_interval;

/* Prepares samples of these sizes, each 1 to PROF_I_SAMPLE_MAX. Nothing is done if they are those
   of the last call. False: no memory. */
bool prof_i_rank_test_set(prof_i_rank_test *test, uint32_t first_count, uint32_t second_count);
void prof_i_rank_test_fini(prof_i_rank_test *test);

/* The two-sided p of two samples of the prepared sizes. False: no memory. */
bool prof_i_rank_test_p(const prof_i_rank_test *test, const double *first, const double *second,
                        double *p_out);

/* The ratio second / first, of positive values. Without an interval (test->rank is 0) low is 0 and
   high is infinite. False: no memory. */
bool prof_i_rank_test_ratio(const prof_i_rank_test *test, const double *first, const double *second,
                            prof_i_ratio_interval *ratio_out);

/* Sorts the values. The mean of the middle two if their number is even; 0 if there are none. */
double prof_i_median(double *values, uint32_t count);

/* ---- durations ---- */

/* Count, sums, least, most, and a histogram for median and 99th percentile with 1 % error. Few
   durations are kept exactly, others in 64 buckets for each doubling. Memory grows with the
   count. */

enum {
  PROF_I_DURATIONS_EXACT_MAX = 512, /* durations kept as they are; past them, buckets */
  PROF_I_DURATION_FINE_BITS = 6,
  PROF_I_DURATION_BUCKETS = (64 - PROF_I_DURATION_FINE_BITS + 1) << PROF_I_DURATION_FINE_BITS,
  PROF_I_DURATION_WIDE_BITS = 3,
  PROF_I_DURATION_WIDE_BUCKETS = (64 - PROF_I_DURATION_WIDE_BITS + 1) << PROF_I_DURATION_WIDE_BITS
};

typedef struct prof_i_duration_stats {
  /* Neighbouring sums would be added as one vector. That is slower, and waits if only one was
     written. */
  uint64_t calls;
  uint64_t min_ns;
  uint64_t total_ns;
  uint64_t max_ns;
  uint64_t self_ns;
  /* NULL, or PROF_I_DURATION_BUCKETS counts: narrow, so that many of these stay near the
     processor */
  uint16_t *buckets;
  union {
    uint64_t *exact;   /* without buckets: all durations, from the second call on */
    uint32_t *carries; /* with buckets: how often each has overflowed; NULL: never */
  } more;
  /* kept by the owner: the part of total_ns that is in no other call of the group */
  uint64_t outer_ns;
} prof_i_duration_stats;

void prof_i_duration_stats_init(prof_i_duration_stats *stats);
void prof_i_duration_stats_fini(prof_i_duration_stats *stats);

/* Both return false without memory. Then the statistics are invalid. keep: the part of add for few
   durations. carry: a bucket has just overflowed. */
bool prof_i_duration_stats_keep(prof_i_duration_stats *stats, uint64_t duration_ns);
bool prof_i_duration_stats_carry(prof_i_duration_stats *stats, uint32_t bucket);

/* The duration that this share of the calls does not exceed. Sorts what is exact. */
uint64_t prof_i_duration_stats_quantile(prof_i_duration_stats *stats, double share);

/* The calls of each of 8 buckets for each doubling, exactly: for drawing. */
void prof_i_duration_stats_widen(const prof_i_duration_stats *stats,
                                 uint64_t calls_out[PROF_I_DURATION_WIDE_BUCKETS]);

/* The number of a bucket of 1 << bits for each doubling. Up to twice that, each duration has its
   own bucket. */
static inline uint32_t prof_i_duration_bucket(uint64_t ns, uint32_t bits) {
  const uint32_t top = (63u ^ (uint32_t)__builtin_clzll(ns | UINT64_C(1) << bits)) - bits;
  return (top << bits) + (uint32_t)(ns >> top);
}

static inline uint32_t prof_i_duration_stats_bucket(uint64_t ns) {
  return prof_i_duration_bucket(ns, PROF_I_DURATION_FINE_BITS);
}

/* Budget: about 3 ns. */
static inline bool prof_i_duration_stats_add(prof_i_duration_stats *stats, uint64_t duration_ns,
                                             uint64_t self_ns) {
  if (__builtin_expect(stats->buckets != NULL, 1)) {
    const uint32_t bucket = prof_i_duration_stats_bucket(duration_ns);
    if (__builtin_expect(++stats->buckets[bucket] == 0, 0) &&
        !prof_i_duration_stats_carry(stats, bucket))
      return false;
  } else if (!prof_i_duration_stats_keep(stats, duration_ns)) {
    return false;
  }
  stats->calls++;
  stats->total_ns += duration_ns;
  stats->self_ns += self_ns;
  if (duration_ns < stats->min_ns) stats->min_ns = duration_ns;
  if (duration_ns > stats->max_ns) stats->max_ns = duration_ns;
  return true;
}

#endif
