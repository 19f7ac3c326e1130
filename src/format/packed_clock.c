/* See packed_clock.h. Finds the period of a clock from the times of a chunk's plain scopes. */
#include "packed_clock.h"

#include <stdlib.h>

#include "layout.h"

enum {
  SAMPLE_COUNT = 4096,
  NEAR_COUNT = 512,      /* time differences for a first period */
  NEAR_TICKS_MAX = 4096, /* larger differences are ignored */
  DIVISOR_MAX = 8
};
static const double least_period = 4, most_period = 1 << 20;

typedef struct time_sample {
  double ticks[SAMPLE_COUNT]; /* since the base */
  double steps[SAMPLE_COUNT];
  int count;
} time_sample;

static bool is_plain_record(const uint64_t *at, uint64_t generation) {
  return (at[0] & PROF_I_GENERATION_MASK) == generation && (at[1] & 15) == 0;
}

/* The number of steps nearest to a difference of times, which is not negative. A division would
   take several times as long. */
static double nearest_steps(double ticks, double per_tick) {
  return (double)(int64_t)(ticks * per_tick + 0.5);
}

static bool is_multiple(double ticks, double period, double per_tick) {
  const double steps = nearest_steps(ticks, per_tick);
  const double off = ticks - steps * period;
  return off > -1.25 && off < 1.25;
}

/* Refines a period with larger and larger multiples of it. */
static double near_period(const double *differences, int count, double period) {
  double most = 1.5 * period;
  while (most < 2 * NEAR_TICKS_MAX) {
    const double per_tick = 1 / period;
    double ticks = 0, steps = 0;
    for (int i = 0; i < count; i++) {
      if (differences[i] > most) continue;
      ticks += differences[i];
      steps += nearest_steps(differences[i], per_tick);
    }
    if (steps > 0) period = ticks / steps;
    most *= 2;
  }
  return period;
}

/* The smallest differences between adjacent times are the period or a multiple of it. 0: no period
   fits. */
static double first_period(const double *differences, int count) {
  double least = NEAR_TICKS_MAX, sum = 0;
  int near = 0;
  if (count < 16) return 0;
  for (int i = 0; i < count; i++)
    if (differences[i] < least) least = differences[i];
  for (int i = 0; i < count; i++)
    if (differences[i] < least + 1.5) {
      sum += differences[i];
      near++;
    }
  for (int divisor = 1; divisor <= DIVISOR_MAX; divisor++) {
    const double period = near_period(differences, count, sum / near / divisor);
    if (period < least_period) return 0;
    const double per_tick = 1 / period;
    int fit = 0;
    for (int i = 0; i < count; i++) fit += is_multiple(differences[i], period, per_tick);
    if (fit >= count - count / 50) return period;
  }
  return 0;
}

static int near_differences(const uint64_t *words, uint64_t slots, uint64_t generation,
                            double *differences) {
  int count = 0, seen = 0;
  uint64_t last = 0;
  for (uint64_t i = 0; i < slots && seen < NEAR_COUNT; i++) {
    const uint64_t *const at = words + 2 * i;
    if (!is_plain_record(at, generation)) continue;
    const uint64_t start = at[0] >> 4, duration = at[1] >> PROF_I_DURATION_SHIFT;
    const int64_t gap = prof_i_time_between(last, start);
    if (seen++ && gap > 1 && gap < NEAR_TICKS_MAX) differences[count++] = (double)gap;
    if (duration > 1 && duration < NEAR_TICKS_MAX) differences[count++] = (double)duration;
    last = start + duration;
  }
  return count;
}

static void take_sample(time_sample *sample, const uint64_t *words, uint64_t slots,
                        uint64_t generation, uint64_t base) {
  const uint64_t stride = slots / SAMPLE_COUNT + 1;
  sample->count = 0;
  for (uint64_t i = 0; i < slots && sample->count < SAMPLE_COUNT; i += stride)
    if (is_plain_record(words + 2 * i, generation)) {
      const int64_t ticks = prof_i_time_between(base, words[2 * i] >> 4);
      if (ticks >= 0) sample->ticks[sample->count++] = (double)ticks;
    }
}

