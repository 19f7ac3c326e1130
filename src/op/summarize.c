/* From samples to statistics, and reasons to doubt them. */
#include <prof/op.h>
#include <stdlib.h>
#include <string.h>

#include "../base/port.h"
#include "internal.h"

/* ---- reasons to doubt a series ---- */

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

static bool drift_test(const prof_i_series *series, prof_i_drift *out) {
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
static prof_i_modes modes_find(const prof_i_series *series) {
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

/* Of the samples, how many are further from the middle half than three times its width. */
static double series_outlier_share(const prof_i_series *series) {
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
         (series_outlier_share(series) > most && far > noisy_spread * median);
}

bool prof_i_diagnose(const prof_i_series *series, uint32_t *doubts_out, prof_i_drift *drift_out,
                     prof_i_modes *modes_out) {
  uint32_t doubts = 0;
  if (!drift_test(series, drift_out)) return false;
  *modes_out = modes_find(series);
  if (series->count < BLOCKS_FEW) doubts |= PROF_OP_FEW_SAMPLES;
  const double size = drift_out->share < 0 ? -drift_out->share : drift_out->share;
  if ((drift_out->score > z999 || drift_out->score < -z999) && size > material_share)
    doubts |= PROF_OP_DRIFTING;
  if (modes_out->are_two) doubts |= PROF_OP_TWO_MODES;
  if (is_series_noisy(series)) doubts |= PROF_OP_NOISY;
  *doubts_out = doubts;
  return true;
}

/* ---- the result ---- */

enum { SURE_TIMES_MIN = 100 /* a sample's length, in what the timer may be wrong by */ };
static const double slowdown_max = 1.10, clock_share_min = 0.95;

static void set_inner_pointers(prof_op_result *result) {
  result->sorted = result->samples + result->count;
  result->key = (char *)(result->sorted + result->count);
}

static prof_op_result *allocate_result(const prof_i_op_identity *identity, const char *key,
                                       const double *samples, size_t count) {
  const size_t key_bytes = strlen(key) + 1,
               bytes = sizeof(prof_op_result) + 2 * count * sizeof(double) + key_bytes;
  prof_op_result *const result = calloc(1, bytes);
  if (!result) return NULL;
  result->identity = *identity;
  result->count = count;
  result->bytes = bytes;
  set_inner_pointers(result);
  memcpy(result->samples, samples, count * sizeof *samples);
  memcpy(result->sorted, samples, count * sizeof *samples);
  prof_i_sort_doubles(result->sorted, count);
  memcpy(result->key, key, key_bytes);
  return result;
}

static bool fill_statistics(prof_op_result *result) {
  prof_op_info *const info = &result->info;
  const prof_i_series series = {result->samples, result->sorted, result->count};
  prof_i_drift drift;
  prof_i_modes modes;
  if (!prof_i_diagnose(&series, &info->doubts, &drift, &modes)) return false;
  info->min_us = series.sorted[0];
  info->max_us = series.sorted[series.count - 1];
  info->mean_us = prof_i_mean(&series);
  info->stddev_us = prof_i_deviation(&series, info->mean_us);
  info->median_us = prof_op_quantile(result, 0.5);
  info->confidence = prof_i_median_interval(&series, &info->median_low_us, &info->median_high_us);
  info->q05_us = prof_op_quantile(result, 0.05);
  info->q25_us = prof_op_quantile(result, 0.25);
  info->q75_us = prof_op_quantile(result, 0.75);
  info->q95_us = prof_op_quantile(result, 0.95);
  info->q99_us = prof_op_quantile(result, 0.99);
  info->drift = drift.share;
  info->outlier_share = series_outlier_share(&series);
  if (!modes.are_two) return true;
  info->low_mode_us = modes.low;
  info->high_mode_us = modes.high;
  info->high_mode_share = modes.high_share;
  return true;
}

static void fill_facts(prof_op_info *info, const prof_i_op_identity *identity,
                       const prof_i_facts *facts) {
  info->size = sizeof *info;
  info->workspace_bytes = facts->workspace_bytes;
  info->has_workspace = facts->has_workspace;
  info->sample_count = (uint32_t)facts->count;
  info->exec = (uint32_t)facts->exec;
  info->warmup = (uint32_t)facts->warmup;
  info->caches = identity->caches;
  info->is_device_warm = identity->is_device_warm;
  info->device = identity->device;
  info->timer_us = facts->timer_us;
  info->slowdown = facts->slowdown;
  info->workspace_source = facts->workspace_source;
  info->workspace_status = facts->workspace_status;
  info->looks = facts->looks.count;
  info->throttle = facts->looks.throttle;
  info->clock_low_hz = facts->looks.clock_low_hz;
  info->clock_high_hz = facts->looks.clock_high_hz;
  info->has_energy = facts->has_energy;
  info->energy_uj = facts->energy_uj;
}

static void set_doubts(prof_op_info *info, const prof_i_op_identity *identity,
                       const prof_i_facts *facts) {
  const double half_width = (info->median_high_us - info->median_low_us) / 2;
  if (facts->slowdown > slowdown_max) info->doubts |= PROF_OP_THROTTLED;
  if (facts->looks.throttle ||
      facts->looks.clock_low_hz < clock_share_min * facts->looks.clock_high_hz)
    info->doubts |= PROF_OP_DEVICE_THROTTLED;
  if (facts->is_time_over) info->doubts |= PROF_OP_TIME_OVER;
  if (!(info->median_us > 0) || info->median_us * facts->exec < SURE_TIMES_MIN * facts->timer_us)
    info->doubts |= PROF_OP_TOO_SHORT;
  if (half_width > identity->precision * info->median_us || facts->count < 6)
    info->doubts |= PROF_OP_NOT_CONVERGED;
}

prof_op_result *prof_i_result_create(const prof_i_op_identity *identity, const char *key,
                                     const prof_i_facts *facts) {
  PROF_I_DEFAULT_FP;
  prof_op_result *const result = allocate_result(identity, key, facts->samples, facts->count);
  if (!result || !fill_statistics(result)) {
    free(result);
    return NULL;
  }
  fill_facts(&result->info, identity, facts);
  set_doubts(&result->info, identity, facts);
  return result;
}

prof_op_result *prof_i_result_copy(const prof_op_result *result) {
  prof_op_result *const copy = malloc(result->bytes);
  if (!copy) return NULL;
  memcpy(copy, result, result->bytes);
  copy->next = NULL;
  set_inner_pointers(copy);
  return copy;
}
