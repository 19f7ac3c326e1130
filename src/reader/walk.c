/* The backward walk. A thread's records are in the order in which scopes ended. Read from the end,
   a scope precedes the scopes inside of it. A scope is pending on a stack until its beginning is
   passed.

       record        [========= outer =========]        1. read first, pending.
       record                      [== b ==]            2. inside of outer, pushed on it.
                                                           outer's self time shrinks.
       record           [= a =]                         3. b begins after a's end.
                                                           So b is complete, and emitted.

   So spans are emitted by falling start, inner ones before outer ones, each with its final self
   time. Where scopes nest, that is a scope's time less its children's. walk_lanes.c has what does
   not nest. A scope that a jump left has no self time, because the moment of the jump is unknown:
   its time is that of the scopes around it. A segment in which the order is broken is sorted first
   (walk_sorted.c): a handler recorded between another scope's clock and its record.

   Steps are also read without a walk. */
#include <prof/profiler.h>
#include <stdlib.h>
#include <string.h>

#include "../format/parse.h"
#include "capture.h"
#include "walk_plain.h"
#include "walker.h"

enum { BITMAP_WORDS = (PROF_I_SEGMENT_SLOTS + 65536) / 64 };

/* On lane 0. Takes about 3 ns for a plain scope. All else is out of line. */
static inline void walker_put_event(prof_i_walker *w, const prof_i_scope_interval *t) {
  prof_i_lane *const lane = &w->lanes[0];
  if (__builtin_expect(w->crosswise_count > 0, 0)) prof_i_side_lanes_flush(w, t->start, t->end);
  prof_i_pending_span *top = &lane->stack[lane->count - 1];
  while (top->start > t->start) {
    if (__builtin_expect(top->start < t->end, 0)) {
      prof_i_side_lanes_add(w, t);
      return;
    }
    prof_i_emit_last(w, lane);
    top--;
  }
  const uint32_t under = lane->count - 1;
  const bool is_skipped = t->record && prof_i_is_skipped(t->record);
  prof_i_pending_span *place = prof_i_lane_push(w, lane);
  prof_i_pending_span spare;
  if (__builtin_expect(!place, 0)) place = &spare;
  top = &lane->stack[under]; /* the stack may have moved */
  prof_i_span_set_times(w, &place->span, t->start, t->end);
  place->span.record = t->record;
  place->span.site = t->site;
  place->span.depth = prof_i_child_depth(top);
  place->span.kind = t->kind;
  place->span.lane = 0;
  place->start = t->start;
  place->children_ns = place->child_count = place->deeper_count = 0;
  place->stack_node = 0;
  if (__builtin_expect(place == &spare, 0)) {
    spare.span.child_count = spare.span.inner_count = 0;
    if (!w->status) prof_i_emit_too_deep(w, &spare.span);
    return;
  }
  if (__builtin_expect(
          t->kind != PROF_EVENT_SCOPE || (t->record && prof_i_record_has_no_time(t->record)), 0))
    prof_i_lane_note_unshared(w, lane);
  if (t->kind != PROF_EVENT_STEP) top->child_count += !prof_i_interval_is_call(t);
  if (__builtin_expect(is_skipped, 0))
    place->span.self_ns = 0;
  else if (__builtin_expect(w->crosswise_count > 0 && t->kind == PROF_EVENT_SCOPE, 0)) {
    if (top->span.kind == PROF_EVENT_OPEN) top->children_ns += place->span.duration_ns;
    prof_i_share_children(w, place);
  } else if (t->kind != PROF_EVENT_STEP) {
    top->children_ns += place->span.duration_ns;
  }
  if (w->on_pending) w->on_pending(w, place);
}

/* Has no duration: emitted at once. */
static void walker_put_mark(prof_i_walker *w, uint64_t at, const uint64_t *record, uint32_t site,
                            uint8_t kind) {
  prof_i_lane *const lane = &w->lanes[0];
  while (lane->stack[lane->count - 1].start > at) prof_i_emit_last(w, lane);
  const uint16_t depth = prof_i_child_depth(&lane->stack[lane->count - 1]);
  prof_i_span span = {.record = record, .site = site, .kind = kind & 31u, .depth = depth};
  prof_i_span_set_times(w, &span, at, at);
  prof_i_emit_span(w, &span);
}

/* ---- records ---- */

