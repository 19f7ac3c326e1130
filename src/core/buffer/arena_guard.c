/* A counter and a flag; see arena.h. */
#define _GNU_SOURCE
#include "arena.h"

#include <stdint.h>
#include <time.h>

#include "../../base/fault.h"
#include "../../base/process.h"

static struct {
  /* threads past the gate; seq_cst, pairs with `closed`: each side stores its own, then loads the
     other's */
  uint32_t inside;
  uint32_t closed;
} guard;

bool prof_i_arena_guard_enter(void) {
  prof_i_this_flags.guard_depth++;
  PROF_I_SIGNAL_FENCE();
  __atomic_fetch_add(&guard.inside, 1, __ATOMIC_SEQ_CST);
  if (!__atomic_load_n(&guard.closed, __ATOMIC_SEQ_CST)) return true;
  prof_i_arena_guard_exit();
  return false;
}

/* In a child that a handler has forked, what it interrupted is past a gate that was reset. */
void prof_i_arena_guard_exit(void) {
  if (!prof_i_this_flags.guard_depth) return;
  __atomic_fetch_sub(&guard.inside, 1, __ATOMIC_SEQ_CST);
  PROF_I_SIGNAL_FENCE();
  prof_i_this_flags.guard_depth--;
}

const char *prof_i_arena_guard_busy_reason(void) {
  return prof_i_this_flags.guard_depth
             ? "this is a signal handler that interrupted prof's recording on this thread"
             : "a thread has been inside the profiler for two seconds";
}

bool prof_i_arena_guard_drain(void) {
  if (prof_i_this_flags.guard_depth) return false; /* the thread leaves after its handler only */
  __atomic_store_n(&guard.closed, 1, __ATOMIC_SEQ_CST);
  for (int i = 0; i < 20000; i++) {
    if (!__atomic_load_n(&guard.inside, __ATOMIC_SEQ_CST) || PROF_I_FAULT(NO_GATE)) return true;
    const struct timespec pause = {0, 100000};
    nanosleep(&pause, NULL);
  }
  prof_i_arena_guard_open();
  return false;
}

void prof_i_arena_guard_open(void) { __atomic_store_n(&guard.closed, 0, __ATOMIC_SEQ_CST); }

void prof_i_arena_guard_reset(void) {
  prof_i_this_flags.guard_depth = 0;
  guard.inside = 0;
  guard.closed = 0;
}
