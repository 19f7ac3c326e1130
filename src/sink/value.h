/* One argument's value as JSON. Shared by the formats, and independent of their layouts. */
#ifndef PROF_SINK_VALUE_H
#define PROF_SINK_VALUE_H

#include <prof/trace.h>

#include "sink.h"

/* As a JSON value. What JSON or a double cannot hold becomes a string: NaN, infinities, integers
   past 2^53, pointers. */
void prof_i_value_json(prof_i_sink *sink, const prof_trace_arg *arg);

/* As the inside of a JSON string that has been opened. */
void prof_i_value_text(prof_i_sink *sink, const prof_trace_arg *arg);

/* Whether the text is a list of texts in JSON, an argument of a PyTorch range. _torch_ranges.py of
   the Python package writes a mark byte after the opening bracket. Other JSON and the texts of
   programs do not have this byte. */
bool prof_i_value_is_text_list(const prof_trace_arg *arg);

/* "[2, 3]" of a tensor; "[]" of anything else. The same as JSON and as text. */
void prof_i_value_dims(prof_i_sink *sink, const prof_trace_arg *arg);

#endif
