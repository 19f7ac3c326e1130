/* Inner parts of the walk, shared by walk.c and walk_lanes.c: how a span becomes pending on a lane,
   and how it is emitted. The hot ones are inline, so that a plain scope takes no call. */
#ifndef PROF_READER_WALK_LANES_H
#define PROF_READER_WALK_LANES_H

#include "../format/parse.h"
#include "capture.h"
#include "walker.h"

/* What may become pending: a scope, an open one, a step. Times in ticks. */
typedef struct prof_i_scope_interval {
  uint64_t start, end;
  const uint64_t *record;
  uint32_t site;
  uint16_t kind : 5; /* prof_event_kind */
} prof_i_scope_interval;

/* ---- walk_lanes.c ---- */

/* Doubles the room of the lane. False: no memory (status). */
bool prof_i_lane_grow(prof_i_walker *w, prof_i_lane *lane);

/* Whether it shares moments with others of its thread: a scope that ended on the thread it began
   on. A stream does several things at once, and each of them has its whole time. */
bool prof_i_span_shares_time(const prof_i_walker *w, const prof_i_span *span);

/* Emits the last span of a side lane, or at the end of a walk, of any lane. */
void prof_i_lane_emit_last(prof_i_walker *w, prof_i_lane *lane);

/* Emits spans of side lanes that began after the next scope, which has these times. */
void prof_i_side_lanes_flush(prof_i_walker *w, uint64_t start, uint64_t end);

/* Adds to the first side lane where no span is in its way. */
void prof_i_side_lanes_add(prof_i_walker *w, const prof_i_scope_interval *t);

/* Divides the moments of a new pending span among it and the others. */
void prof_i_share_children(prof_i_walker *w, prof_i_pending_span *added);

/* Passes the batch to the visitor. */
void prof_i_walker_visit_batch(prof_i_walker *w);

/* ---- emitting ---- */

/* The span at next is complete. */
static inline void prof_i_walker_pass_span(prof_i_walker *w) {
  if (__builtin_expect(++w->next == w->end, 0)) prof_i_walker_visit_batch(w);
}

static inline void prof_i_emit_span(prof_i_walker *w, const prof_i_span *span) {
  *w->next = *span;
  prof_i_walker_pass_span(w);
}

/* Too deep to be pending: the scope around it keeps its time. A step's time is its own. */
static inline void prof_i_emit_too_deep(prof_i_walker *w, prof_i_span *span) {
  if (span->kind != PROF_EVENT_STEP) span->self_ns = 0;
  prof_i_emit_span(w, span);
}

static inline void prof_i_emit_pending(prof_i_walker *w, const prof_i_pending_span *pending) {
  prof_i_span *const to = w->next;
  *to = pending->span;
  to->self_ns -= pending->children_ns;
  to->child_count = pending->child_count;
  to->inner_count = pending->child_count + pending->deeper_count;
  prof_i_walker_pass_span(w);
}

static inline void prof_i_emit_last(prof_i_walker *w, prof_i_lane *lane) {
  prof_i_pending_span *const last = &lane->stack[--lane->count];
  prof_i_pending_finish(last);
  prof_i_emit_pending(w, last);
}

/* ---- pushing ---- */

/* NULL: too deep, or no memory (status). */
static inline prof_i_pending_span *prof_i_lane_push(prof_i_walker *w, prof_i_lane *lane) {
  if (__builtin_expect(lane->count >= lane->room, 0) &&
      (lane->count > PROF_I_DEPTH_MAX || !prof_i_lane_grow(w, lane)))
    return NULL;
  return &lane->stack[lane->count++];
}

static inline void prof_i_span_set_times(prof_i_walker *w, prof_i_span *span, uint64_t start,
                                         uint64_t end) {
  span->duration_ns =
      prof_i_timeline_span(&w->trace->timeline, &w->line, start, end, &span->start_ns);
  span->self_ns = span->duration_ns;
}

/* A call of a vendor's interface: the program recorded no scope for it. */
static inline bool prof_i_interval_is_call(const prof_i_scope_interval *t) {
  return t->record && prof_i_is_call(t->record);
}

/* ---- walk_sorted.c ---- */

typedef struct prof_i_sorted_record {
  uint64_t start, end; /* ticks */
  const uint64_t *words;
} prof_i_sorted_record;

/* segments: `count` neighbours of one group. */
void prof_i_walk_sorted(prof_i_walker *walker, const prof_i_segment *segments, uint32_t count);

#endif
