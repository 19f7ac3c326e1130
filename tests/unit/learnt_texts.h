/* What the tests of names and of argument texts share: both are learnt by
   src/core/record/name.c. */
#ifndef PROF_TEST_UNIT_LEARNT_TEXTS_H
#define PROF_TEST_UNIT_LEARNT_TEXTS_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <prof/profiler.h>
#include <prof/trace.h>

#include "api/sanitizers.h"
#include "core/buffer/thread.h"
#include "core/record/name.h"
#include "core/record/site.h"

static void start(uint32_t policy, uint64_t cap_bytes) {
  const prof_options options = {
      .size = sizeof options, .level = 1, .policy = policy, .cap_bytes = cap_bytes};
  assert_int_equal(prof_start_with(&options), PROF_OK);
}

static int stop(void **state) {
  (void)state;
  prof_stop();
  return prof_mute(NULL, NULL, 0);
}

/* How far the thread has filled its chunk, in bytes. */
static uint64_t cursor_of_chunk(void) {
  return __atomic_load_n(&prof_i_this_thread->chunk->cursor, __ATOMIC_RELAXED);
}

#endif
