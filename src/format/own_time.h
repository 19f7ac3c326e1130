/* Bounds of the time that recording took, from what a capture has of it. How it is measured: see
   ../core/record/cost_sample.h. */
#ifndef PROF_FORMAT_OWN_TIME_H
#define PROF_FORMAT_OWN_TIME_H

#include <stdint.h>

/* The upper bound of recording's time, from own_ns and its part in_place_ns. It counts that part
   2.5 times: the twin runs after the slow path's first lines, and without the caller's work for its
   arguments. It adds two standard errors of the windows' means. Any thread. */
static inline uint64_t prof_i_own_time_most_ns(uint64_t own_ns, uint64_t in_place_ns,
                                               uint64_t spread_us2) {
  uint64_t root = 0;
  for (uint64_t bit = UINT64_C(1) << 31; bit; bit >>= 1)
    if ((root | bit) * (root | bit) <= spread_us2) root |= bit;
  return own_ns + in_place_ns + in_place_ns / 2 + 2 * root * 1000;
}

/* The upper bound of the time that `few` events of threads without a window took beyond warm ones.
   They may be as cold as the `sampled` events of other threads, which took in_place_ns.
   Any thread. */
static inline uint64_t prof_i_own_time_few_most_ns(uint64_t in_place_ns, uint64_t few,
                                                   uint64_t sampled) {
  if (!sampled || !few) return 0;
  const uint64_t each_ps = in_place_ns < UINT64_MAX / 1000 ? in_place_ns * 1000 / sampled : 0;
  return few < UINT64_MAX / (each_ps + 1) ? each_ps * few / 400 : 0; /* 2.5 times */
}

/* A thread with fewer events has no window. */
enum { PROF_I_OWN_TIME_FIRST_EVENTS = 32 };

/* So many threads took no more than all their time: each was there for so long at most. The warm
   time of a scope may have been measured while the processor was slower. */
static inline uint64_t prof_i_own_time_bound(uint64_t own_ns, uint64_t time_ns, uint64_t threads) {
  const uint64_t each_ns = own_ns / (threads ? threads : 1);
  return each_ns < time_ns ? own_ns : time_ns * (threads ? threads : 1);
}

#endif
