/* Rank statistics of two small samples: an exact test, and an interval for the ratio. They assume
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
#ifndef PROF_ANALYSIS_STATISTICS_H
#define PROF_ANALYSIS_STATISTICS_H

#include <stdbool.h>
#include <stdint.h>

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

#endif
