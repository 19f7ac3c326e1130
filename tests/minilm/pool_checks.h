/* What the tests of the tensor pool share. SPDX-License-Identifier: MIT */
#ifndef PROF_TESTS_POOL_CHECKS_H
#define PROF_TESTS_POOL_CHECKS_H

#include <stdint.h>

#include "pool.h"

/* A small generator with a fixed seed: the same run every time. */
static inline uint32_t next_random(uint32_t *seed) {
  *seed ^= *seed << 13;
  *seed ^= *seed >> 17;
  *seed ^= *seed << 5;
  return *seed;
}

static inline pool_statistics statistics_of(pool *p) {
  pool_statistics s;
  pool_statistics_get(p, &s);
  return s;
}

#endif
