/* See own_time.h. */
#include "own_time.h"

uint64_t prof_i_own_time_most_ns(uint64_t own_ns, uint64_t in_place_ns, uint64_t spread_us2) {
  uint64_t root = 0;
  for (uint64_t bit = UINT64_C(1) << 31; bit; bit >>= 1)
    if ((root | bit) * (root | bit) <= spread_us2) root |= bit;
  return own_ns + in_place_ns + in_place_ns / 2 + 2 * root * 1000;
}

uint64_t prof_i_own_time_few_most_ns(uint64_t in_place_ns, uint64_t few, uint64_t sampled) {
  if (!sampled || !few) return 0;
  const uint64_t each_ps = in_place_ns < UINT64_MAX / 1000 ? in_place_ns * 1000 / sampled : 0;
  return few < UINT64_MAX / (each_ps + 1) ? each_ps * few / 400 : 0; /* 2.5 times */
}
