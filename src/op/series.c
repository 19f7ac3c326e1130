/* Statistics of a series of samples, without a word on what they mean. Pure functions but for the
   memory of a sorted copy; no libm, so that the library needs none. */
#include "internal.h"

#include <math.h> /* INFINITY alone: no libm */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- one series ---- */

enum { EXACT_MAX = 1000 }; /* samples: 2^-1000 is a double yet */
static const double z95 = 1.959964;

static int compare_doubles(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

void prof_i_sort_doubles(double *values, size_t count) {
  qsort(values, count, sizeof *values, compare_doubles);
}

bool prof_i_series_init(prof_i_series *series, const double *samples, size_t count) {
  double *const sorted = count <= SIZE_MAX / sizeof *sorted ? malloc(count * sizeof *sorted) : NULL;
  if (!sorted) return false;
  memcpy(sorted, samples, count * sizeof *sorted);
  prof_i_sort_doubles(sorted, count);
  *series = (prof_i_series){samples, sorted, count};
  return true;
}

void prof_i_series_fini(prof_i_series *series) {
  free(series->sorted);
  series->sorted = NULL;
}

/* Newton's way, from a power of two that is near. */
double prof_i_sqrt(double x) {
  if (!(x > 0 && x < 1e300)) return 0;
  double root = 1, rest = x;
  while (rest > 4) {
    rest /= 4;
    root *= 2;
  }
  while (rest < 0.25) {
    rest *= 4;
    root /= 2;
  }
  for (int i = 0; i < 6; i++) root = (root + x / root) / 2;
  return root;
}

double prof_i_quantile(const double *sorted, size_t count, double share) {
  const double at = share * (double)(count - 1);
  const size_t below = (size_t)at;
  if (below + 1 >= count) return sorted[count - 1];
  return sorted[below] + (at - (double)below) * (sorted[below + 1] - sorted[below]);
}

/* Moves the k-th smallest to index k, with no larger one before it (Hoare). */
static double select_from(double *values, size_t count, size_t k) {
  size_t from = 0, to = count - 1;
  while (from < to) {
    const double a = values[from], b = values[from + (to - from) / 2], c = values[to];
    const double pivot = a < b ? (b < c ? b : a < c ? c : a) : (a < c ? a : b < c ? c : b);
    size_t i = from, j = to;
    for (;;) {
      while (values[i] < pivot) i++;
      while (values[j] > pivot) j--;
      if (i >= j) break;
      const double other = values[i];
      values[i++] = values[j];
      values[j--] = other;
    }
    /* all up to it are at most the pivot, all behind at least */
    const size_t split = i > j ? j : i - (values[i] > pivot);
    if (k <= split)
      to = split;
    else
      from = split + 1;
  }
  return values[k];
}

double prof_i_quantile_among(double *values, size_t count, double share) {
  const double at = share * (double)(count - 1);
  const size_t below = (size_t)at;
  if (below + 1 >= count) return select_from(values, count, count - 1);
  const double low = select_from(values, count, below),
               high = select_from(values, count, below + 1);
  return low + (at - (double)below) * (high - low);
}

double prof_i_mean(const prof_i_series *series) {
  double sum = 0;
  for (size_t i = 0; i < series->count; i++) sum += series->samples[i];
  return sum / (double)series->count;
}

double prof_i_deviation(const prof_i_series *series, double mean) {
  double sum = 0;
  if (series->count < 2) return 0;
  for (size_t i = 0; i < series->count; i++)
    sum += (series->samples[i] - mean) * (series->samples[i] - mean);
  return prof_i_sqrt(sum / (double)(series->count - 1));
}

static double clamp(double x, double low, double high) {
  return x < low ? low : x > high ? high : x;
}

/* The correlation of a sample with the next one: 0 none, near 1 full. Samples are clipped to the
   middle nine tenths. */
static double autocorrelation(const prof_i_series *series) {
  const double low = prof_i_quantile(series->sorted, series->count, 0.05),
               high = prof_i_quantile(series->sorted, series->count, 0.95);
  double mean = 0, both = 0, own = 0;
  for (size_t i = 0; i < series->count; i++)
    mean += clamp(series->samples[i], low, high) / (double)series->count;
  for (size_t i = 0; i < series->count; i++) {
    const double here = clamp(series->samples[i], low, high) - mean;
    own += here * here;
    if (i + 1 < series->count) both += here * (clamp(series->samples[i + 1], low, high) - mean);
  }
  return own > 0 ? both / own : 0;
}

/* The largest number of samples at either end of which the median is beyond with a chance of 2.5 %
   at most; the chance of both ends together. */
static size_t exact_rank(size_t count, double *chance_out) {
  double term = 1, sum = 0, last = 0;
  size_t rank = 0;
  for (size_t i = 0; i < count; i++) term /= 2;
  for (; rank < count / 2; rank++) {
    if (sum + term > 0.025) break;
    sum += term;
    last = sum;
    term *= (double)(count - rank) / (double)(rank + 1);
  }
  *chance_out = 2 * last;
  return rank;
}

/* Of a short series its own mean takes (1 + 3 tie) / n away from what is seen of a tie (Kendall,
   Marriott and Pope). */
double prof_i_effective_count(const prof_i_series *series) {
  const double n = (double)series->count, seen = autocorrelation(series);
  if (seen <= 2 / prof_i_sqrt(n)) return n;
  const double tie = seen + (1 + 3 * seen) / n, as_many = n * (1 - tie) / (1 + tie);
  return as_many > 1 ? as_many : 1;
}

double prof_i_median_interval(const prof_i_series *series, double *low_out, double *high_out) {
  const size_t count = series->count;
  const double n = (double)count, as_many = prof_i_effective_count(series);
  double chance = 0.05, rank = 0;
  if (count <= EXACT_MAX)
    rank = (double)exact_rank(count, &chance);
  else
    rank = (n - z95 * prof_i_sqrt(n)) / 2 - 1;
  if (count >= 6 && as_many < n) {
    const double wide = (n - z95 * n / prof_i_sqrt(as_many > 1 ? as_many : 1)) / 2;
    if (wide < rank) rank = wide;
  }
  if (count < 6) { /* all of them: the median is beyond with a chance of 2 / 2^n */
    chance = 2;
    for (size_t i = 0; i < count; i++) chance /= 2;
  }
  const size_t k = rank > 1 ? (size_t)rank - 1 : 0;
  *low_out = series->sorted[k];
  *high_out = series->sorted[count - 1 - k];
  return 1 - chance;
}

/* ---- the ratio of two ---- */

/* By all pairs of one sample of each. The median of the pairs' ratios
   is the estimate of Hodges and Lehmann. The k-th ratio from either end bounds it. k is the rank
   sum that two equal series fall below once in forty times. Ratios are in the order of
   differences of logarithms, so no logarithm is needed. */

enum {
  THIN_TO = 400,  /* samples of each: 160 000 pairs; quantiles represent more */
  ROUNDS_MIN = 6, /* 2 / 2^6 is 3 %: fewer have no interval by the sign test */
  ORDERS_MIN = 40 /* of two series among each other, of which 2 are the extreme ones: 5 % */
};

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
