/* See shape.h. */
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

size_t prof_i_shape_words(const prof_event *event, uint64_t *to, size_t room) {
  size_t at = 0;
  const uint32_t count = prof_i_shape_count(event);
  for (uint32_t i = 0; i < count && at < room; i++) {
    const prof_trace_arg *const arg = &event->args[i];
    const size_t left = room - at - 1, rank = arg->type == PROF_ARG_TENSOR ? arg->value.tensor.rank : 0, kept = rank < left ? rank : left;
    to[at++] = kept;
    if (kept) memcpy(to + at, arg->value.tensor.dims, kept * sizeof *to);
    at += kept;
  }
  return at;
}

/* Where a text is put together, and how much of it there would be. */
typedef struct shape_line {
  char *to;
  size_t room, bytes;
} shape_line;

static void put(shape_line *line, const char *text, size_t bytes) {
  if (line->bytes < line->room) memcpy(line->to + line->bytes, text, bytes < line->room - line->bytes ? bytes : line->room - line->bytes);
  line->bytes += bytes;
}

static void put_dim(shape_line *line, int64_t dim, bool is_first) {
  char text[32];
  put(line, text, (size_t)snprintf(text, sizeof text, is_first ? "%lld" : ", %lld", (long long)dim));
}

size_t prof_i_shape_text(const uint64_t *words, size_t count, char *to, size_t room) {
  shape_line line = {to, room, 0};
  for (size_t at = 0; at < count;) {
    const size_t rank = words[at];
    put(&line, at ? ", [" : "[[", at ? 3 : 2);
    for (size_t d = 0; d < rank; d++) put_dim(&line, (int64_t)words[at + 1 + d], d == 0);
    at += 1 + rank;
    put(&line, "]]", at < count ? 1 : 2);
  }
  return line.bytes;
}
