/* The walk itself, for those who need more of it than prof_i_trace_walk(): the cursor stops it
   between groups, keeps what stands open there, and goes on from it later. */
#ifndef PROF_READER_WALKER_H
#define PROF_READER_WALKER_H

#include "../format/parse.h"

/* A scope whose beginning has not been reached. */
typedef struct prof_i_pending_span {
  prof_i_span span;
  uint64_t start; /* ticks */
  /* what self time will be less. Not in the span, which is then not written again before it is
     copied */
  uint64_t children_ns;
  uint64_t child_count;  /* scopes directly in it; vendors' calls do not count */
  uint64_t deeper_count; /* what these hold, of those that are handed out */
  uint32_t stack_node;   /* call_stacks.h; 0: nobody has asked */
  /* the same of what holds it in lane 0, where it stands in another; 0: nothing */
  uint32_t outside;
} prof_i_pending_span;

typedef struct prof_i_lane {
  prof_i_pending_span *stack; /* place 0 is never taken away, and holds everything */
  uint32_t count, room;
} prof_i_lane;

enum {
  /* Of a lane. Deeper ones are handed out at once: their time and their children count as those of
     the last one that waits. */
  PROF_I_DEPTH_MAX = 65535
};

typedef struct prof_i_walker prof_i_walker;
struct prof_i_call_stacks;
/* The number of what holds a span that began at that time, in ticks and in ns. 0: nothing. */
typedef uint32_t prof_i_walker_holding(struct prof_i_call_stacks *call_stacks,
                                       prof_i_walker *walker, uint64_t start, uint64_t start_ns);
typedef void (*prof_i_walk_segment)(prof_i_walker *walker, const prof_i_segment *segment);

struct prof_i_walker {
  const prof_trace *trace;
  const prof_i_trace_thread *thread;
  const prof_i_time_line *line; /* used last */
  uint64_t start_ticks;         /* these two of the segment that is walked */
  int64_t clock_offset;
  /* hands out the spans of a segment of plain scopes; walk_plain.h makes other ways */
  prof_i_walk_segment walk_plain;
  bool takes_bare; /* what plain scopes have beyond their site is of no matter to walk_plain */
  prof_i_visit visit;
  void *user;
  /* of a walk that looks around: a place of lane 0 is filled, and holds nothing yet. NULL: nobody
     asks */
  void (*on_pending)(prof_i_walker *walker, prof_i_pending_span *place);
  struct prof_i_call_stacks *call_stacks; /* of a walk that looks around; else NULL */
  prof_i_walker_holding *holding;         /* the same */
  /* of such a walk: functions that began before are nobody's stack, as the numbers in its lanes
     have it */
  uint64_t functions_from_ns;
  /* of what is just handed out, where that is not the last of its lane: in a plain segment, and
     where it is in none. To a visitor that looks around; else NULL */
  prof_i_pending_span *around;
  /* of what is just handed out, where it is not of lane 0: as in prof_i_pending_span */
  uint32_t outside;
  int status;             /* of the visitor, or PROF_E_NO_MEMORY; nothing is done once it is set */
  uint32_t first_segment; /* those before are not walked */
  /* complete ones, where the next one goes, and where it is time to visit: in batch, unless the
     visitor sets another room for what comes next */
  prof_i_span *spans, *next, *end;
  uint32_t lane_count;
  /* Scopes that wait beside the thread's own lane and share its moments: pending_shares_time() in
     walk.c. While it is not 0 a segment is not walked the plain way. */
  uint32_t crosswise_count;
  prof_i_lane lanes[PROF_I_LANES_MAX];
  uint64_t *begins; /* one bit a slot: a record begins there. Made when a segment needs it */
  prof_i_span batch[PROF_I_BATCH];
};

/* NULL: no memory. */
prof_i_walker *prof_i_walker_create(const prof_trace *trace, uint32_t thread, prof_i_visit visit,
                                    void *user);
void prof_i_walker_destroy(prof_i_walker *walker);

