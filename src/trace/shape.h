/* Input shapes as one line of text. */
#ifndef PROF_TRACE_SHAPE_H
#define PROF_TRACE_SHAPE_H

#include "walk.h"

/* "[[2, 3], [3, 4]]" of an event's tensors, as torch.profiler writes Input Shapes; nothing when its arguments are no shapes.
   Writes at most room bytes and no NUL; returns what it would need. */
size_t prof_i_shape_text(const prof_event *event, char *to, size_t room);

/* How many of an event's arguments are shapes: the first ones, up to one that has a key. */
uint32_t prof_i_shape_count(const prof_event *event);

#endif
