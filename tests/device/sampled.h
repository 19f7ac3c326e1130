/* A sampler's end, for tests that look at what it wrote. Includes what it needs of cmocka's. */
#ifndef TESTS_DEVICE_SAMPLED_H
#define TESTS_DEVICE_SAMPLED_H

#include <prof/profiler.h>
#include <prof/sampler.h>
#include <stdbool.h>
#include <unistd.h>

#include "hang_guard.h"

/* A stop waits at most 100 ms for the sampler's thread, even if that has no processor. The thread
   then ends alone, with its file, and after that no sampler is running. */
static inline void stop_sampler(void) {
  prof_sampler_state now = {.size = sizeof now};
  int status = prof_sampler_stop();
  const bool is_late = status == PROF_E_BUSY;
  for (unsigned naps = 0; status == PROF_E_BUSY && hang_nap(&naps); status = prof_sampler_stop())
    continue;
  assert_int_equal(status, is_late ? PROF_E_NOT_RUNNING : PROF_OK);
  assert_int_equal(prof_sampler_get(&now), PROF_OK);
  assert_int_equal(now.csv_status, PROF_OK);
}

#endif
