/* Lanes of a walk: which span becomes pending where, and whose moments are whose. Scopes that nest
   are on lane 0. What overlaps without nesting, what began on another thread and what is
   asynchronous goes to a side lane. Self time: each moment of a thread belongs to the scope that
   began last of those that run then. So self times add up to the time in which any scope ran. */
#include "walker.h"

#include <stdlib.h>

enum { STACK_ROOM_FIRST = 64 };

bool prof_i_lane_grow(prof_i_walker *w, prof_i_lane *lane) {
  const uint32_t room = lane->room ? lane->room * 2 : STACK_ROOM_FIRST;
  prof_i_pending_span *const larger = realloc(lane->stack, room * sizeof *larger);
  if (!larger) {
    w->status = PROF_E_NO_MEMORY;
    return false;
  }
  lane->stack = larger;
  lane->room = room;
  if (lane->count == 0)
    lane->stack[lane->count++] = (prof_i_pending_span){.span.depth = UINT16_MAX, .stack_node = 1};
  return true;
}

void prof_i_walker_visit_batch(prof_i_walker *w) {
  if (!w->status && w->next != w->spans)
    w->status = w->visit(w->user, w->spans, (size_t)(w->next - w->spans));
  w->next = w->spans;
}

bool prof_i_span_shares_time(const prof_i_walker *w, const prof_i_span *span) {
  return span->kind == PROF_EVENT_SCOPE &&
         !(span->record && prof_i_record_has_no_time(span->record)) &&
         !prof_i_thread_is_stream(w->thread);
}

void prof_i_lane_emit_last(prof_i_walker *w, prof_i_lane *lane) {
  if (lane != w->lanes)
    w->crosswise_count -= prof_i_span_shares_time(w, &lane->stack[lane->count - 1].span);
  w->outside = lane->stack[lane->count - 1].outside;
  prof_i_emit_last(w, lane);
}

void prof_i_side_lanes_flush(prof_i_walker *w, uint64_t start, uint64_t end) {
  for (uint32_t i = 1; i < w->lane_count; i++) {
    prof_i_lane *const lane = &w->lanes[i];
    while (lane->stack[lane->count - 1].start > start && lane->stack[lane->count - 1].start >= end)
      prof_i_lane_emit_last(w, lane);
  }
}

static inline uint64_t pending_end_ns(const prof_i_pending_span *pending) {
  return pending->span.start_ns + pending->span.duration_ns;
}

/* Of two that run at the same time in different lanes, the inner one began last. If they began
   together, it ends first. If they also end together, only the inner one has self time left. */
static bool pending_is_inner(const prof_i_pending_span *one, const prof_i_pending_span *other) {
  if (one->start != other->start) return one->start > other->start;
  if (pending_end_ns(one) != pending_end_ns(other))
    return pending_end_ns(one) < pending_end_ns(other);
  return one->children_ns < one->span.duration_ns;
}

/* The last span of a lane that began at start or before. At least the lane's foot, which began
   before all. In a lane each span began at the same time as the one below it, or later. */
static prof_i_pending_span *last_begun_by(const prof_i_lane *lane, uint64_t start) {
  uint32_t found = 0, beyond = lane->count;
  while (beyond - found > 1) {
    const uint32_t middle = found + (beyond - found) / 2;
    if (lane->stack[middle].start <= start)
      found = middle;
    else
      beyond = middle;
  }
  return &lane->stack[found];
}

/* Many spans of a lane may share no time, for example those that a jump left. So runs of them are
   skipped by one step down, and by halving up. */

void prof_i_lane_note_unshared(prof_i_walker *w, prof_i_lane *lane) {
  const uint32_t place = lane->count - 1, below = place - 1;
  lane->stack[place].span.inner_count =
      below > 0 && !prof_i_span_shares_time(w, &lane->stack[below].span)
          ? lane->stack[below].span.inner_count
          : place;
}

/* The last span at the place or below that shares time. 0: none. */
static uint32_t last_shared_at(const prof_i_walker *w, const prof_i_lane *lane, uint32_t place) {
  while (place > 0 && !prof_i_span_shares_time(w, &lane->stack[place].span))
    place = (uint32_t)lane->stack[place].span.inner_count - 1;
  return place;
}

/* The first span at the place or above that shares time. The lane's count: none. */
static uint32_t first_shared_from(const prof_i_walker *w, const prof_i_lane *lane, uint32_t place) {
  uint32_t beyond = lane->count;
  const uint32_t first = place;
  while (place < beyond) {
    const uint32_t middle = place + (beyond - place) / 2;
    const prof_i_span *const span = &lane->stack[middle].span;
    if (!prof_i_span_shares_time(w, span) && span->inner_count <= first)
      place = middle + 1;
    else
      beyond = middle;
  }
  return place;
}

