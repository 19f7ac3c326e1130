/* The host's timer, and a measure of the processor's speed. */
#ifndef PROF_OP_TIMER_H
#define PROF_OP_TIMER_H

#include <prof/op.h>
#include <stdbool.h>

extern const prof_op_timer prof_i_host_timer; /* user: a prof_i_host_time */

typedef struct prof_i_host_time {
  uint64_t begun_ns;
} prof_i_host_time;

/* The possible error of a sample in us: the timer's step, or the time of an empty begin and end,
   whichever is more. An impossible time is handed out unchanged. Returns the timer's own result. */
int prof_i_timer_error(const prof_op_timer *timer, double *error_us_out);

/* Not negative, not without end, and no NaN. */
static inline bool prof_i_is_time(double us) { return us >= 0 && us < 1e15; }

/* The time of a chain of dependent additions: the processor's speed, without memory and caches. The
   best of a few, so that a preempted try does not count. Some 20 us. */
double prof_i_chain_us(void);

#endif
