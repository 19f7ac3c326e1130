/* The walk (walk.c) over a segment that holds nothing but plain scopes in order, which is most of
   most captures. Most of them hold nothing and are complete when the next record comes: they never
   reach the stack. What becomes of complete ones is for the including file to say (walk.c hands out
   spans, aggregate.c adds up, cursor.c first only goes past); a call for each would cost as much as
   the walk, so this is a header and they are inlined. What is unusual goes to
   prof_i_walker_put_plain(). */
#ifndef PROF_READER_PLAIN_H
#define PROF_READER_PLAIN_H

#include "../format/parse.h"
#include "walker.h"

/* A scope that may turn out to hold what comes next. */
typedef struct prof_i_leaf {
  uint64_t start; /* ticks */
  uint64_t start_ns, duration_ns;
  uint32_t site;
} prof_i_leaf;

/* Takes a complete scope: one that held nothing, and what it stands inside of; or one that waited,
   which may be of another segment and no plain scope. Both leave the stack alone. */
typedef void (*prof_i_take_leaf)(prof_i_walker *walker, const prof_i_leaf *leaf,
                                 prof_i_pending_span *around);
typedef void (*prof_i_take_pending)(prof_i_walker *walker, prof_i_pending_span *pending);
/* Puts a leaf that holds something on its place, by prof_i_pending_init(). */
typedef void (*prof_i_make_pending)(prof_i_walker *walker, const prof_i_leaf *leaf,
                                    prof_i_pending_span *place);

/* The leaf holds something: it waits. */
static inline void prof_i_pending_init(const prof_i_leaf *leaf, prof_i_pending_span *place) {
  place->span.start_ns = leaf->start_ns;
  place->span.duration_ns = place->span.self_ns = leaf->duration_ns;
  place->span.record = NULL;
  place->span.site = leaf->site;
  place->span.depth = prof_i_child_depth(place - 1);
  place->span.kind = PROF_EVENT_SCOPE;
  place->span.lane = 0;
  place->start = leaf->start;
  place->children_ns = place->child_count = place->deeper_count = 0;
  place->stack_node = 0;
}

static inline void prof_i_pending_make(prof_i_walker *walker, const prof_i_leaf *leaf,
                                       prof_i_pending_span *place) {
  (void)walker;
  prof_i_pending_init(leaf, place);
}

/* The last place of lane 0 that the plain way may fill: none, while something waits beside it. */
static inline prof_i_pending_span *prof_i_plain_limit(const prof_i_walker *w,
                                                      const prof_i_lane *lane) {
  return w->crosswise_count ? lane->stack : &lane->stack[lane->room - 1];
}

/* The same as walker_put_event() in walk.c for one record after another, but that the last one is
   kept aside. Every record counts, and every site is known (segment_is_simple() in walk.c). Budget:
   4 ns. */
static inline __attribute__((always_inline)) void prof_i_walk_plain(
    prof_i_walker *w, const prof_i_segment *segment, prof_i_take_leaf take_leaf,
    prof_i_take_pending take_waiting, prof_i_make_pending make_wait) {
  prof_i_lane *const lane = &w->lanes[0];
  const prof_i_timeline *const timeline = &w->trace->timeline;
  const prof_i_time_line *line = w->line;
  const uint64_t start_ticks = w->start_ticks = segment->start_ticks;
  w->clock_offset = 0;
  prof_i_pending_span *top = &lane->stack[lane->count - 1], *limit = prof_i_plain_limit(w, lane);
  prof_i_leaf leaf = {.start = 0};
  bool has_leaf = false;
  for (const uint64_t *words = segment->words + (uint64_t)segment->slot_count * 2;
       words != segment->words;) {
    words -= 2;
    const prof_i_interval when = prof_i_plain_interval(words, start_ticks);
    /* what starts there or later cannot hold this one */
    const uint64_t over = when.end + (when.start == when.end);
    if (has_leaf) {
      if (leaf.start < over)
        make_wait(w, &leaf, ++top);
      else
        take_leaf(w, &leaf, top);
    }
    for (; top->start >= over; top--) {
      prof_i_pending_finish(top);
      take_waiting(w, top);
    }
    if (__builtin_expect(top->start > when.start || top >= limit, 0)) {
      has_leaf = false;
      lane->count = (uint32_t)(top - lane->stack) + 1;
      prof_i_walker_put_plain(w, words);
      top = &lane->stack[lane->count - 1];
      limit = prof_i_plain_limit(w, lane);
      continue;
    }
    leaf.start = when.start;
    leaf.site = prof_i_record_site(words[1]);
    leaf.duration_ns = prof_i_timeline_span(timeline, &line, when.start, when.end, &leaf.start_ns);
    top->children_ns += leaf.duration_ns;
    top->child_count++;
    has_leaf = true;
  }
  if (has_leaf) make_wait(w, &leaf, ++top);
  lane->count = (uint32_t)(top - lane->stack) + 1;
  w->line = line;
}

#endif