/* All pending spans end later than the added one, or with it. Its own moments are those before the
   next of them began. So far they belonged to the last one that began before it, or with it. */
void prof_i_share_children(prof_i_walker *w, prof_i_pending_span *added) {
  uint64_t own_end = pending_end_ns(added);
  prof_i_pending_span *around = NULL;
  for (uint32_t i = 0; i < w->lane_count; i++) {
    const prof_i_lane *const lane = &w->lanes[i];
    const uint32_t last = (uint32_t)(last_begun_by(lane, added->start) - lane->stack);
    const uint32_t later = first_shared_from(w, lane, last + 1);
    if (later < lane->count && lane->stack[later].span.start_ns < own_end)
      own_end = lane->stack[later].span.start_ns;
    uint32_t at = last_shared_at(w, lane, last);
    if (&lane->stack[at] == added) at = last_shared_at(w, lane, at - 1);
    prof_i_pending_span *const other = &lane->stack[at];
    if (at > 0 && (!around || pending_is_inner(other, around))) around = other;
  }
  const uint64_t own_ns = own_end > added->span.start_ns ? own_end - added->span.start_ns : 0;
  added->children_ns += added->span.duration_ns - own_ns;
  if (around) around->children_ns += own_ns;
}

/* A scope that crosses another one is a child of the scope around both. */
static void count_in_side_lane(prof_i_walker *w, const prof_i_scope_interval *t,
                               const prof_i_span *span) {
  if (!prof_i_span_shares_time(w, span) || prof_i_interval_is_call(t)) return;
  last_begun_by(&w->lanes[0], t->start)->child_count++;
}

/* The stack node of lane 0 around it. 0: none, as for a scope that began on another thread. */
static uint32_t outer_stack_node(prof_i_walker *w, const prof_i_scope_interval *t,
                                 uint64_t start_ns) {
  if (!w->call_stacks || (t->record && prof_i_word_flags(t->record[2]) & PROF_I_FLAG_OTHER_THREAD))
    return 0;
  return w->holding(w->call_stacks, w, t->start, start_ns);
}

/* Every lane has a span in its way, so it is in no lane. What encloses it and what runs in it is
   unknown. Its time stays with the scopes of lane 0. */
static void emit_skipped(prof_i_walker *w, prof_i_span *span) {
  if (prof_i_span_shares_time(w, span)) span->self_ns = 0;
  span->lane = PROF_I_LANES_MAX;
  w->around = w->lanes[0].stack;
  prof_i_emit_span(w, span);
  w->around = NULL;
}

void prof_i_side_lanes_add(prof_i_walker *w, const prof_i_scope_interval *t) {
  prof_i_span span = {.record = t->record, .site = t->site, .kind = t->kind};
  prof_i_span_set_times(w, &span, t->start, t->end);
  if (t->record && prof_i_record_has_no_time(t->record)) span.self_ns = 0;
  const uint32_t outside = outer_stack_node(w, t, span.start_ns);
  count_in_side_lane(w, t, &span);
  for (uint32_t i = 1; i < PROF_I_LANES_MAX; i++) {
    prof_i_lane *const lane = &w->lanes[i];
    if (i == w->lane_count) {
      if (!prof_i_lane_grow(w, lane)) return;
      w->lane_count++;
    }
    while (lane->stack[lane->count - 1].start > t->start &&
           lane->stack[lane->count - 1].start >= t->end)
      prof_i_lane_emit_last(w, lane);
    if (lane->stack[lane->count - 1].start > t->start) continue;
    span.lane = i & (2 * PROF_I_LANES_MAX - 1);
    span.depth = prof_i_child_depth(&lane->stack[lane->count - 1]);
    prof_i_pending_span *const place = prof_i_lane_push(w, lane);
    if (place) *place = (prof_i_pending_span){.span = span, .start = t->start, .outside = outside};
    if (place && prof_i_span_shares_time(w, &span)) {
      w->crosswise_count++;
      prof_i_share_children(w, place);
    } else if (place) {
      prof_i_lane_note_unshared(w, lane);
    }
    if (place || w->status) return;
    w->outside = outside;
    prof_i_emit_too_deep(w, &span);
    return;
  }
  w->outside = outside;
  emit_skipped(w, &span);
}
