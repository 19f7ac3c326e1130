/* Input shapes: as words, which are fast to compare, and as one line of text. */
#ifndef PROF_READER_SHAPE_H
#define PROF_READER_SHAPE_H

#include <stdbool.h>

#include "walk.h"

/* Writes the shapes of an event's tensors: for each its rank and its dimensions. Dimensions beyond
   `room` words are left out. Returns the words; 0: the arguments are not shapes. Equal texts have
   equal words. */
size_t prof_i_shape_words(const prof_event *event, uint64_t *to, size_t room);

/* The same, with all that floating point operations are computed from: PROF_GROUP_FLOPS. */
size_t prof_i_shape_flops_words(const prof_event *event, uint64_t *to, size_t room);

/* Writes the words as "[[2, 3], [3, 4]]", the form of torch.profiler's Input Shapes; no words give
   no text. Writes at most room bytes and no NUL. Returns the bytes needed. */
size_t prof_i_shape_text(const uint64_t *words, size_t count, char *to, size_t room);

/* The number of arguments that are shapes: those before the first one with a key. */
uint32_t prof_i_shape_count(const prof_event *event);

/* Whether an operator has more inputs than a record has arguments (inject/torch/calls.c). Then
   texts with the dimensions and the types of all inputs follow the inputs that fit. */
bool prof_i_shape_has_texts(const prof_event *event);

#endif
