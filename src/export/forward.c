/* See forward.h. */
#include "forward.h"

#include <stdlib.h>

#include "../analysis/torch.h"
#include "../reader/capture.h"

void prof_i_forwards_add(prof_i_forwards *forwards, const prof_event *scope, uint64_t start_ns,
                         uint64_t pid, uint64_t tid, bool is_left_out) {
  const prof_i_call_numbers numbers = prof_i_call_numbers_of(scope);
  const bool is_backward = numbers.forward_thread != 0;
  if (!is_backward && !numbers.thread) return;
  if (!prof_i_make_room((void **)&forwards->items, &forwards->room, forwards->count,
                        sizeof *forwards->items)) {
    forwards->left_out_count++;
    return;
  }
  forwards->items[forwards->count++] =
      (prof_i_forward){is_backward ? numbers.forward_thread : numbers.thread,
                       numbers.sequence,
                       start_ns,
                       start_ns + scope->duration_ns,
                       pid,
                       tid,
                       is_backward,
                       is_left_out};
}

/* By thread and number, then in time; at one moment the forward call comes first. */
static int forward_compare(const void *left, const void *right) {
  const prof_i_forward *const a = left, *const b = right;
  if (a->thread != b->thread) return a->thread < b->thread ? -1 : 1;
  if (a->sequence != b->sequence) return a->sequence < b->sequence ? -1 : 1;
  if (a->start_ns != b->start_ns) return a->start_ns < b->start_ns ? -1 : 1;
  return (int)a->is_backward - (int)b->is_backward;
}

/* Without one nothing need be sorted: a model that only runs forward has many numbers. */
static bool forwards_have_backward(const prof_i_forwards *forwards) {
  for (size_t i = 0; i < forwards->count; i++)
    if (forwards->items[i].is_backward) return true;
  return false;
}

/* Of two arrows: a forward end, and behind it its backward one. */
static int compare_arrows(const void *left, const void *right) {
  const uint64_t a = ((const prof_i_forward *)left)[1].end_ns;
  const uint64_t b = ((const prof_i_forward *)right)[1].end_ns;
  if (a != b) return a < b ? -1 : 1;
  return forward_compare(left, right);
}

void prof_i_forwards_match(prof_i_forwards *forwards) {
  uint32_t kept = 0;
  if (!forwards_have_backward(forwards)) forwards->count = 0;
  if (forwards->count > 1)
    qsort(forwards->items, forwards->count, sizeof *forwards->items, forward_compare);
  for (uint32_t i = 0; i + 1 < forwards->count; i++) {
    const prof_i_forward from = forwards->items[i], to = forwards->items[i + 1];
    if (from.is_backward || !to.is_backward || from.thread != to.thread ||
        from.sequence != to.sequence)
      continue;
    forwards->items[kept++] = from;
    forwards->items[kept++] = to;
    i++;
  }
  forwards->count = kept;
  if (kept > 2) qsort(forwards->items, kept / 2, 2 * sizeof *forwards->items, compare_arrows);
}

void prof_i_forwards_fini(prof_i_forwards *forwards) {
  free(forwards->items);
  *forwards = (prof_i_forwards){NULL, 0, 0, 0};
}
