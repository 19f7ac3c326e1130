/* What tests of threads' ends share: what health says, and the places that threads have had. */
#ifndef PROF_TEST_UNIT_THREADS_H
#define PROF_TEST_UNIT_THREADS_H

#include <prof/profiler.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/buffer/thread.h"

static inline int states_of_threads(void) {
  int count = 0;
  for (const prof_i_thread *t = prof_i_thread_first(); t; t = t->next) count++;
  return count;
}

static inline prof_health health_now(void) {
  prof_health health = {.size = sizeof health};
  assert_int_equal(prof_health_get(&health), PROF_OK);
  return health;
}

#endif
