/* A counter and a flag; see gate.h. */
#define _GNU_SOURCE
#include "gate.h"

#include <stdint.h>
#include <time.h>

#include "../../base/fault.h"
#include "../../base/this_thread.h"

static struct {
  /* threads past the gate; seq_cst, pairs with `closed`: each side stores its own, then loads the
     other's */
  uint32_t inside;
  uint32_t closed;
} own;

bool prof_i_gate_enter(void) {
  prof_i_this_flags.past_gate++;
  PROF_I_SIGNAL_FENCE();
  __atomic_fetch_add(&own.inside, 1, __ATOMIC_SEQ_CST);
  if (!__atomic_load_n(&own.closed, __ATOMIC_SEQ_CST)) return true;
  prof_i_gate_leave();
  return false;
}

/* In a child that a handler has forked, what it interrupted is past a gate that was reset. */
void prof_i_gate_leave(void) {
  if (!prof_i_this_flags.past_gate) return;
  __atomic_fetch_sub(&own.inside, 1, __ATOMIC_SEQ_CST);
  PROF_I_SIGNAL_FENCE();
  prof_i_this_flags.past_gate--;
}

const char *prof_i_gate_why_busy(void) {
  return prof_i_this_flags.past_gate
             ? "this is a signal handler that interrupted prof's recording on this thread"
             : "a thread has been inside the profiler for two seconds";
}

bool prof_i_gate_close(void) {
  if (prof_i_this_flags.past_gate) return false; /* the thread leaves after its handler only */
  __atomic_store_n(&own.closed, 1, __ATOMIC_SEQ_CST);
  for (int i = 0; i < 20000; i++) {
    if (!__atomic_load_n(&own.inside, __ATOMIC_SEQ_CST) || PROF_I_FAULT(NO_GATE)) return true;
    const struct timespec pause = {0, 100000};
    nanosleep(&pause, NULL);
  }
  prof_i_gate_open();
  return false;
}

void prof_i_gate_open(void) { __atomic_store_n(&own.closed, 0, __ATOMIC_SEQ_CST); }

void prof_i_gate_reset(void) {
  prof_i_this_flags.past_gate = 0;
  own.inside = 0;
  own.closed = 0;
}
