/* The walk over a segment that has only plain scopes in order: the fast path of most captures. Most
   scopes are leaves. They are complete when the next record is read, and never reach the stack.

   The including file decides what is done with complete scopes: walk.c emits spans,
   aggregate_plain.c adds up, cursor.c skips. A call for each scope would cost as much as the walk,
   so this is a header, and its callbacks are inlined. Other records go to
   prof_i_walker_put_plain(). */
#ifndef PROF_READER_WALK_PLAIN_H
#define PROF_READER_WALK_PLAIN_H

#include "../format/parse.h"
#include "walker.h"

/* The last scope read. The next record may be inside of it. */
typedef struct prof_i_leaf {
  uint64_t start, end; /* ticks */
  uint64_t start_ns, duration_ns;
  uint32_t site;
} prof_i_leaf;

/* Takes a complete scope: a leaf and its parent, or a pending span, which may be of another segment
   and not a plain scope. They do not change the stack. */
typedef void (*prof_i_take_leaf)(prof_i_walker *walker, const prof_i_leaf *leaf,
                                 prof_i_pending_span *around);
typedef void (*prof_i_take_pending)(prof_i_walker *walker, prof_i_pending_span *pending);
/* Makes a leaf pending at `place`, by prof_i_pending_init(). */
typedef void (*prof_i_make_pending)(prof_i_walker *walker, const prof_i_leaf *leaf,
                                    prof_i_pending_span *place);

/* The next record is inside of the leaf: it becomes pending. */
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

/* The last entry of lane 0 that the plain walk may fill. None while a side lane has a span that
   shares time. */
static inline prof_i_pending_span *prof_i_plain_limit(const prof_i_walker *w,
                                                      const prof_i_lane *lane) {
  return w->crosswise_count ? lane->stack : &lane->stack[lane->room - 1];
}

/* walker_put_event() of walk.c for one record after another, except that the last one stays a leaf.
   Precondition: segment_is_simple() of walk.c. Budget: 4 ns. has_times is constant. If it is false,
   leaves have no times in ns, and pending spans have neither children nor self times. */
static inline __attribute__((always_inline)) void prof_i_walk_plain_with(
    prof_i_walker *w, const prof_i_segment *segment, bool has_times, prof_i_take_leaf take_leaf,
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
    /* a scope that starts then or later does not enclose this one */
    const uint64_t over = when.end + (when.start == when.end);
    if (has_leaf) {
      if (leaf.start < over)
        make_wait(w, &leaf, ++top);
      else
        take_leaf(w, &leaf, top);
    }
    for (; top->start >= over; top--) {
      if (has_times) prof_i_pending_finish(top);
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
    leaf.end = when.end;
    leaf.site = prof_i_plain_site(words[1]);
    has_leaf = true;
    if (!has_times) continue;
    leaf.duration_ns = prof_i_timeline_span(timeline, &line, when.start, when.end, &leaf.start_ns);
    top->children_ns += leaf.duration_ns;
    top->child_count++;
  }
  if (has_leaf) make_wait(w, &leaf, ++top);
  lane->count = (uint32_t)(top - lane->stack) + 1;
  if (has_times) w->line = line;
}

static inline __attribute__((always_inline)) void prof_i_walk_plain(
    prof_i_walker *w, const prof_i_segment *segment, prof_i_take_leaf take_leaf,
    prof_i_take_pending take_waiting, prof_i_make_pending make_wait) {
  prof_i_walk_plain_with(w, segment, true, take_leaf, take_waiting, make_wait);
}

#endif
