/* What a result says, as op.h has it. */
#include "internal.h"

#include <math.h> /* INFINITY alone: no libm */
#include <prof/backend.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/error.h"
#include "../base/options.h"
#include "../base/port.h"
#include "../base/process.h"

void prof_op_result_destroy(prof_op_result *result) {
  PROF_I_REFUSE_INTERRUPTED();
  PROF_I_INSIDE;
  free(result);
}

int prof_op_info_get(const prof_op_result *result, prof_op_info *info_out) {
  if (!result || !info_out)
    return prof_i_fail(PROF_E_INVALID, "prof_op_info_get: %s is NULL",
                       result ? "info_out" : "result");
  return prof_i_sized_copy_out(info_out, &result->info, sizeof result->info, "prof_op_info");
}

const double *prof_op_samples(const prof_op_result *result, size_t *count_out) {
  if (count_out) *count_out = result ? result->count : 0;
  return result ? result->samples : NULL;
}

double prof_op_quantile(const prof_op_result *result, double share) {
  PROF_I_DEFAULT_FP;
  if (!result || !(share >= 0 && share <= 1)) return 0;
  return prof_i_quantile(result->sorted, result->count, share);
}

const char *prof_op_key(const prof_op_result *result) { return result ? result->key : ""; }

/* ---- as text ---- */

typedef struct text_line {
  char *to;
  size_t room, used;
} text_line;

static void add_text(text_line *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add_text(text_line *l, const char *format, ...) {
  va_list values;
  va_start(values, format);
  const size_t left = l->used < l->room ? l->room - l->used : 0;
  /* clang-tidy 14 does not see the va_start() before it. */
  /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized) */
  const int bytes = vsnprintf(left ? l->to + l->used : NULL, left, format, values);
  va_end(values);
  if (bytes > 0) l->used += (size_t)bytes;
}

/* At most four significant digits before or behind the point, and no exponent. */
static void add_number(text_line *l, double value) {
  if (value >= 9999.5)
    add_text(l, "%.0f", value);
  else if (value >= 1e-4 || value <= 0)
    add_text(l, "%.4g", value);
  else
    add_text(l, "%.7f", value);
}

typedef struct time_unit {
  const char *name;
  double us;
} time_unit;

static const time_unit *time_unit_of(double us) {
  static const time_unit units[] = {{"ns", 1e-3}, {"us", 1}, {"ms", 1e3}, {"s", 1e6}};
  if (us > 0 && us < 0.99995) return &units[0];
  return us < 9999.5 ? &units[1] : us < 9999.5e3 ? &units[2] : &units[3];
}

static void add_time_text(text_line *l, double us) {
  const time_unit *const in = time_unit_of(us);
  add_number(l, us / in->us);
  add_text(l, " %s", in->name);
}

static void add_interval(text_line *l, const prof_op_info *info) {
  const double us = time_unit_of(info->median_us)->us;
  if (info->sample_count < 2) return;
  add_text(l, " (");
  add_number(l, info->median_low_us / us);
  add_text(l, " to ");
  add_number(l, info->median_high_us / us);
  add_text(l, ", %.0f %%)", info->confidence * 100);
}

static void add_throttle(text_line *l, const prof_op_info *info, const char *between) {
  static const struct {
    uint32_t bits;
    const char *text;
  } causes[] = {{PROF_BACKEND_THROTTLE_POWER | PROF_BACKEND_THROTTLE_POWER_SUPPLY, "power"},
                {PROF_BACKEND_THROTTLE_HEAT | PROF_BACKEND_THROTTLE_HARDWARE_HEAT, "heat"},
                {PROF_BACKEND_THROTTLE_HARDWARE, "hardware"}};
  add_text(l, "%sthe device was throttled", between);
  for (size_t i = 0, said = 0; i < sizeof causes / sizeof *causes; i++)
    if (info->throttle & causes[i].bits)
      add_text(l, "%s%s", said++ ? " and " : " by its ", causes[i].text);
  if (info->clock_low_hz < info->clock_high_hz)
    add_text(l, " (%.0f to %.0f MHz)", info->clock_low_hz / 1e6, info->clock_high_hz / 1e6);
}

static void add_doubts(text_line *l, const prof_op_info *info) {
  static const struct {
    uint32_t doubt;
    const char *text;
  } plain[] = {{PROF_OP_FEW_SAMPLES, "fewer than 6 samples"},
               {PROF_OP_TOO_SHORT, "too short for the timer"},
               {PROF_OP_NOT_CONVERGED, "not converged"},
               {PROF_OP_TIME_OVER, "the time was over"},
               {PROF_OP_NOISY, "noisy"}};
  const char *between = "; ";
  for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
    if (!(info->doubts & plain[i].doubt)) continue;
    add_text(l, "%s%s", between, plain[i].text);
    between = ", ";
  }
  if (info->doubts & PROF_OP_DRIFTING) {
    add_text(l, "%sdrifting by %+.1f %%", between, info->drift * 100);
    between = ", ";
  }
  if (info->doubts & PROF_OP_TWO_MODES) {
    add_text(l, "%stwo modes: ", between);
    add_time_text(l, info->low_mode_us);
    add_text(l, ", and ");
    add_time_text(l, info->high_mode_us);
    add_text(l, " for %.0f %%", info->high_mode_share * 100);
    between = ", ";
  }
  if (info->doubts & PROF_OP_THROTTLED) {
    add_text(l, "%sthe processor was slower by %.0f %% at times", between,
             (info->slowdown - 1) * 100);
    between = ", ";
  }
  if (info->doubts & PROF_OP_DEVICE_THROTTLED) add_throttle(l, info, between);
}

