/* Arrows: those that a program recorded, and those from PyTorch's forward calls to their backward
   calls. See flow.h. */
#include "flow.h"

#include <stdlib.h>

#include "../analysis/torch.h"
#include "../reader/capture.h"

/* ---- arrows of the program ---- */

void prof_i_flows_init(prof_i_flows *flows) { *flows = (prof_i_flows){NULL, 0, 0, PROF_I_NO_FLOW}; }

bool prof_i_flows_add(prof_i_flows *flows, const prof_i_flow *flow) {
  if (flows->count == PROF_I_FLOWS_MAX ||
      !prof_i_make_room((void **)&flows->items, &flows->room, flows->count, sizeof *flows->items))
    return false;
  flows->items[flows->count] = *flow;
  flows->items[flows->count].below = flows->pending;
  flows->pending = flows->count++;
  return true;
}

void prof_i_flows_bind(prof_i_flows *flows, uint16_t depth, uint64_t start_ns, uint64_t end_ns) {
  while (flows->pending != PROF_I_NO_FLOW) {
    prof_i_flow *const flow = &flows->items[flows->pending];
    if (flow->depth <= depth) return;
    flows->pending = flow->below;
    const bool is_inside = flow->start_ns >= start_ns && flow->start_ns <= end_ns;
    flow->is_held = flow->depth == depth + 1 && start_ns < end_ns && is_inside;
    if (flow->is_held && flow->start_ns == end_ns) flow->start_ns--;
  }
}

void prof_i_flows_pass_over(prof_i_flows *flows, uint16_t depth) {
  for (uint32_t i = flows->pending; i != PROF_I_NO_FLOW && flows->items[i].depth > depth;
       i = flows->items[i].below)
    flows->items[i].depth = depth;
}

void prof_i_flows_next_thread(prof_i_flows *flows) { flows->pending = PROF_I_NO_FLOW; }

/* By id, then in time; at one moment the beginning comes first. */
static int flow_compare(const void *left, const void *right) {
  const prof_i_flow *const a = left, *const b = right;
  if (a->id != b->id) return a->id < b->id ? -1 : 1;
  if (a->start_ns != b->start_ns) return a->start_ns < b->start_ns ? -1 : 1;
  return (int)a->is_end - (int)b->is_end;
}

void prof_i_flows_match(prof_i_flows *flows, size_t *outside_out, size_t *alone_out) {
  const uint32_t before = flows->count;
  uint32_t kept = 0;
  *outside_out = 0;
  if (before > 1) qsort(flows->items, before, sizeof *flows->items, flow_compare);
  for (uint32_t i = 0; i + 1 < before; i++) {
    const prof_i_flow begin = flows->items[i], end = flows->items[i + 1];
    if (begin.is_end || !end.is_end || begin.id != end.id) continue;
    flows->items[kept++] = begin;
    flows->items[kept++] = end;
    *outside_out += begin.is_held ? 0 : 1;
    *outside_out += end.is_held ? 0 : 1;
    i++;
  }
  flows->count = kept;
  *alone_out = before - kept;
}

void prof_i_flows_fini(prof_i_flows *flows) {
  free(flows->items);
  prof_i_flows_init(flows);
}

/* ---- from forward to backward calls ---- */

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
