/* See dims.h. */
#include "dims.h"

#include <string.h>

enum { COUNT_MAX = 64, LIST_MAX = 30 };
/* depths: of the text itself, of an input, of a tensor in a list */
enum { LIST = 1, INPUT = 2, TENSOR = 3 };

static bool dims_is_digit(char c) { return c >= '0' && c <= '9'; }

/* Skips a number as JSON has it. Returns where it ends, or `end` if it is malformed. */
static const char *dims_skip_number(const char *at, const char *end) {
  const char *const first = at + (at < end && *at == '-');
  const char *last = first;
  while (last < end && dims_is_digit(*last)) last++;
  return last == first || (*first == '0' && last - first > 1) ? end : last;
}

/* Goes from element to element. An element begins with a bracket or a number. A comma or the end of
   the list follows it. */
bool prof_i_dims_check(const char *text, uint64_t bytes, uint32_t count, uint64_t *lists_out) {
  const char *at = text, *const end = text + bytes;
  uint32_t depth = 0, found = 0;
  bool is_behind = false, is_first = false;
  uint64_t lists = 0, numbers = 0; /* a bit for each input that has the one, or the other */
  while (at < end) {
    const uint64_t here = found > 0 ? UINT64_C(1) << (found - 1) : 0;
    if (*at == ']' && depth > 0 && (is_behind || is_first)) {
      is_behind = true, is_first = false, at++;
      if (--depth == 0) break;
    } else if (is_behind) {
      if (*at++ != ',') return false;
      is_behind = false;
    } else if (*at == '[' && depth < TENSOR) {
      if (depth == 0 && found > 0) return false;
      if (depth == LIST && found++ == COUNT_MAX) return false;
      if (depth == INPUT) lists |= here;
      depth++, is_first = true, at++;
    } else if (depth >= INPUT && (at = dims_skip_number(at, end)) < end) {
      if (depth == INPUT) numbers |= here;
      is_behind = true, is_first = false;
    } else {
      return false;
    }
  }
  *lists_out = lists;
  return depth == 0 && at == end && bytes > 0 && found == count && (lists & numbers) == 0;
}

/* The bracket that ends the list that begins at `at`. *tensors_out: how many lists it holds. */
static const char *dims_find_end(const char *at, const char *end, uint32_t *tensors_out) {
  uint32_t depth = 0;
  *tensors_out = 0;
  for (; at < end; at++) {
    if (*at == '[' && ++depth == 2) ++*tensors_out;
    if (*at == ']' && --depth == 0) break;
  }
  return at;
}

bool prof_i_dims_put_json(prof_i_sink *sink, const char *text, uint64_t bytes) {
  const char *at = text, *const end = text + bytes;
  int depth = 0;
  for (const char *c = text; c < end; c++) {
    if (!dims_is_digit(*c) && !strchr("[],- ", *c)) return false;
    depth += (*c == '[') - (*c == ']');
    if (depth > TENSOR) return false;
  }
  depth = 0;
  for (const char *c = text; c < end; c++) {
    uint32_t tensors = 0;
    depth += (*c == '[') - (*c == ']');
    if (*c != '[' || depth != INPUT) continue;
    const char *const last = dims_find_end(c, end, &tensors);
    if (tensors <= LIST_MAX || last == end) continue;
    prof_i_sink_bytes(sink, at, (size_t)(c + 1 - at));
    at = c = last; /* its bracket is written with what comes */
    depth--;
  }
  prof_i_sink_bytes(sink, at, (size_t)(end - at));
  return true;
}
