/* Shapes of an operator's inputs, from its tensors or from texts. */
#include "shape.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

uint32_t prof_i_shape_count(const prof_event *event) {
  uint32_t count = 0;
  if (event->args_kind != PROF_ARGS_SHAPES) return 0;
  while (count < event->arg_count && event->args[count].key_bytes == 0) count++;
  return count;
}

static bool arg_has_key(const prof_trace_arg *arg, const char *key) {
  const size_t bytes = strlen(key);
  return arg->type == PROF_ARG_STRING && arg->key_bytes == bytes &&
         memcmp(arg->key, key, bytes) == 0;
}

bool prof_i_shape_has_texts(const prof_event *event) {
  const uint32_t count = prof_i_shape_count(event);
  return count && count + 1 < event->arg_count &&
         arg_has_key(&event->args[count], "Tensor lists") &&
         arg_has_key(&event->args[count + 1], "Tensor types");
}

/* Reads "[[[2,10],[3,10]],[],[4]]". A list of tensors has no dimensions. 0: another format. */
static size_t words_of_text(const char *text, size_t bytes, uint64_t *to, size_t room) {
  enum { INPUT = 2, TENSOR = 3 }; /* depths */
  size_t at = 0, rank_at = 0;
  uint32_t depth = 0;
  for (size_t i = 0; i < bytes && at < room; i++) {
    if (text[i] == '[') {
      if (++depth > TENSOR) return 0;
      if (depth == INPUT) to[rank_at = at++] = 0;
    } else if (text[i] == ']') {
      if (depth-- == 0) return 0;
    } else if (text[i] == '-' || (text[i] >= '0' && text[i] <= '9')) {
      const bool is_negative = text[i] == '-';
      uint64_t dim = 0;
      for (i += is_negative; i < bytes && text[i] >= '0' && text[i] <= '9'; i++)
        dim = dim * 10 + (uint64_t)(text[i] - '0');
      i--;
      if (depth < INPUT) return 0;
      if (depth == INPUT) to[rank_at]++, to[at++] = is_negative ? 0 - dim : dim;
    } else if (text[i] != ',') {
      return 0;
    }
  }
  return depth == 0 ? at : 0;
}

size_t prof_i_shape_words(const prof_event *event, uint64_t *to, size_t room) {
  size_t at = 0;
  const uint32_t count = prof_i_shape_count(event);
  if (prof_i_shape_has_texts(event)) {
    const prof_trace_arg *const lists = &event->args[count];
    at = words_of_text(lists->value.text.data, lists->value.text.bytes, to, room);
    if (at) return at;
  }
  for (uint32_t i = 0; i < count && at < room; i++) {
    const prof_trace_arg *const arg = &event->args[i];
    const size_t left = room - at - 1,
                 rank = arg->type == PROF_ARG_TENSOR ? arg->value.tensor.rank : 0,
                 kept = rank < left ? rank : left;
    to[at++] = kept;
    if (kept) memcpy(to + at, arg->value.tensor.dims, kept * sizeof *to);
    at += kept;
  }
  return at;
}

/* Values of a rank. */
#define NO_TENSOR (UINT64_MAX - 1) /* without dimensions */
#define TEXT UINT64_MAX            /* followed by its bytes, and words with them */

static const prof_trace_arg *find_text(const prof_event *event, const char *key) {
  for (uint32_t i = 0; i < event->arg_count; i++)
    if (arg_has_key(&event->args[i], key)) return &event->args[i];
  return NULL;
}

size_t prof_i_shape_flops_words(const prof_event *event, uint64_t *to, size_t room) {
  static const char convolution[] = "aten::conv2d";
  size_t at = prof_i_shape_words(event, to, room);
  if (at == 0) return 0;
  const prof_trace_arg *const first = event->args;
  if (first->type != PROF_ARG_TENSOR ||
      (to[0] == 0 && first->value.tensor.dtype == PROF_DTYPE_NONE))
    to[0] = NO_TENSOR;
  if (event->name_bytes != sizeof convolution - 1 ||
      memcmp(event->name, convolution, sizeof convolution - 1) != 0)
    return at;
  const prof_trace_arg *const inputs = find_text(event, "Concrete Inputs");
  const size_t bytes = inputs ? inputs->value.text.bytes : 0, words = (bytes + 7) / 8;
  if (!bytes || words + 2 > room - at) return at;
  to[at] = TEXT;
  to[at + 1] = bytes;
  to[at + 1 + words] = 0;
  memcpy(to + at + 2, inputs->value.text.data, bytes);
  return at + 2 + words;
}

/* A text being made, and the bytes that it needs. */
typedef struct shape_line {
  char *to;
  size_t room, bytes;
} shape_line;

static void shape_put(shape_line *line, const char *text, size_t bytes) {
  if (line->bytes < line->room)
    memcpy(line->to + line->bytes, text,
           bytes < line->room - line->bytes ? bytes : line->room - line->bytes);
  line->bytes += bytes;
}

static void shape_put_dim(shape_line *line, int64_t dim, bool is_first) {
  char text[32];
  shape_put(line, text,
            (size_t)snprintf(text, sizeof text, is_first ? "%lld" : ", %lld", (long long)dim));
}

size_t prof_i_shape_text(const uint64_t *words, size_t count, char *to, size_t room) {
  shape_line line = {to, room, 0};
  for (size_t at = 0; at < count && words[at] != TEXT;) {
    const size_t rank = words[at] == NO_TENSOR ? 0 : words[at];
    const bool is_last = at + 1 + rank == count || words[at + 1 + rank] == TEXT;
    shape_put(&line, at ? ", " : "[", at ? 2 : 1);
    shape_put(&line, words[at] == NO_TENSOR ? "null" : "[", words[at] == NO_TENSOR ? 4 : 1);
    for (size_t d = 0; d < rank; d++) shape_put_dim(&line, (int64_t)words[at + 1 + d], d == 0);
    if (words[at] != NO_TENSOR) shape_put(&line, "]", 1);
    if (is_last) shape_put(&line, "]", 1);
    at += 1 + rank;
    if (at < count && words[at] == TEXT) {
      shape_put(&line, "\n", 1);
      shape_put(&line, (const char *)(words + at + 2), words[at + 1]);
    }
  }
  return line.bytes;
}
