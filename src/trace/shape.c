/* See shape.h. */
#include "shape.h"

#include <stdio.h>
#include <string.h>

uint32_t prof_i_shape_count(const prof_event *event) {
  uint32_t count = 0;
  if (event->args_kind != PROF_ARGS_SHAPES) return 0;
  while (count < event->arg_count && event->args[count].key_bytes == 0) count++;
  return count;
}

size_t prof_i_shape_text(const prof_event *event, char *to, size_t room) {
  size_t wanted = 0;
  const uint32_t count = prof_i_shape_count(event);
  for (uint32_t i = 0; i < count; i++) {
    const prof_trace_arg *const arg = &event->args[i];
    const uint32_t rank = arg->type == PROF_ARG_TENSOR ? arg->value.tensor.rank : 0;
    for (uint32_t d = 0; d < rank + 1; d++) { /* one piece a dimension, and one behind the last */
      char piece[64];
      int bytes = 0;
      if (d == 0) bytes = snprintf(piece, sizeof piece, i == 0 ? "[[" : ", [");
      if (d < rank)
        bytes +=
            snprintf(piece + bytes, sizeof piece - (size_t)bytes, d ? ", %lld" : "%lld", (long long)arg->value.tensor.dims[d]);
      else bytes += snprintf(piece + bytes, sizeof piece - (size_t)bytes, i + 1 == count ? "]]" : "]");
      if (wanted < room) memcpy(to + wanted, piece, (size_t)bytes < room - wanted ? (size_t)bytes : room - wanted);
      wanted += (size_t)bytes;
    }
  }
  return wanted;
}