/* The period grows more exact with the distance from the base. Over `reach` it is exact to a tick,
   so the error over the next distance is known. 0: it is too large. */
static double refined_period(const time_sample *sample, double period) {
  double reach = 0, last = 0;
  for (int i = 0; i < sample->count; i++) {
    const double ticks = sample->ticks[i];
    if (ticks < 64 * period || ticks < last) continue;
    if (reach > 0 && ticks > reach * period * 0.4) return 0; /* the step would be ambiguous */
    last = ticks;
    if (reach > 0 && ticks < 2 * reach) continue;
    reach = ticks;
    period = ticks / (double)(int64_t)(ticks / period + 0.5);
  }
  return period;
}

/* Fits a line through all times, by least squares. False: the slope is not a possible period. */
static bool fit_line(time_sample *sample, double *period, double *phase) {
  double sum_x = 0, sum_y = 0, sum_xx = 0, sum_xy = 0;
  const double count = sample->count, per_tick = 1 / *period;
  for (int i = 0; i < sample->count; i++) {
    const double y = sample->ticks[i], x = nearest_steps(y, per_tick);
    sample->steps[i] = x;
    sum_x += x;
    sum_y += y;
  }
  const double middle_x = sum_x / count, middle_y = sum_y / count;
  for (int i = 0; i < sample->count; i++) {
    const double x = sample->steps[i] - middle_x, y = sample->ticks[i] - middle_y;
    sum_xx += x * x;
    sum_xy += x * y;
  }
  if (sum_xx <= 0) return false;
  *period = sum_xy / sum_xx;
  *phase = middle_y - middle_x * *period;
  return *period >= least_period && *period <= most_period;
}

/* Times are rounded down, so the phase is half a tick above the middle. */
static bool find_period_in(time_sample *sample, const uint64_t *words, uint64_t slots,
                           uint64_t generation, uint64_t base, double *period, double *phase) {
  double differences[2 * NEAR_COUNT];
  const int count = near_differences(words, slots, generation, differences);
  *period = first_period(differences, count);
  if (*period == 0) return false;
  take_sample(sample, words, slots, generation, base);
  if (sample->count < 16) return false;
  *period = refined_period(sample, *period);
  if (*period == 0 || !fit_line(sample, period, phase)) return false;
  *phase += 0.5;
  return *phase > -*period && *phase < *period;
}

/* The sample is too large for a small stack. Without memory for it, times are packed as they
   are. */
static bool find_period(const uint64_t *words, uint64_t slots, uint64_t generation, uint64_t base,
                        double *period, double *phase) {
  time_sample *const sample = malloc(sizeof *sample);
  const bool is_found =
      sample && find_period_in(sample, words, slots, generation, base, period, phase);
  free(sample);
  return is_found;
}

void prof_i_steps_find(prof_i_step_finder *finder, const uint64_t *words, uint64_t slots,
                       uint64_t generation) {
  double period = 1, phase = 0;
  *finder = (prof_i_step_finder){.steps = {.period = UINT64_C(1) << PROF_I_STEP_BITS},
                                 .is_by_tick = true};
  uint64_t first = 0;
  while (first < slots && !is_plain_record(words + 2 * first, generation)) first++;
  if (first == slots) {
    finder->steps.base = slots ? words[0] >> 4 : 0;
    return;
  }
  finder->steps.base = words[2 * first] >> 4;
  if (!find_period(words, slots, generation, finder->steps.base, &period, &phase)) return;
  const double one = (double)(UINT64_C(1) << PROF_I_STEP_BITS);
  finder->steps.period = (uint64_t)(period * one);
  finder->steps.phase = (uint64_t)(int64_t)(phase * one);
  finder->per_tick = 1 / period;
  finder->offset = (0.5 - phase) / period;
  finder->is_by_tick = false;
}