uint64_t prof_i_step_start(const prof_i_catalog *catalog, uint64_t end) {
  uint32_t low = 0, high = catalog->mark_count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (catalog->marks[middle] < end)
      low = middle + 1;
    else
      high = middle;
  }
  return low ? catalog->marks[low - 1] : 0;
}

/* What the site's plain scopes have beyond the site. NULL: nothing. */
static inline const uint64_t *site_record(const prof_trace *trace, uint32_t site) {
  return prof_i_catalog_site(&trace->catalog, site)->record;
}

static inline uint32_t walker_thread_index(const prof_i_walker *w) {
  return (uint32_t)(w->thread - w->trace->threads);
}

static bool event_is_hidden(const prof_i_walker *w, const prof_i_scope_interval *t) {
  return prof_i_view_hides_scope(w->trace, walker_thread_index(w), t->site, t->record);
}

static inline void walker_put_plain(prof_i_walker *w, const uint64_t *words) {
  const prof_i_interval when = prof_i_plain_interval_in(words, w->start_ticks, w->clock_offset);
  if (when.end < w->trace->floor) return;
  const uint32_t site = prof_i_catalog_known_site(&w->trace->catalog, prof_i_record_site(words[1]));
  const prof_i_scope_interval t = {when.start, when.end, site_record(w->trace, site), site,
                                   PROF_EVENT_SCOPE};
  if (__builtin_expect(w->trace->view != NULL, 0) && event_is_hidden(w, &t)) return;
  walker_put_event(w, &t);
}

/* A record for which prof_i_parse_record() returned PROF_I_PARSED_EVENT. */
static void walker_put_long(prof_i_walker *w, const uint64_t *words) {
  prof_i_long_record record;
  if (!prof_i_event_read(words, &record)) return;
  const prof_i_interval when =
      prof_i_event_interval(words, &record, w->start_ticks, w->clock_offset);
  if (when.end < w->trace->floor) return;
  const bool has_view = w->trace->view != NULL;
  prof_i_scope_interval t = {
      when.start, when.end, words,
      prof_i_catalog_known_site(&w->trace->catalog, prof_i_record_site(words[1])),
      PROF_EVENT_SCOPE};
  switch (record.kind) {
    case PROF_I_KIND_CALL:
    case PROF_I_KIND_SCOPE:
    case PROF_I_KIND_ASYNC:
    case PROF_I_KIND_SKIPPED:
      if (has_view && event_is_hidden(w, &t)) return;
      if (prof_i_is_async(words))
        prof_i_side_lanes_add(w, &t);
      else
        walker_put_event(w, &t);
      return;
    case PROF_I_KIND_INSTANT:
      walker_put_mark(w, t.end, words, t.site, PROF_EVENT_INSTANT);
      return;
    case PROF_I_KIND_COUNTER:
      walker_put_mark(w, t.end, words, t.site, PROF_EVENT_COUNTER);
      return;
    case PROF_I_KIND_FLOW:
      walker_put_mark(w, t.end, words, t.site,
                      words[4] ? PROF_EVENT_FLOW_END : PROF_EVENT_FLOW_BEGIN);
      return;
    case PROF_I_KIND_MEMORY:
      if (has_view && prof_i_view_hides_memory(w->trace, walker_thread_index(w), words)) return;
      walker_put_mark(w, t.end, words, t.site, PROF_EVENT_MEMORY);
      return;
    case PROF_I_KIND_STEP:
      t.start = prof_i_step_start(&w->trace->catalog, t.end);
      t.kind = PROF_EVENT_STEP;
      walker_put_event(w, &t);
      return;
  }
}

static inline void walker_put_record(prof_i_walker *w, const uint64_t *words) {
  if ((words[1] & 15) == 0)
    walker_put_plain(w, words);
  else
    walker_put_long(w, words);
}

void prof_i_walker_put(prof_i_walker *walker, const uint64_t *words) {
  walker_put_record(walker, words);
}

void prof_i_walker_put_call(prof_i_walker *walker, const uint64_t *words, uint64_t start,
                            uint64_t end) {
  const prof_i_scope_interval t = {
      start, end, words,
      prof_i_catalog_known_site(&walker->trace->catalog, prof_i_record_site(words[1])),
      PROF_EVENT_SCOPE};
  walker_put_event(walker, &t);
}

/* ---- an ordered segment ---- */

void prof_i_walker_put_plain(prof_i_walker *walker, const uint64_t *words) {
  walker_put_plain(walker, words);
}

void prof_i_walker_emit(prof_i_walker *walker, const prof_i_pending_span *pending) {
  prof_i_emit_pending(walker, pending);
}

