/* The ratio of two series, by all pairs of one sample of each. The median of the pairs' ratios is
   the estimate of Hodges and Lehmann. The k-th ratio from either end bounds it. k is the rank sum
   that two equal series fall below once in forty times. Ratios are in the order of differences of
   logarithms, so no logarithm is needed. */
#include "compare.h"

#include <math.h> /* INFINITY alone: no libm */
#include <stdlib.h>

enum {
  THIN_TO = 400,  /* samples of each: 160 000 pairs; quantiles represent more */
  ROUNDS_MIN = 6, /* 2 / 2^6 is 3 %: fewer have no interval by the sign test */
  ORDERS_MIN = 40 /* of two series among each other, of which 2 are the extreme ones: 5 % */
};
static const double z95 = 1.959964;

static size_t thinned_count(const prof_i_series *series) {
  return series->count < THIN_TO ? series->count : THIN_TO;
}
static double thinned_sample(const prof_i_series *series, size_t i) {
  return series->count <= THIN_TO
             ? series->sorted[i]
             : prof_i_quantile(series->sorted, series->count, ((double)i + 0.5) / THIN_TO);
}

/* C(n + m, n) orders. */
static bool has_interval(size_t n, size_t m) {
  const size_t fewer = n < m ? n : m, more = n < m ? m : n;
  double orders = 1;
  for (size_t i = 1; i <= fewer && orders < ORDERS_MIN; i++)
    orders *= (double)(more + i) / (double)i;
  return orders > ORDERS_MIN - 0.5; /* a whole number, but for rounding */
}

static void set_open_interval(prof_i_ratio *out) {
  out->low = 0;
  out->high = (double)INFINITY;
}

bool prof_i_ratio_of(const prof_i_series *first, const prof_i_series *second, prof_i_ratio *out) {
  const size_t n = thinned_count(first), m = thinned_count(second), pairs = n * m;
  double *const ratios = malloc(pairs * sizeof *ratios);
  if (!ratios) return false;
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < m; j++)
      ratios[i * m + j] = thinned_sample(second, j) / thinned_sample(first, i);
  const double x = prof_i_effective_count(first), y = prof_i_effective_count(second);
  /* As a share of the pairs, so that it holds for thinned series too. */
  const double share = 0.5 - z95 * prof_i_sqrt((x + y + 1) / (12 * x * y));
  out->middle = prof_i_quantile_among(ratios, pairs, 0.5);
  out->low = prof_i_quantile_among(ratios, pairs, share > 0 ? share : 0);
  out->high = prof_i_quantile_among(ratios, pairs, share > 0 ? 1 - share : 1);
  if (!has_interval(first->count, second->count)) set_open_interval(out);
  free(ratios);
  return true;
}

bool prof_i_paired_ratio_of(const double *first, const double *second, size_t count,
                            prof_i_ratio *out) {
  prof_i_series series;
  double *const ratios = calloc(count, sizeof *ratios);
  if (!ratios) return false;
  for (size_t i = 0; i < count; i++) ratios[i] = second[i] / first[i];
  const bool is_made = prof_i_series_init(&series, ratios, count);
  if (is_made) {
    out->middle = prof_i_quantile(series.sorted, count, 0.5);
    if (count < ROUNDS_MIN)
      set_open_interval(out);
    else
      prof_i_median_interval(&series, &out->low, &out->high);
    prof_i_series_fini(&series);
  }
  free(ratios);
  return is_made;
}
