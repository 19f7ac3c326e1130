/* See dims.h. */
#include "dims.h"

enum { COUNT_MAX = 64, LIST = 1, INPUT = 2, TENSOR = 3 }; /* depths: of the text itself, of an input, of a tensor in a list */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* A number that JSON knows; where it ends, or `end` where it is none. */
static const char *skip_number(const char *at, const char *end) {
  const char *const first = at + (at < end && *at == '-');
  const char *last = first;
  while (last < end && is_digit(*last)) last++;
  return last == first || (*first == '0' && last - first > 1) ? end : last;
}

/* It goes from element to element: what may stand next is a bracket or a number at the begin of one, behind it a comma or the end of what is around. */
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
    } else if (depth >= INPUT && (at = skip_number(at, end)) < end) {
      if (depth == INPUT) numbers |= here;
      is_behind = true, is_first = false;
    } else {
      return false;
    }
  }
  *lists_out = lists;
  return depth == 0 && at == end && bytes > 0 && found == count && (lists & numbers) == 0;
}