size_t prof_op_text(const prof_op_result *result, char *to, size_t room) {
  PROF_I_DEFAULT_FP;
  text_line l = {to, to ? room : 0, 0};
  if (l.room) to[0] = '\0';
  if (!result) return 0;
  const prof_op_info *const info = &result->info;
  add_time_text(&l, info->median_us);
  add_interval(&l, info);
  add_text(&l, ", %u sample%s of %u run%s", info->sample_count, info->sample_count == 1 ? "" : "s",
           info->exec, info->exec == 1 ? "" : "s");
  if (info->caches == PROF_OP_COLD)
    add_text(&l, info->is_device_warm ? ", the host's caches cold, the device's as they were"
                                      : ", cold caches");
  if (info->has_workspace)
    add_text(&l, ", workspace %llu bytes%s", (unsigned long long)info->workspace_bytes,
             info->workspace_source == PROF_OP_WORKSPACE_VENDOR ? " by the vendor's library" : "");
  if (info->has_energy) {
    add_text(&l, ", ");
    add_number(&l, info->energy_uj);
    add_text(&l, " uJ a run");
  }
  if (info->was_kept) add_text(&l, ", measured before");
  add_doubts(&l, info);
  return l.used;
}

/* ---- comparing ---- */

/* A wide interval is not a doubt: the ratio's own interval says more. A disturbance of both
   operators in turn is in both samples of a round. */
enum {
  FORBID_PAIRS = PROF_OP_TOO_SHORT | PROF_OP_FEW_SAMPLES,
  FORBID_COMPARISON = FORBID_PAIRS | PROF_OP_NOISY | PROF_OP_DRIFTING | PROF_OP_TWO_MODES |
                      PROF_OP_THROTTLED | PROF_OP_DEVICE_THROTTLED
};

static bool are_interleaved(const prof_op_result *first, const prof_op_result *second) {
  return first != second && first->interleave_id && first->interleave_id == second->interleave_id;
}

static bool find_ratio(const prof_op_result *first, const prof_op_result *second,
                       prof_i_ratio *out) {
  const prof_i_series a = {first->samples, first->sorted, first->count},
                      b = {second->samples, second->sorted, second->count};
  if (!(a.sorted[0] > 0 && b.sorted[0] > 0)) return true; /* below the timer's step */
  if (!are_interleaved(first, second)) return prof_i_ratio_of(&a, &b, out);
  return prof_i_paired_ratio_of(a.samples, b.samples, a.count < b.count ? a.count : b.count, out);
}

static prof_op_order order_of(const prof_i_ratio *ratio, double threshold) {
  if (ratio->high < 1 - threshold) return PROF_OP_FASTER;
  if (ratio->low > 1 + threshold) return PROF_OP_SLOWER;
  return ratio->low >= 1 - threshold && ratio->high <= 1 + threshold ? PROF_OP_SAME
                                                                     : PROF_OP_UNCLEAR;
}

int prof_op_compare(const prof_op_result *first, const prof_op_result *second, double threshold,
                    prof_op_comparison *comparison_out) {
  PROF_I_DEFAULT_FP;
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  PROF_I_INSIDE;
  if (!first || !second || !comparison_out)
    return prof_i_fail(PROF_E_INVALID, "prof_op_compare: an argument is NULL");
  if (!(threshold >= 0 && threshold < 1))
    return prof_i_fail(PROF_E_INVALID, "threshold is %g; a share from 0 to 1, for example 0.02",
                       threshold);
  if (first->info.caches != second->info.caches)
    return prof_i_fail(PROF_E_INVALID,
                       "one was measured with cold caches, the other with warm ones");
  if (first->info.is_device_warm != second->info.is_device_warm)
    return prof_i_fail(
        PROF_E_INVALID,
        "one was measured with the device's caches cold, the other with them as they were");
  if (comparison_out->size < sizeof *comparison_out)
    return prof_i_fail(PROF_E_INVALID,
                       "prof_op_comparison.size is %zu; set it to sizeof(prof_op_comparison)",
                       comparison_out->size);
  prof_op_comparison comparison = {.size = comparison_out->size,
                                   .is_paired = are_interleaved(first, second)};
  prof_i_ratio ratio = {0, 0, (double)INFINITY};
  comparison.doubts = (first->info.doubts | second->info.doubts) &
                      (comparison.is_paired ? FORBID_PAIRS : FORBID_COMPARISON);
  if (!find_ratio(first, second, &ratio))
    return prof_i_fail(PROF_E_NO_MEMORY, "no memory for the pairs of samples");
  comparison.ratio = ratio.middle;
  comparison.ratio_low = ratio.low;
  comparison.ratio_high = ratio.high;
  if (!comparison.doubts && ratio.low > 0)
    comparison.order = order_of(&ratio, threshold > 0 ? threshold : 0.02);
  *comparison_out = comparison;
  return PROF_OK;
}
