/* See timer.h. */
#include "timer.h"

#include "../base/port.h"

enum { CHAIN_STEPS = 16384, CHAIN_TRIES = 4, TIMER_TRIES = 64 };

static int host_begin(void *user) {
  ((prof_i_host_time *)user)->begun_ns = prof_i_port_monotonic_ns();
  return 0;
}

static int host_end(void *user, double *us_out) {
  *us_out = (double)prof_i_ns_since(((prof_i_host_time *)user)->begun_ns) / 1e3;
  return 0;
}

const prof_op_timer prof_i_host_timer = {
    sizeof prof_i_host_timer, "CLOCK_MONOTONIC", NULL, host_begin, host_end, NULL, NULL};

/* A coarse clock reads 0 nearly always, and a step now and then. */
int prof_i_timer_error(const prof_op_timer *timer, double *error_us_out) {
  double step = 0;
  for (int i = 0; i < TIMER_TRIES; i++) {
    double us = 0;
    const int begun = timer->begin(timer->user),
              ended = begun ? begun : timer->end(timer->user, &us);
    if (ended) return ended;
    if (!prof_i_is_time(us)) {
      *error_us_out = us;
      return 0;
    }
    if (us > 0 && (!(step > 0) || us < step)) step = us;
  }
  *error_us_out = step;
  return 0;
}

double prof_i_chain_us(void) {
  uint64_t best = UINT64_MAX;
  for (int i = 0; i < CHAIN_TRIES; i++) {
    const uint64_t begun = prof_i_port_monotonic_ns();
    uint64_t sum = begun;
    for (int j = 0; j < CHAIN_STEPS; j++) {
      sum += 3;
      __asm__ volatile("" : "+r"(sum));
    }
    const uint64_t passed = prof_i_ns_since(begun);
    if (passed < best) best = passed;
  }
  return (double)best / 1e3;
}
