/* See diagnose.h. */
#include "diagnose.h"

#include <prof/op.h>
#include <stdlib.h>

enum {
  /* of medians of successive samples, by which the trend is computed */
  BLOCKS_MAX = 256,
  BLOCKS_FEW = 6,
  TREND_MIN = 12, /* samples for a trend to mean something */
  MODES_MIN = 24  /* and for a second mode: fewer samples leave gaps of any origin */
};
static const double z999 = 3.290527, z99 = 2.326348, material_share = 0.02, noisy_spread = 0.10,
                    noisy_outliers = 0.05;

/* ---- drift ---- */

static size_t make_blocks(const prof_i_series *series, double *blocks, double *scratch) {
  const size_t count = series->count < BLOCKS_MAX ? series->count : BLOCKS_MAX;
  for (size_t i = 0; i < count; i++) {
    const size_t from = i * series->count / count, to = (i + 1) * series->count / count;
    for (size_t j = from; j < to; j++) scratch[j - from] = series->samples[j];
    blocks[i] = prof_i_quantile_among(scratch, to - from, 0.5);
  }
  return count;
}

/* Less what equal values take from the variance. */
static double trend_variance(double *blocks, size_t count) {
  const double n = (double)count;
  double variance = n * (n - 1) * (2 * n + 5);
  prof_i_sort_doubles(blocks, count);
  for (size_t i = 0, j; i < count; i = j) {
    for (j = i + 1; j < count && !(blocks[j] > blocks[i]);) j++;
    const double t = (double)(j - i);
    variance -= t * (t - 1) * (2 * t + 5);
  }
  return variance / 18;
}

bool prof_i_drift_test(const prof_i_series *series, prof_i_drift *out) {
  double blocks[BLOCKS_MAX];
  *out = (prof_i_drift){0, 0};
  if (series->count < TREND_MIN) return true;
  const size_t most = BLOCKS_MAX * (BLOCKS_MAX - 1) / 2;
  double *const scratch = malloc((series->count > most ? series->count : most) * sizeof *scratch);
  if (!scratch) return false;
  const size_t count = make_blocks(series, blocks, scratch);
  double sum = 0;
  size_t slopes = 0;
  for (size_t i = 0; i < count; i++)
    for (size_t j = i + 1; j < count; j++) {
      sum += (blocks[j] > blocks[i]) - (blocks[j] < blocks[i]);
      scratch[slopes++] = (blocks[j] - blocks[i]) / (double)(j - i);
    }
  const double median = prof_i_quantile(series->sorted, series->count, 0.5),
               slope = prof_i_quantile_among(scratch, slopes, 0.5);
  free(scratch);
  const double deviation = prof_i_sqrt(trend_variance(blocks, count));
  if (deviation > 0) out->score = (sum - (sum > 0) + (sum < 0)) / deviation;
  if (median > 0) out->share = slope * (double)(count - 1) / median;
  return true;
}

/* ---- two modes ---- */

/* Splits the sorted samples into two parts with the least inner spread (Otsu). The highest
   twentieth is left out, since it may be outliers. There are two modes if the parts are far apart
   for their widths, and nearly nothing is in the middle. A single mode of any shape never has both.
   */
prof_i_modes prof_i_modes_find(const prof_i_series *series) {
  const double *const values = series->sorted;
  const size_t count = series->count - series->count / 20, least = count / 12 > 3 ? count / 12 : 3;
  prof_i_modes modes = {0, 0, 0, false};
  if (series->count < MODES_MIN) return modes;
  const double origin = values[count / 2]; /* squares of differences to it lose no places */
  double sum = 0, squares = 0, below = 0, below_squares = 0, best = -1, inside = 0;
  for (size_t i = 0; i < count; i++) {
    sum += values[i] - origin;
    squares += (values[i] - origin) * (values[i] - origin);
  }
  size_t split = 0;
  for (size_t i = 0; i + least < count; i++) {
    const double x = values[i] - origin;
    below += x;
    below_squares += x * x;
    const double n = (double)(i + 1), m = (double)(count - i - 1);
    if (i + 1 < least) continue;
    const double between =
        (below / n - (sum - below) / m) * (below / n - (sum - below) / m) * n * m;
    if (between <= best) continue;
    best = between;
    split = i + 1;
    modes.low = origin + below / n;
    modes.high = origin + (sum - below) / m;
    inside = (below_squares - below * below / n) +
             (squares - below_squares - (sum - below) * (sum - below) / m);
  }
  if (split == 0) return modes;
  const double gap = modes.high - modes.low, width = prof_i_sqrt(inside / (double)count);
  size_t between_count = 0;
  for (size_t i = 0; i < count; i++)
    between_count += values[i] > modes.low + 0.35 * gap && values[i] < modes.low + 0.65 * gap;
  modes.high_share = (double)(series->count - split) / (double)series->count;
  modes.are_two = gap > (4 + 60.0 / (double)count) * width && gap > material_share * modes.low &&
                  between_count * 20 <= count;
  return modes;
}

/* ---- noise ---- */

double prof_i_outlier_share(const prof_i_series *series) {
  const double low = prof_i_quantile(series->sorted, series->count, 0.25),
               high = prof_i_quantile(series->sorted, series->count, 0.75);
  const double reach = 3 * (high - low);
  size_t count = 0;
  for (size_t i = 0; i < series->count; i++)
    count += series->sorted[i] < low - reach || series->sorted[i] > high + reach;
  return (double)count / (double)series->count;
}

static bool is_series_noisy(const prof_i_series *series) {
  const double median = prof_i_quantile(series->sorted, series->count, 0.5);
  const double spread = prof_i_quantile(series->sorted, series->count, 0.75) -
                        prof_i_quantile(series->sorted, series->count, 0.25);
  const double n = (double)series->count,
               far = prof_i_quantile(series->sorted, series->count, 1 - noisy_outliers) - median;
  /* More than one in twenty, and not by chance: that happens to one series in a hundred. */
  const double most = noisy_outliers + z99 * prof_i_sqrt(noisy_outliers * (1 - noisy_outliers) / n);
  return spread > noisy_spread * median ||
         (prof_i_outlier_share(series) > most && far > noisy_spread * median);
}

bool prof_i_diagnose(const prof_i_series *series, uint32_t *doubts_out, prof_i_drift *drift_out,
                     prof_i_modes *modes_out) {
  uint32_t doubts = 0;
  if (!prof_i_drift_test(series, drift_out)) return false;
  *modes_out = prof_i_modes_find(series);
  if (series->count < BLOCKS_FEW) doubts |= PROF_OP_FEW_SAMPLES;
  const double size = drift_out->share < 0 ? -drift_out->share : drift_out->share;
  if ((drift_out->score > z999 || drift_out->score < -z999) && size > material_share)
    doubts |= PROF_OP_DRIFTING;
  if (modes_out->are_two) doubts |= PROF_OP_TWO_MODES;
  if (is_series_noisy(series)) doubts |= PROF_OP_NOISY;
  *doubts_out = doubts;
  return true;
}
