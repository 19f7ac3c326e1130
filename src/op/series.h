/* Statistics of a series of samples, without a word on what they mean. Pure functions but for the
   memory of a sorted copy; no libm, so that the library needs none. */
#ifndef PROF_OP_SERIES_H
#define PROF_OP_SERIES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct prof_i_series {
  const double *samples; /* in the order in which they were taken; the caller's */
  double *sorted;
  size_t count;
} prof_i_series;

/* False: no memory. count is at least 1. The caller calls fini. */
bool prof_i_series_init(prof_i_series *series, const double *samples, size_t count);
void prof_i_series_fini(prof_i_series *series);

void prof_i_sort_doubles(double *values, size_t count);
double prof_i_sqrt(double x); /* 0 for what has none, or is past 1e300 */

/* Linear between the two around it (type 7 of Hyndman and Fan). */
double prof_i_quantile(const double *sorted, size_t count, double share);

/* The same of values that are not sorted, and are put into another order. Takes time by their
   number alone. */
double prof_i_quantile_among(double *values, size_t count, double share);

/* The median's interval: the k-th sample from either end, with k as large as the sign test allows
   for 95 %. Correlated samples count for fewer, so the interval is wider. Returns its confidence:
   less than 0.95 for fewer than 6 samples. */
double prof_i_median_interval(const prof_i_series *series, double *low_out, double *high_out);

double prof_i_mean(const prof_i_series *series);
double prof_i_deviation(const prof_i_series *series, double mean); /* by n - 1; 0 for one */

/* For how many independent samples they count: all, where nothing more than chance ties each to the
   next; one at least. */
double prof_i_effective_count(const prof_i_series *series);

/* ---- the ratio of two ---- */

/* Pure but for scratch memory. */

typedef struct prof_i_ratio {
  /* second to first, with an interval of 95 %; low 0 and high infinity: so few samples have none */
  double middle, low, high;
} prof_i_ratio;

/* False: no memory. All samples above 0. */
bool prof_i_ratio_of(const prof_i_series *first, const prof_i_series *second, prof_i_ratio *out);

/* The same of samples that were taken in turn, the i-th of either in one round. It uses the rounds'
   own ratios, which cancel what disturbs a whole round, and their median's interval. */
bool prof_i_paired_ratio_of(const double *first, const double *second, size_t count,
                            prof_i_ratio *out);

#endif