static inline void emit_leaf(prof_i_walker *w, const prof_i_leaf *leaf,
                             prof_i_pending_span *around) {
  *w->next = (prof_i_span){.start_ns = leaf->start_ns,
                           .duration_ns = leaf->duration_ns,
                           .self_ns = leaf->duration_ns,
                           .site = leaf->site,
                           .depth = prof_i_child_depth(around),
                           .kind = PROF_EVENT_SCOPE};
  prof_i_walker_pass_span(w);
}

static inline void emit_plain_pending(prof_i_walker *w, prof_i_pending_span *pending) {
  prof_i_emit_pending(w, pending);
}

static void walk_plain(prof_i_walker *w, const prof_i_segment *segment) {
  prof_i_walk_plain(w, segment, emit_leaf, emit_plain_pending, prof_i_pending_make);
}

/* ---- one span at a time, with its parents ---- */

static inline void emit_leaf_with_parents(prof_i_walker *w, const prof_i_leaf *leaf,
                                          prof_i_pending_span *around) {
  w->around = around;
  emit_leaf(w, leaf, around);
  w->around = NULL;
}

static inline void emit_pending_with_parents(prof_i_walker *w, prof_i_pending_span *pending) {
  w->around = pending - 1;
  prof_i_emit_pending(w, pending);
  w->around = NULL;
}

static inline void make_pending_with_parents(prof_i_walker *w, const prof_i_leaf *leaf,
                                             prof_i_pending_span *place) {
  prof_i_pending_init(leaf, place);
  if (!w->on_pending) return;
  w->around = place - 1;
  w->on_pending(w, place);
  w->around = NULL;
}

static void walk_plain_with_parents(prof_i_walker *w, const prof_i_segment *segment) {
  prof_i_walk_plain(w, segment, emit_leaf_with_parents, emit_pending_with_parents,
                    make_pending_with_parents);
}

void prof_i_walker_track_parents(prof_i_walker *walker, struct prof_i_call_stacks *call_stacks,
                                 prof_i_walker_holding *holding) {
  walker->call_stacks = call_stacks;
  walker->holding = holding;
  walker->end = walker->spans + 1;
  walker->walk_plain = walk_plain_with_parents;
}

/* Fast-path preconditions: only plain scopes, none hidden or cleared, none of an unknown site, none
   with anything beyond its site that the visitor reads. */
static bool segment_is_simple(const prof_i_walker *walker, const prof_i_segment *segment) {
  const prof_trace *const trace = walker->trace;
  return !trace->view && segment->is_plain && segment->cleared_count == 0 &&
         segment->passed_count == 0 && !trace->has_unknown_sites &&
         (!trace->has_site_records || walker->takes_bare);
}

/* Records have different lengths, so their begins are found by reading forwards. */
static bool find_begins(prof_i_walker *w, const prof_i_segment *segment) {
  if (!w->begins && !(w->begins = malloc(BITMAP_WORDS * sizeof *w->begins))) {
    w->status = PROF_E_NO_MEMORY;
    return false;
  }
  memset(w->begins, 0, (segment->slot_count / 64 + 1) * sizeof *w->begins);
  const uint64_t *const words = segment->words;
  for (uint64_t i = 0, slots; i < segment->slot_count; i += slots) {
    prof_i_long_record record;
    const prof_i_parse_result parsed = prof_i_parse_record(words + i * 2, segment->slot_count - i,
                                                           segment->generation, &slots, &record);
    if (parsed == PROF_I_PARSED_PLAIN || parsed == PROF_I_PARSED_EVENT)
      w->begins[i / 64] |= 1ull << i % 64;
  }
  return true;
}

static void walk_mixed_segment(prof_i_walker *w, const prof_i_segment *segment) {
  if (!find_begins(w, segment)) return;
  for (uint64_t i = segment->slot_count / 64 + 1; i-- > 0;) {
    for (uint64_t bits = w->begins[i]; bits;) {
      const uint64_t bit = 63u - (uint64_t)__builtin_clzll(bits);
      bits ^= 1ull << bit;
      walker_put_record(w, segment->words + (i * 64 + bit) * 2);
    }
  }
}

/* ---- groups ---- */

