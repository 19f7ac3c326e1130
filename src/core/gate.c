/* A counter and a flag; see gate.h. */
#define _GNU_SOURCE
#include "gate.h"

#include <stdint.h>
#include <time.h>

#include "fault.h"

static struct {
  uint32_t inside; /* threads past the gate; seq_cst, pairs with `closed`: each side stores its own, then loads the other's */
  uint32_t closed;
} own;

bool prof_i_gate_enter(void) {
  __atomic_fetch_add(&own.inside, 1, __ATOMIC_SEQ_CST);
  if (!__atomic_load_n(&own.closed, __ATOMIC_SEQ_CST)) return true;
  __atomic_fetch_sub(&own.inside, 1, __ATOMIC_SEQ_CST);
  return false;
}

void prof_i_gate_leave(void) { __atomic_fetch_sub(&own.inside, 1, __ATOMIC_SEQ_CST); }

bool prof_i_gate_close(void) {
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
  own.inside = 0;
  own.closed = 0;
}
