/* The gate: a counter of the threads in the slow path, and a flag that closes it. See arena.h. */
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

/* A handler may have forked between two instructions of an enter or an exit. Then the gate was
   reset in the child, and nothing there is left to be taken back. */
static void leave_inside(void) {
  uint32_t inside = __atomic_load_n(&guard.inside, __ATOMIC_RELAXED);
  while (inside && !__atomic_compare_exchange_n(&guard.inside, &inside, inside - 1, true,
                                                __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
  }
}
static void lower_depth(void) {
  uint8_t depth = __atomic_load_n(&prof_i_this_flags.guard_depth, __ATOMIC_RELAXED);
  while (depth &&
         !__atomic_compare_exchange_n(&prof_i_this_flags.guard_depth, &depth, (uint8_t)(depth - 1),
                                      true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

bool prof_i_arena_guard_enter(void) {
  prof_i_this_flags.guard_depth++;
  PROF_I_SIGNAL_FENCE();
  __atomic_fetch_add(&guard.inside, 1, __ATOMIC_SEQ_CST);
  PROF_I_SIGNAL_FENCE();
  if (PROF_I_UNLIKELY(!__atomic_load_n(&prof_i_this_flags.guard_depth, __ATOMIC_RELAXED))) {
    leave_inside(); /* such a child */
    return false;
  }
  if (!__atomic_load_n(&guard.closed, __ATOMIC_SEQ_CST)) return true;
  prof_i_arena_guard_exit();
  return false;
}

/* In such a child, what was interrupted is past a gate that was reset. */
void prof_i_arena_guard_exit(void) {
  if (!__atomic_load_n(&prof_i_this_flags.guard_depth, __ATOMIC_RELAXED)) return;
  leave_inside();
  PROF_I_SIGNAL_FENCE();
  lower_depth();
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
    if (!__atomic_load_n(&guard.inside, __ATOMIC_SEQ_CST) || PROF_I_FAULT(NO_GUARD)) return true;
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