/* Before the walk: segments that ended before that time are not walked. What is handed out of those
   that are may have ended earlier. 0: all are walked. */
void prof_i_walker_skip_before(prof_i_walker *walker, uint64_t from_ns);

/* The thread's first segment of which anything ended at that time or later; its end where there is
   none. */
uint32_t prof_i_first_segment_from(const prof_trace *trace, const prof_i_trace_thread *thread,
                                   uint64_t from_ns);

/* The whole walk; returns the status. */
int prof_i_walker_run(prof_i_walker *walker);

/* From here on each span is handed out by itself, and the visitor may ask what it stands inside of:
   place 0, which holds everything, has no site. callers and holding: of a walk that asks for those,
   or NULL. */
void prof_i_walker_track_parents(prof_i_walker *walker, struct prof_i_call_stacks *call_stacks,
                                 prof_i_walker_holding *holding);
static inline prof_i_pending_span *prof_i_walker_parent(const prof_i_walker *walker,
                                                        const prof_i_span *span) {
  if (walker->around) return walker->around;
  const prof_i_lane *const lane = &walker->lanes[span->lane];
  return &lane->stack[lane->count - 1];
}

/* Its parts. First the thread's scopes that had not ended. */
void prof_i_walker_put_open(prof_i_walker *walker);

/* The group of segments that ends with this one (places in trace->segments); returns its first
   segment. Groups come from the last to the first. */
uint32_t prof_i_walker_put_group(prof_i_walker *walker, uint32_t last_segment);

/* Hands out all that began at these ticks or later and still waits, when nothing that comes is
   inside of it; 0: all. Calls the visitor for what is left of a batch. */
void prof_i_walker_flush(prof_i_walker *walker, uint64_t ticks);

/* ---- for walk_sorted.c ---- */

/* Records of this segment come next. */
static inline void prof_i_walker_enter_segment(prof_i_walker *walker,
                                               const prof_i_segment *segment) {
  walker->start_ticks = segment->start_ticks;
  walker->clock_offset = segment->clock_offset;
}
/* Takes one record, whatever stands in its way; a call with the times that it was given. */
void prof_i_walker_put(prof_i_walker *walker, const uint64_t *words);
void prof_i_walker_put_call(prof_i_walker *walker, const uint64_t *words, uint64_t start,
                            uint64_t end);

/* A step begins where the one before it ended, or the session began. */
uint64_t prof_i_step_start(const prof_i_catalog *catalog, uint64_t end);

/* ---- for walk_plain.h ---- */

/* Takes one plain record, whatever stands in its way. */
void prof_i_walker_put_plain(prof_i_walker *walker, const uint64_t *words);
/* Hands out one that waited. Leaves the stack alone. */
void prof_i_walker_emit(prof_i_walker *walker, const prof_i_pending_span *pending);

/* The depth of what this one holds. Place 0 has the depth before 0. */
static inline uint16_t prof_i_child_depth(const prof_i_pending_span *pending) {
  /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a lane has a stack when it is asked */
  return (uint16_t)(pending->span.depth + 1);
}

static inline bool prof_i_is_skipped_span(const prof_i_span *span) {
  return span->kind == PROF_EVENT_SCOPE && span->record && prof_i_is_skipped(span->record);
}

/* Before the last one of a stack is handed out. A step's time is all its own, and a scope that a
   jump left has none: what they hold counts as held by what stands around them. */
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

/* What stands open between two groups. */
typedef struct prof_i_walker_state {
  prof_i_pending_span *pending;
  uint32_t count;
  uint32_t lane_count;
  uint32_t lane_counts[]; /* lane_count of them */
} prof_i_walker_state;
prof_i_walker_state *prof_i_walker_save(const prof_i_walker *walker); /* NULL: no memory */
void prof_i_walker_state_free(prof_i_walker_state *state);
bool prof_i_walker_restore(prof_i_walker *walker, const prof_i_walker_state *state);

#endif
