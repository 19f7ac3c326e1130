/* Estimates how large a regular expression becomes when regcomp() expands its counts. a{1,250}
   makes 250 copies of a, and nested counts multiply. regcomp() of libc has no limit. Its time grows
   with the square of this size. See filter_words.h. */
#include <stdlib.h>
#include <string.h>

#include "filter_words.h"

enum {
  DEPTH_MAX = PROF_I_PATTERN_DEPTH_MAX,
  SIZE_MOST = PROF_I_PATTERN_SIZE_MOST,
  COUNT_MOST = 1 << 20
};

/* The size of an open group so far. A following count repeats `last`. */
typedef struct group_size {
  uint32_t before, last;
} group_size;

static uint32_t size_clamped(uint64_t size) {
  return size < SIZE_MOST ? (uint32_t)size : SIZE_MOST;
}

static void group_put(group_size *to, uint32_t size) {
  to->before = size_clamped((uint64_t)to->before + to->last);
  to->last = size;
}

/* Returns the end of the bracket expression at `at`, such as [^]a-z[:space:]]. */
static const char *skip_bracket(const char *at) {
  at += at[1] == '^' ? 2 : 1;
  if (*at == ']') at++;
  while (*at && *at != ']') {
    const bool is_class = at[0] == '[' && at[1] && strchr(":.=", at[1]);
    const char ending[] = {at[1], ']', '\0'};
    const char *const end = is_class ? strstr(at + 2, ending) : NULL;
    at = end ? end + 2 : at + 1;
  }
  return *at ? at + 1 : at;
}

static uint32_t read_count(const char **at) {
  uint32_t count = 0;
  for (; **at >= '0' && **at <= '9'; ++*at)
    if (count < COUNT_MOST) count = count * 10 + (uint32_t)(**at - '0');
  return count;
}

/* The number of copies that {3}, {3,}, {3,5} or {,5} makes. Moves *at past it. 1: this is no
   count. */
static uint32_t copies_of_count(const char **at) {
  const char *to = *at + 1;
  uint32_t copies = read_count(&to);
  if (*to == ',') {
    to++;
    const bool is_open = *to == '}';
    const uint32_t most = read_count(&to);
    copies = is_open ? copies + 1 : most > copies ? most : copies;
  }
  if (*to != '}') return 1;
  *at = to;
  return copies ? copies : 1;
}

/* The group becomes one part of the group around it. */
static group_size *group_end(group_size *group) {
  group_put(group - 1, size_clamped((uint64_t)group->before + group->last));
  return group - 1;
}

uint32_t prof_i_pattern_size(const char *pattern) {
  group_size groups[DEPTH_MAX + 1] = {{0}}, *group = groups;
  for (const char *at = pattern; *at; at++) {
    switch (*at) {
      case '(':
        if (group == groups + DEPTH_MAX) return UINT32_MAX;
        *++group = (group_size){0};
        break;
      case ')':
        if (group == groups) break; /* regcomp() refuses it, or takes it as it is */
        group_put(group, 1);
        group = group_end(group);
        break;
      case '{':
        group->last = size_clamped((uint64_t)group->last * copies_of_count(&at));
        break;
      case '+': /* one, and any number */
        group->last = size_clamped((uint64_t)group->last * 2);
        break;
      case '*':
      case '?':
        break;
      case '[':
        at = skip_bracket(at) - 1;
        group_put(group, 1);
        break;
      case '\\':
        at += at[1] != '\0';
        group_put(group, 1);
        break;
      default:
        group_put(group, 1);
    }
  }
  while (group > groups) group = group_end(group); /* regcomp() refuses them */
  return size_clamped((uint64_t)group->before + group->last);
}
