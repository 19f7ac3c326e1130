/* Converts times to steps of a slower clock. Many time-stamp counters advance with a slower clock:
   at 2.45 GHz with a clock of 100 MHz, times are multiples of 24.5, rounded. Differences in steps
   are smaller and repeat more often than differences in ticks. The residual of a time is its
   distance from its step, so each time is restored exactly. */
#ifndef PROF_FORMAT_PACKED_CLOCK_H
#define PROF_FORMAT_PACKED_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Times have 60 bits and wrap around. */
#define PROF_I_TIME_MASK ((UINT64_C(1) << 60) - 1)
enum { PROF_I_STEP_BITS = 40 }; /* binary places of period and phase */

/* Stored in the file in this order. */
typedef struct prof_i_steps {
  uint64_t base;   /* ticks of step 0 */
  uint64_t period; /* ticks << 40; 1 << 40: each tick is a step */
  uint64_t phase;  /* as the period */
} prof_i_steps;

/* The signed difference of two times. */
static inline int64_t prof_i_time_between(uint64_t from, uint64_t to) {
  return (int64_t)((to - from) << 4) >> 4;
}

/* The time of a step, in ticks since the base. */
static inline uint64_t prof_i_step_offset(const prof_i_steps *steps, int64_t step) {
  const __int128 ticks = (__int128)step * (int64_t)steps->period + (int64_t)steps->phase;
  return (uint64_t)(ticks >> PROF_I_STEP_BITS);
}

static inline uint64_t prof_i_step_ticks(const prof_i_steps *steps, int64_t step) {
  return (steps->base + prof_i_step_offset(steps, step)) & PROF_I_TIME_MASK;
}

/* Finds the step of a time. Only the packer uses it. */
typedef struct prof_i_step_finder {
  prof_i_steps steps;
  double per_tick, offset;
  bool is_by_tick;
} prof_i_step_finder;

/* words: slots of 16 bytes with records of this generation. */
void prof_i_steps_find(prof_i_step_finder *finder, const uint64_t *words, uint64_t slots,
                       uint64_t generation);

/* The integer nearest to a number below 2^51. At this size the binary places of a double are
   whole, so the sum is rounded, and its bits count. Of larger numbers the result has no meaning. */
static inline int64_t prof_i_nearest(double number) {
  const double large = 0x1.8p52;
  const double sum = number + large;
  uint64_t large_bits, bits;
  memcpy(&large_bits, &large, sizeof large_bits);
  memcpy(&bits, &sum, sizeof bits);
  return (int64_t)(bits - large_bits);
}

/* The step nearest to a time, as ticks since the base. A time that is too far away gets any step,
   and a large residual. */
static inline int64_t prof_i_step_since(const prof_i_step_finder *finder, int64_t since) {
  return prof_i_nearest((double)since * finder->per_tick + finder->offset);
}

static inline int64_t prof_i_step_of(const prof_i_step_finder *finder, uint64_t ticks) {
  const int64_t since = prof_i_time_between(finder->steps.base, ticks);
  return finder->is_by_tick ? since : prof_i_step_since(finder, since);
}

#endif
