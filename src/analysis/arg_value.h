/* The value of an argument as text. Filters compare this text, and rows by an argument show it. */
#ifndef PROF_ANALYSIS_ARG_VALUE_H
#define PROF_ANALYSIS_ARG_VALUE_H

#include <prof/trace.h>

#include "../reader/capture.h"

enum { PROF_I_ARG_VALUE_ROOM = 8192 };

/* The text is in `room` or in the event. It is empty for an unknown type, and for a tensor with too
   many dimensions. */
prof_i_text prof_i_arg_value_text(const prof_trace_arg *arg, char room[PROF_I_ARG_VALUE_ROOM]);

/* The first argument of this key, or NULL. */
const prof_trace_arg *prof_i_arg_find(const prof_event *event, const char *key, size_t key_bytes);

#endif
