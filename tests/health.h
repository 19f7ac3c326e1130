/* What health says of the capture, and scopes to record. A test ends if health fails. */
#ifndef PROF_TESTS_HEALTH_H
#define PROF_TESTS_HEALTH_H

#include <prof/profiler.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static inline prof_health health_now(void) {
  prof_health health = {.size = sizeof health};
  if (prof_health_get(&health) == PROF_OK) return health;
  fprintf(stderr, "prof_health_get: %s\n", prof_last_error());
  abort();
}

/* Of all reasons. */
static inline uint64_t health_lost(const prof_health *health) {
  uint64_t lost = 0;
  for (int i = 0; i < PROF_LOSS_COUNT; i++) lost += health->lost_count[i];
  return lost;
}

static inline void record_scopes(uint64_t count) {
  for (uint64_t i = 0; i < count; i++)
    WITH_BASE_PROFILER(PROF_HOST, "scope", "x", PROF_NO_ARGS, {});
}

#endif
