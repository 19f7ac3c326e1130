/* From samples to statistics and doubts. See result.h. */
#include <stdlib.h>
#include <string.h>

#include "../base/port.h"
#include "diagnose.h"
#include "result.h"

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
  info->outlier_share = prof_i_outlier_share(&series);
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
