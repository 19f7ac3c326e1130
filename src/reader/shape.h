/* Input shapes: as words, which are soon compared, and as one line of text. */
#ifndef PROF_READER_SHAPE_H
#define PROF_READER_SHAPE_H

#include <stdbool.h>

#include "walk.h"

/* The shapes of an event's tensors, each its rank and its dimensions; returns how many words they
   are, at most `room`, by leaving out dimensions beyond. 0: its arguments are no shapes. Two that
   have the same text have the same words. */
size_t prof_i_shape_words(const prof_event *event, uint64_t *to, size_t room);

/* The same, and all else that floating point operations are counted from: PROF_GROUP_FLOPS. */
size_t prof_i_shape_flops_words(const prof_event *event, uint64_t *to, size_t room);

/* "[[2, 3], [3, 4]]" of those, as torch.profiler writes Input Shapes; nothing of no words. Writes
   at most room bytes and no NUL; returns what it would need. */
size_t prof_i_shape_text(const uint64_t *words, size_t count, char *to, size_t room);

/* How many of an event's arguments are shapes: the first ones, up to one that has a key. */
uint32_t prof_i_shape_count(const prof_event *event);

/* An operator with more inputs than a record has arguments (inject/torch/calls.c): behind the
   first ones, as many as fit, stand texts of the dimensions and of the types of all of them. */
bool prof_i_shape_has_texts(const prof_event *event);

#endif
