/* One argument's value as JSON: what the formats share. Knows no format's layout. */
#ifndef PROF_SINK_VALUE_H
#define PROF_SINK_VALUE_H

#include <prof/trace.h>

#include "sink.h"

/* As a JSON value. What JSON or a double cannot hold becomes a string: NaN, infinities, integers
   past 2^53, pointers. */
void prof_i_value_json(prof_i_sink *sink, const prof_trace_arg *arg);

/* As the inside of a JSON string that has been opened. */
void prof_i_value_text(prof_i_sink *sink, const prof_trace_arg *arg);

/* A list of texts as JSON, which a range of PyTorch's has as an argument. _torch_ranges.py of the
   Python package writes a mark as the byte behind its bracket. No JSON and no program's text has
   it there. */
bool prof_i_value_is_text_list(const prof_trace_arg *arg);

/* "[2, 3]" of a tensor; "[]" of anything else. The same as JSON and as text. */
void prof_i_value_dims(prof_i_sink *sink, const prof_trace_arg *arg);

#endif
