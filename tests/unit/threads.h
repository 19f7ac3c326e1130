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
#include "health.h"

static inline int states_of_threads(void) {
  int count = 0;
  for (const prof_i_thread *t = prof_i_thread_first(); t; t = t->next) count++;
  return count;
}

#endif
