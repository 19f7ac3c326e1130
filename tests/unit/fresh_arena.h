/* Recording into an arena that is a new one, whatever the test before left. */
#ifndef PROF_TESTS_UNIT_FRESH_ARENA_H
#define PROF_TESTS_UNIT_FRESH_ARENA_H

#include <prof/profiler.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static inline void start(uint32_t policy, uint64_t cap_bytes) {
  const prof_options another = {.size = sizeof another, .cap_bytes = 3 << 20};
  const prof_options options = {.size = sizeof options, .policy = policy, .cap_bytes = cap_bytes};
  if (prof_level()) prof_stop();
  assert_int_equal(prof_start_with(&another), PROF_OK);
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(prof_start_with(&options), PROF_OK);
}

static inline void record(uint64_t count) {
  for (uint64_t i = 0; i < count; i++)
    WITH_BASE_PROFILER(PROF_HOST, "scope", "x", PROF_NO_ARGS, {});
}

#endif
