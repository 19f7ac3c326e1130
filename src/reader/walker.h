/* The walker, for callers that need more than prof_i_trace_walk(). The cursor stops it between
   groups of segments, saves the pending scopes, and continues later. Aggregates track parents. */
#ifndef PROF_READER_WALKER_H
#define PROF_READER_WALKER_H

#include "../format/parse.h"
#include "capture.h"

/* A span that ended, and whose beginning the walk has not passed. */
typedef struct prof_i_pending_span {
  /* Until it is emitted, inner_count of a span that shares no time is the place of the first of
     those next to it in its lane that share none either. */
  prof_i_span span;
  uint64_t start; /* ticks */
  /* To subtract from self time. Not in the span, so that the span is not written again before it is
     copied. */
  uint64_t children_ns;
  /* Scopes inside of the direct ones, of emitted ones. Between the other two, because each child
     adds to both. As neighbours, the compiler loads them as one vector. The processor must then
     wait until the two stores before it are in the cache. */
  uint64_t deeper_count;
  uint64_t child_count; /* scopes directly in it; vendors' calls do not count */
  uint32_t stack_node;  /* 1 + that of call_stacks.h; 0: not queried */
  /* of a side lane: the stack node of lane 0 around it; 0: none */
  uint32_t outside;
} prof_i_pending_span;

typedef struct prof_i_lane {
  prof_i_pending_span *stack; /* entry 0 encloses everything, and is never removed */
  uint32_t count, room;
} prof_i_lane;

enum {
  /* Of a lane. Deeper spans are emitted at once: their time and their children count as those of
     the last pending one. */
  PROF_I_DEPTH_MAX = 65535
};

typedef struct prof_i_walker prof_i_walker;
struct prof_i_call_stacks;
/* The stack node around a span that began at this time, in ticks and in ns. 0: none. */
typedef uint32_t prof_i_walker_holding(struct prof_i_call_stacks *call_stacks,
                                       prof_i_walker *walker, uint64_t start, uint64_t start_ns);
typedef void (*prof_i_walk_segment)(prof_i_walker *walker, const prof_i_segment *segment);

struct prof_i_walker {
  const prof_trace *trace;
  const prof_i_trace_thread *thread;
  const prof_i_time_line *line; /* used last */
  uint64_t start_ticks;         /* these two are of the current segment */
  int64_t clock_offset;
  /* walks a segment of plain scopes; walk_plain.h makes variants */
  prof_i_walk_segment walk_plain;
  bool takes_bare; /* walk_plain needs nothing of a plain scope beyond its site */
  prof_i_visit visit;
  void *user;
  /* If parents are tracked: a new span is pending on lane 0. NULL: no callback. */
  void (*on_pending)(prof_i_walker *walker, prof_i_pending_span *place);
  struct prof_i_call_stacks *call_stacks; /* if stacks are tracked; else NULL */
  prof_i_walker_holding *holding;         /* the same */
  /* the start of function tracing for which the stack nodes of the lanes are valid: earlier
     functions are not part of stacks */
  uint64_t functions_from_ns;
  /* The parent of the span being emitted, if it is not the last one of its lane: in a plain
     segment, and for a span in no lane. Only if parents are tracked; else NULL. */
  prof_i_pending_span *around;
  /* of the span being emitted from a side lane: as in prof_i_pending_span */
  uint32_t outside;
  int status;             /* of the visitor, or PROF_E_NO_MEMORY; the walk stops once it is set */
  uint32_t first_segment; /* those before are not walked */
  /* Complete spans, the next free one, and the end at which they are visited. In `batch`, unless
     the visitor sets other room. */
  prof_i_span *spans, *next, *end;
  uint32_t lane_count;
  /* Pending scopes of side lanes that share moments: prof_i_span_shares_time(). Unless it is 0, a
     plain segment takes the slow path. */
  uint32_t crosswise_count;
  prof_i_lane lanes[PROF_I_LANES_MAX];
  uint64_t *begins; /* a bit for each slot where a record begins; allocated when needed */
  prof_i_span batch[PROF_I_BATCH];
};

/* NULL: no memory. */
prof_i_walker *prof_i_walker_create(const prof_trace *trace, uint32_t thread, prof_i_visit visit,
                                    void *user);
void prof_i_walker_destroy(prof_i_walker *walker);

/* Called before the walk. Segments that ended before that time are not walked. Spans of other
   segments may have ended earlier. 0: all are walked. */
void prof_i_walker_skip_before(prof_i_walker *walker, uint64_t from_ns);

/* The thread's first segment with an end at that time or later. The end of its segments: none. */
uint32_t prof_i_first_segment_from(const prof_trace *trace, const prof_i_trace_thread *thread,
                                   uint64_t from_ns);

/* The whole walk; returns the status. */
int prof_i_walker_run(prof_i_walker *walker);

/* From now on each span is visited alone, and the visitor may query its parent. Entry 0, which
   encloses everything, has no site. call_stacks and holding: if stacks are tracked, or NULL. */
void prof_i_walker_track_parents(prof_i_walker *walker, struct prof_i_call_stacks *call_stacks,
                                 prof_i_walker_holding *holding);
