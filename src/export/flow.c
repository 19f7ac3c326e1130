/* Arrows between scopes; see flow.h. */
#include "flow.h"

#include <stdlib.h>

#include "../reader/capture.h"

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