uint32_t prof_i_walker_put_group(prof_i_walker *walker, uint32_t last_segment) {
  const prof_i_segment *const segments = walker->trace->segments;
  uint32_t first = last_segment;
  while (first > walker->thread->first_segment && !segments[first - 1].ends_group) first--;
  const prof_i_segment *const segment = &segments[first];
  if (walker->status) return first;
  prof_i_walker_enter_segment(walker, segment);
  if (first != last_segment || !segment->is_ordered || segment->has_calls)
    prof_i_walk_sorted(walker, segment, last_segment - first + 1);
  else if (segment->event_count == 0)
    return first;
  else if (segment_is_simple(walker, segment))
    walker->walk_plain(walker, segment);
  else
    walk_mixed_segment(walker, segment);
  for (uint32_t i = first; i <= last_segment; i++)
    prof_i_source_release_pages(&walker->trace->source, segments[i].words,
                                segments[i].slot_count * 16ull);
  return first;
}

void prof_i_walker_put_open(prof_i_walker *walker) {
  const prof_trace *const trace = walker->trace;
  for (uint32_t i = 0; i < walker->thread->open_count; i++) {
    const prof_i_open_scope *const scope = &trace->opens[walker->thread->first_open + i];
    const uint32_t site = prof_i_catalog_known_site(&trace->catalog, scope->site);
    const uint64_t *const record = scope->record ? scope->record : site_record(trace, site);
    const prof_i_scope_interval t = {scope->start, trace->last, record, site, PROF_EVENT_OPEN};
    if (trace->view && event_is_hidden(walker, &t)) continue;
    if (t.record && prof_i_is_async(t.record))
      prof_i_side_lanes_add(walker, &t);
    else
      walker_put_event(walker, &t);
  }
}

void prof_i_walker_flush(prof_i_walker *walker, uint64_t ticks) {
  for (uint32_t i = 0; i < walker->lane_count; i++) {
    prof_i_lane *const lane = &walker->lanes[i];
    while (lane->count > 1 && lane->stack[lane->count - 1].start >= ticks)
      prof_i_lane_emit_last(walker, lane);
  }
  prof_i_walker_visit_batch(walker);
}

/* ---- create, destroy, save, restore ---- */

prof_i_walker *prof_i_walker_create(const prof_trace *trace, uint32_t thread, prof_i_visit visit,
                                    void *user) {
  prof_i_walker *const w = malloc(sizeof *w);
  if (!w) return NULL;
  w->trace = trace;
  w->thread = &trace->threads[thread];
  w->line = trace->timeline.lines;
  w->start_ticks = trace->header.start_ticks;
  w->clock_offset = 0;
  w->walk_plain = walk_plain;
  w->takes_bare = false;
  w->around = NULL;
  w->on_pending = NULL;
  w->outside = 0;
  w->call_stacks = NULL;
  w->functions_from_ns = 0;
  w->first_segment = w->thread->first_segment;
  w->visit = visit;
  w->user = user;
  w->status = 0;
  w->spans = w->next = w->batch;
  w->end = w->batch + PROF_I_BATCH;
  w->begins = NULL;
  memset(w->lanes, 0, sizeof w->lanes);
  w->lane_count = 1;
  w->crosswise_count = 0;
  if (prof_i_lane_grow(w, &w->lanes[0])) return w;
  free(w);
  return NULL;
}

void prof_i_walker_destroy(prof_i_walker *walker) {
  if (!walker) return;
  for (uint32_t i = 0; i < walker->lane_count; i++) free(walker->lanes[i].stack);
  free(walker->begins);
  free(walker);
}

prof_i_walker_state *prof_i_walker_save(const prof_i_walker *walker) {
  prof_i_walker_state *const state =
      malloc(sizeof *state + walker->lane_count * sizeof *state->lane_counts);
  if (!state) return NULL;
  state->count = 0;
  state->lane_count = walker->lane_count;
  for (uint32_t i = 0; i < walker->lane_count; i++)
    state->count += state->lane_counts[i] = walker->lanes[i].count;
  state->pending = malloc((state->count ? state->count : 1) * sizeof *state->pending);
  if (!state->pending) {
    free(state);
    return NULL;
  }
  prof_i_pending_span *to = state->pending;
  for (uint32_t i = 0; i < walker->lane_count; to += walker->lanes[i++].count)
    memcpy(to, walker->lanes[i].stack, walker->lanes[i].count * sizeof *to);
  return state;
}

void prof_i_walker_state_free(prof_i_walker_state *state) {
  if (!state) return;
  free(state->pending);
  free(state);
}

