/* What the operator profiler has to know of a timer. */
#ifndef PROF_OP_STREAM_TIMER_H
#define PROF_OP_STREAM_TIMER_H

#include <prof/op.h>
#include <stdbool.h>

/* Is it one of prof_op_timer_create()'s, or a copy? */
bool prof_i_stream_timer_is(const prof_op_timer *timer);

#endif
