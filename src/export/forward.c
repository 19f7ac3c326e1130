/* See forward.h. */
#include "forward.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 1024 };

static bool is_text(const char *data, uint64_t bytes, const char *text) { return bytes == strlen(text) && memcmp(data, text, bytes) == 0; }

/* An argument's value as a whole number that is not negative. */
static bool find(const prof_event *scope, const char *key, uint64_t *value_out) {
  for (uint32_t i = scope->arg_count; i > 0; i--) { /* they stand behind the shapes */
    const prof_trace_arg *const arg = &scope->args[i - 1];
    if (!arg->key) return false;
    if ((arg->type != PROF_ARG_I64 && arg->type != PROF_ARG_U64) || !is_text(arg->key, arg->key_bytes, key)) continue;
    *value_out = arg->value.u64;
    return arg->value.i64 >= 0;
  }
  return false;
}

void prof_i_forwards_add(prof_i_forwards *forwards, const prof_event *scope, uint64_t start_ns, uint64_t pid, uint64_t tid) {
  uint64_t sequence, thread = 0;
  if (scope->arg_count < 2 || !is_text(scope->category, scope->category_bytes, "cpu_op") || !find(scope, "Sequence number", &sequence)) return;
  const bool is_backward = find(scope, "Fwd thread id", &thread) && thread > 0;
  if (!is_backward && !find(scope, "Thread id", &thread)) return;
  if (forwards->count == forwards->room) {
    const size_t room = forwards->room == 0 ? FIRST_ROOM : 2 * forwards->room;
    prof_i_forward *const items = realloc(forwards->items, room * sizeof *items);
    if (items == NULL) {
      forwards->left_out_count++;
      return;
    }
    forwards->items = items;
    forwards->room = room;
  }
  forwards->items[forwards->count++] = (prof_i_forward){thread, (int64_t)sequence, start_ns, pid, tid, is_backward};
}

/* By thread and number, then in time; at one moment the forward call comes first. */
static int compare(const void *left, const void *right) {
  const prof_i_forward *const a = left, *const b = right;
  if (a->thread != b->thread) return a->thread < b->thread ? -1 : 1;
  if (a->sequence != b->sequence) return a->sequence < b->sequence ? -1 : 1;
  if (a->start_ns != b->start_ns) return a->start_ns < b->start_ns ? -1 : 1;
  return (int)a->is_backward - (int)b->is_backward;
}

/* Without one nothing need be sorted: a model that only runs forward has many numbers. */
static bool has_backward(const prof_i_forwards *forwards) {
  for (size_t i = 0; i < forwards->count; i++)
    if (forwards->items[i].is_backward) return true;
  return false;
}

void prof_i_forwards_match(prof_i_forwards *forwards) {
  size_t kept = 0;
  if (!has_backward(forwards)) forwards->count = 0;
  if (forwards->count > 1) qsort(forwards->items, forwards->count, sizeof *forwards->items, compare);
  for (size_t i = 0; i + 1 < forwards->count; i++) {
    const prof_i_forward from = forwards->items[i], to = forwards->items[i + 1];
    if (from.is_backward || !to.is_backward || from.thread != to.thread || from.sequence != to.sequence) continue;
    forwards->items[kept++] = from;
    forwards->items[kept++] = to;
    i++;
  }
  forwards->count = kept;
}

void prof_i_forwards_fini(prof_i_forwards *forwards) {
  free(forwards->items);
  *forwards = (prof_i_forwards){NULL, 0, 0, 0};
}