bool prof_i_walker_restore(prof_i_walker *walker, const prof_i_walker_state *state) {
  const prof_i_pending_span *from = state->pending;
  for (uint32_t i = 0; i < state->lane_count; i++) {
    prof_i_lane *const lane = &walker->lanes[i];
    while (lane->room < state->lane_counts[i])
      if (!prof_i_lane_grow(walker, lane)) return false;
    memcpy(lane->stack, from, state->lane_counts[i] * sizeof *from);
    lane->count = state->lane_counts[i];
    from += state->lane_counts[i];
  }
  for (uint32_t i = state->lane_count; i < walker->lane_count; i++) walker->lanes[i].count = 1;
  if (state->lane_count > walker->lane_count) walker->lane_count = state->lane_count;
  walker->crosswise_count = 0;
  for (uint32_t i = 1; i < walker->lane_count; i++)
    for (uint32_t place = 1; place < walker->lanes[i].count; place++)
      walker->crosswise_count +=
          prof_i_span_shares_time(walker, &walker->lanes[i].stack[place].span);
  return true;
}

uint32_t prof_i_first_segment_from(const prof_trace *trace, const prof_i_trace_thread *thread,
                                   uint64_t from_ns) {
  /* Vendor calls may have been moved by some microseconds: walk_sorted.c. */
  static const uint64_t slack_ns = 1000000;
  uint32_t low = thread->first_segment, high = low + thread->segment_count;
  if (from_ns <= slack_ns) return low;
  const uint64_t ticks = prof_i_timeline_ticks_at(&trace->timeline, from_ns - slack_ns);
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (trace->segments[middle].before_max < ticks)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

void prof_i_walker_skip_before(prof_i_walker *walker, uint64_t from_ns) {
  walker->first_segment = prof_i_first_segment_from(walker->trace, walker->thread, from_ns);
}

int prof_i_walker_run(prof_i_walker *walker) {
  const prof_i_trace_thread *const t = walker->thread;
  prof_i_walker_put_open(walker);
  const uint32_t end = t->first_segment + t->segment_count;
  for (uint32_t i = end; i > walker->first_segment && !walker->status;)
    i = prof_i_walker_put_group(walker, i - 1);
  prof_i_walker_flush(walker, 0);
  return walker->status;
}

int prof_i_trace_walk(const prof_trace *trace, uint32_t thread, prof_i_visit visit, void *user) {
  if (thread >= trace->thread_count) return 0;
  prof_i_walker *const walker = prof_i_walker_create(trace, thread, visit, user);
  const int status = walker ? prof_i_walker_run(walker) : PROF_E_NO_MEMORY;
  prof_i_walker_destroy(walker);
  return status;
}

/* ---- steps ---- */

/* The steps of a trace, as the walk emits them. Threads may have many records and few steps, so
   only segments with a step are read, and without their nesting. */

typedef struct step_search {
  const prof_trace *trace;
  const prof_i_time_line *line; /* used last */
  prof_i_step_visit visit;
  void *user;
} step_search;

static int visit_step(step_search *s, const prof_i_segment *segment, const uint64_t *words,
                      const prof_i_long_record *record) {
  const uint64_t end =
      prof_i_event_interval(words, record, segment->start_ticks, segment->clock_offset).end;
  prof_i_step step = {.number = record->own[0]};
  if (end < s->trace->floor) return 0;
  step.duration_ns =
      prof_i_timeline_span(&s->trace->timeline, &s->line,
                           prof_i_step_start(&s->trace->catalog, end), end, &step.start_ns);
  return s->visit(s->user, &step);
}

static int visit_steps_of(step_search *s, const prof_i_segment *segment) {
  int status = 0;
  for (uint64_t i = 0, slots; i < segment->slot_count && !status; i += slots) {
    const uint64_t *const words = segment->words + i * 2;
    prof_i_long_record record;
    const prof_i_parse_result parsed =
        prof_i_parse_record(words, segment->slot_count - i, segment->generation, &slots, &record);
    if (parsed == PROF_I_PARSED_EVENT && record.kind == PROF_I_KIND_STEP)
      status = visit_step(s, segment, words, &record);
  }
  return status;
}

int prof_i_trace_steps(const prof_trace *trace, prof_i_step_visit visit, void *user) {
  step_search search = {trace, trace->timeline.lines, visit, user};
  int status = 0;
  for (uint32_t i = 0; i < trace->segment_count && !status; i++)
    if (trace->segments[i].has_steps) status = visit_steps_of(&search, &trace->segments[i]);
  return status;
}