static inline prof_i_pending_span *prof_i_walker_parent(const prof_i_walker *walker,
                                                        const prof_i_span *span) {
  if (walker->around) return walker->around;
  const prof_i_lane *const lane = &walker->lanes[span->lane];
  return &lane->stack[lane->count - 1];
}

/* The parts of prof_i_walker_run(). First the thread's open scopes. */
void prof_i_walker_put_open(prof_i_walker *walker);

/* Then the groups of segments, from the last to the first. Takes the last segment of a group (index
   in trace->segments), returns the first. */
uint32_t prof_i_walker_put_group(prof_i_walker *walker, uint32_t last_segment);

/* Emits pending spans that began at these ticks or later (0: all), if no later record is inside of
   them. Visits the rest of a batch. */
void prof_i_walker_flush(prof_i_walker *walker, uint64_t ticks);

/* ---- for walk_sorted.c ---- */

/* The next records are of this segment. */
static inline void prof_i_walker_enter_segment(prof_i_walker *walker,
                                               const prof_i_segment *segment) {
  walker->start_ticks = segment->start_ticks;
  walker->clock_offset = segment->clock_offset;
}
/* Takes one record of any kind. A call gets the times that it was fitted to. */
void prof_i_walker_put(prof_i_walker *walker, const uint64_t *words);
void prof_i_walker_put_call(prof_i_walker *walker, const uint64_t *words, uint64_t start,
                            uint64_t end);

/* A step begins at the end of the previous step, or at the start of the session. */
uint64_t prof_i_step_start(const prof_i_catalog *catalog, uint64_t end);

/* ---- for walk_plain.h ---- */

/* Takes one plain record, also if it does not nest. */
void prof_i_walker_put_plain(prof_i_walker *walker, const uint64_t *words);
/* Emits a pending span. Does not change the stack. */
void prof_i_walker_emit(prof_i_walker *walker, const prof_i_pending_span *pending);

/* The depth of a child. Entry 0 has depth -1. */
static inline uint16_t prof_i_child_depth(const prof_i_pending_span *pending) {
  /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a lane in use has a stack */
  return (uint16_t)(pending->span.depth + 1);
}

static inline bool prof_i_is_skipped_span(const prof_i_span *span) {
  return span->kind == PROF_EVENT_SCOPE && span->record && prof_i_is_skipped(span->record);
}

/* Called before the last span of a stack is emitted. A step has all its time as self time, and a
   scope that a jump left has none. Their children count as children of the scope around them. */
static inline void prof_i_pending_finish(prof_i_pending_span *last) {
  const bool is_step = last->span.kind == PROF_EVENT_STEP;
  if (__builtin_expect(!is_step && !prof_i_is_skipped_span(&last->span), 1)) {
    last[-1].deeper_count += last->child_count + last->deeper_count;
    return;
  }
  last[-1].children_ns += last->children_ns;
  last[-1].child_count += last->child_count;
  last[-1].deeper_count += last->deeper_count;
  last->children_ns = last->child_count = last->deeper_count = 0;
}

/* ---- a walk that is interrupted ---- */

/* The pending spans between two groups. */
typedef struct prof_i_walker_state {
  prof_i_pending_span *pending;
  uint32_t count;
  uint32_t lane_count;
  uint32_t lane_counts[]; /* lane_count of them */
} prof_i_walker_state;
prof_i_walker_state *prof_i_walker_save(const prof_i_walker *walker); /* NULL: no memory */
void prof_i_walker_state_free(prof_i_walker_state *state);
bool prof_i_walker_restore(prof_i_walker *walker, const prof_i_walker_state *state);

/* ---- inner parts of the walk ----

   For walk.c, walk_lanes.c and walk_sorted.c: how a span becomes pending on a lane, and how it is
   emitted. The hot ones are inline, so that a plain scope takes no call. */

/* What may become pending: a scope, an open one, a step. Times in ticks. */
typedef struct prof_i_scope_interval {
  uint64_t start, end;
  const uint64_t *record;
  uint32_t site;
  uint16_t kind : 5; /* prof_event_kind */
} prof_i_scope_interval;

/* ---- walk_lanes.c: lanes ---- */

/* Doubles the room of the lane. False: no memory (status). */
bool prof_i_lane_grow(prof_i_walker *w, prof_i_lane *lane);

/* Of a long record's words: its thread spends the time in other scopes. */
static inline bool prof_i_record_has_no_time(const uint64_t *words) {
  return prof_i_is_async(words) || prof_i_is_skipped(words);
}

/* Whether it shares moments with others of its thread: a scope that ended on the thread it began
   on. A stream does several things at once, and each of them has its whole time. */
bool prof_i_span_shares_time(const prof_i_walker *w, const prof_i_span *span);

/* Emits the last span of a side lane, or at the end of a walk, of any lane. */
void prof_i_lane_emit_last(prof_i_walker *w, prof_i_lane *lane);

/* Emits spans of side lanes that began after the next scope, which has these times. */
void prof_i_side_lanes_flush(prof_i_walker *w, uint64_t start, uint64_t end);

/* Adds to the first side lane where no span is in its way. */
void prof_i_side_lanes_add(prof_i_walker *w, const prof_i_scope_interval *t);

/* Called after a span became pending that shares no time. */
void prof_i_lane_note_unshared(prof_i_walker *w, prof_i_lane *lane);

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
