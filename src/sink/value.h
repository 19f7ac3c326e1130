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

/* An event's arguments: an object of pairs, or of values without keys an array. Of shapes the first
   `shape_count` ones come together as "Input Dims". Not of PROF_ARGS_FORMAT, which is a text. */
void prof_i_value_args(prof_i_sink *sink, const prof_event *event, uint32_t shape_count);

/* "[[2, 3], []]" of the first `count` arguments. */
void prof_i_value_shapes(prof_i_sink *sink, const prof_event *event, uint32_t count);

/* "[2, 3]" of a tensor; "[]" of anything else. The same as JSON and as text. */
void prof_i_value_dims(prof_i_sink *sink, const prof_trace_arg *arg);

#endif
