/* Sorts charges and scopes of side lanes by time, and adds the scopes' memory to their groups. */
#include "group.h"

#include <stdlib.h>

enum { FOUND = 1 };

static int find_crossing(void *user, const prof_i_span *spans, size_t count) {
  (void)user;
  for (size_t i = 0; i < count; i++)
    if (prof_i_is_crossing(&spans[i])) return FOUND;
  return 0;
}

int prof_i_crossing_memory_begin(prof_i_crossing_memory *crossing, const prof_trace *trace,
                                 uint32_t thread) {
  const int found = prof_i_trace_walk(trace, thread, find_crossing, NULL);
  crossing->is_on = found == FOUND;
  crossing->charge_count = crossing->scope_count = 0;
  return found == FOUND ? 0 : found;
}

bool prof_i_crossing_memory_charge(prof_i_crossing_memory *crossing, const prof_i_charge *charge) {
  if (!prof_i_make_room((void **)&crossing->charges, &crossing->charge_room, crossing->charge_count,
                        sizeof *crossing->charges))
    return false;
  crossing->charges[crossing->charge_count++] = *charge;
  return true;
}

bool prof_i_crossing_memory_scope(prof_i_crossing_memory *crossing, const prof_i_span *span,
                                  prof_i_group *group) {
  if (!prof_i_make_room((void **)&crossing->scopes, &crossing->scope_room, crossing->scope_count,
                        sizeof *crossing->scopes))
    return false;
  crossing->scopes[crossing->scope_count++] =
      (prof_i_crossing_scope){span->start_ns, span->start_ns + span->duration_ns, group};
  return true;
}

void prof_i_crossing_memory_merge(prof_i_crossing_memory *crossing, const prof_i_group *from,
                                  uint64_t start_ns, prof_i_group *to) {
  for (uint32_t i = 0; i < crossing->charge_count; i++) {
    prof_i_charge *const charge = &crossing->charges[i];
    if (charge->group == from && charge->holder_start_ns == start_ns) charge->group = to;
  }
}

static int charge_compare_time(const void *left, const void *right) {
  const uint64_t a = ((const prof_i_charge *)left)->at_ns,
                 b = ((const prof_i_charge *)right)->at_ns;
  return (a > b) - (a < b);
}

static int crossing_scope_compare_start(const void *left, const void *right) {
  const prof_i_crossing_scope *const a = left, *const b = right;
  if (a->start_ns != b->start_ns) return a->start_ns < b->start_ns ? -1 : 1;
  return (a->end_ns < b->end_ns) - (a->end_ns > b->end_ns); /* the inner one last */
}

/* The sum of all charges before that time. */
static prof_i_scope_bytes sum_before(const prof_i_crossing_memory *crossing, uint64_t ns) {
  uint32_t low = 0, high = crossing->charge_count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (crossing->charges[middle].at_ns < ns)
      low = middle + 1;
    else
      high = middle;
  }
  if (low < crossing->charge_count) return crossing->charges[low].before;
  if (!low) return (prof_i_scope_bytes){0};
  prof_i_scope_bytes all = crossing->charges[low - 1].before;
  prof_i_scope_bytes_add(&all, &crossing->charges[low - 1].own);
  return all;
}

static int64_t bytes_minus(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }

static void add_totals(prof_i_crossing_memory *crossing) {
  for (uint32_t i = 0; i < crossing->scope_count; i++) {
    const prof_i_crossing_scope *const s = &crossing->scopes[i];
    const prof_i_scope_bytes to = sum_before(crossing, s->end_ns + 1),
                             from = sum_before(crossing, s->start_ns);
    prof_i_scope_bytes_add(&s->group->memory,
                           &(prof_i_scope_bytes){.host = bytes_minus(to.host, from.host),
                                                 .device = bytes_minus(to.device, from.device)});
  }
}

/* Moves own memory from the scope around it in lane 0 to that group. */
static void move_own(const prof_i_charge *charge, prof_i_group *to) {
  const prof_i_scope_bytes own = {.self_host = charge->own.self_host,
                                  .self_device = charge->own.self_device},
                           taken = {.self_host = bytes_minus(0, own.self_host),
                                    .self_device = bytes_minus(0, own.self_device)};
  prof_i_scope_bytes_add(&to->memory, &own);
  if (charge->group) prof_i_scope_bytes_add(&charge->group->memory, &taken);
}

static void add_outside(const prof_i_charge *charge, prof_i_unscoped_memory *outside) {
  if (!outside->count || charge->at_ns < outside->first_ns) outside->first_ns = charge->at_ns;
  outside->count++;
  outside->host = prof_i_bytes_add_wrapping(outside->host, charge->own.self_host);
  outside->device = prof_i_bytes_add_wrapping(outside->device, charge->own.self_device);
}

void prof_i_crossing_memory_settle(prof_i_crossing_memory *crossing,
                                   prof_i_unscoped_memory *outside) {
  prof_i_crossing_scope *const scopes = crossing->scopes; /* the first `running` ones are reused */
  uint32_t running = 0, next = 0;
  prof_i_scope_bytes sum = {0};
  if (!crossing->charge_count) return;
  qsort(crossing->charges, crossing->charge_count, sizeof *crossing->charges, charge_compare_time);
  if (crossing->scope_count)
    qsort(scopes, crossing->scope_count, sizeof *scopes, crossing_scope_compare_start);
  for (uint32_t i = 0; i < crossing->charge_count; i++) {
    crossing->charges[i].before = sum;
    prof_i_scope_bytes_add(&sum, &crossing->charges[i].own);
  }
  add_totals(crossing);
  for (uint32_t i = 0; i < crossing->charge_count; i++) {
    const prof_i_charge *const charge = &crossing->charges[i];
    while (next < crossing->scope_count && scopes[next].start_ns <= charge->at_ns)
      scopes[running++] = scopes[next++];
    uint32_t kept = 0;
    for (uint32_t k = 0; k < running; k++)
      if (scopes[k].end_ns >= charge->at_ns) scopes[kept++] = scopes[k];
    running = kept;
    const prof_i_crossing_scope *const last = running ? &scopes[running - 1] : NULL;
    if (last && (!charge->is_held || last->start_ns > charge->holder_start_ns))
      move_own(charge, last->group);
    else if (!last && !charge->is_held)
      add_outside(charge, outside);
  }
}

void prof_i_crossing_memory_fini(prof_i_crossing_memory *crossing) {
  free(crossing->charges);
  free(crossing->scopes);
}
