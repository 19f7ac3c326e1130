/* Segments of plain scopes go to their groups without a span in between: the fast path of most
   captures. There are two variants of the same callbacks. One adds all scopes. The other looks at
   each scope's time as well, for a window or a least duration, and takes about 1 ns more.
   Called by aggregate_thread.c, which adds all other segments. */
#include "../base/port.h"
#include "../reader/walk_plain.h"
#include "aggregation.h"

/* Sets the total to total_ns. False: no memory. */
static inline bool add_plain_scope(prof_i_group *g, uint64_t total_ns, uint64_t duration_ns,
                                   uint64_t self_ns) {
  g->stats.outer_ns = total_ns;
  return prof_i_duration_stats_add(&g->stats, duration_ns, self_ns);
}

/* A pending span that is no plain scope. */
static inline bool is_other_span(const prof_i_span *span) {
  return __builtin_expect(span->record != NULL || span->kind != PROF_EVENT_SCOPE, 0);
}

static void emit_pending(prof_i_walker *w, prof_i_pending_span *pending) {
  w->around = pending - 1;
  prof_i_walker_emit(w, pending);
  w->around = NULL;
}

static inline void add_to_pending_group(prof_i_walker *w, const prof_i_pending_call *waited,
                                        const prof_i_pending_span *pending) {
  const prof_i_span *const span = &pending->span;
  prof_i_group *const g = waited->group;
  g->inner_count = waited->inner_count + pending->child_count + pending->deeper_count;
  g->child_count += pending->child_count;
  if (!add_plain_scope(g, waited->total_ns + span->duration_ns, span->duration_ns,
                       span->duration_ns - pending->children_ns))
    w->status = PROF_E_NO_MEMORY;
}

/* ---- all scopes ---- */

static inline void add_leaf(prof_i_walker *w, const prof_i_leaf *leaf,
                            prof_i_pending_span *around) {
  (void)around;
  prof_i_group *const g = prof_i_aggregation_site_group(w->user, leaf->site);
  if (!g || !add_plain_scope(g, g->stats.outer_ns + leaf->duration_ns, leaf->duration_ns,
                             leaf->duration_ns))
    w->status = PROF_E_NO_MEMORY;
}

static inline void add_pending(prof_i_walker *w, prof_i_pending_span *pending) {
  prof_i_aggregation *const a = w->user;
  if (is_other_span(&pending->span)) {
    emit_pending(w, pending);
    return;
  }
  if (__builtin_expect(w->status != 0, 0)) return; /* the pending call was not stored */
  add_to_pending_group(w, &a->pending_call[--a->pending_count], pending);
}

/* Fills all of the entry, because a later segment may be walked in another way. */
static inline void make_pending(prof_i_walker *w, const prof_i_leaf *leaf,
                                prof_i_pending_span *pending) {
  prof_i_aggregation *const a = w->user;
  prof_i_pending_init(leaf, pending);
  prof_i_group *const g = prof_i_aggregation_site_group(a, leaf->site);
  if (__builtin_expect(!g || !prof_i_aggregation_has_pending_room(a), 0)) {
    w->status = PROF_E_NO_MEMORY;
    return;
  }
  prof_i_pending_call_note(&a->pending_call[a->pending_count++], g, true);
}

static void add_plain(prof_i_walker *w, const prof_i_segment *segment) {
  prof_i_walk_plain(w, segment, add_leaf, add_pending, make_pending);
}

/* ---- scopes of some times ---- */

/* The group of a scope that began in the window. NULL: no memory. */
static inline prof_i_group *timed_group(prof_i_aggregation *a, const prof_i_leaf *leaf) {
  if (!prof_i_aggregation_passes_time(a, leaf->start_ns, leaf->duration_ns)) return &a->unwanted;
  return prof_i_aggregation_site_group(a, leaf->site);
}

/* A scope that began after the window, inside of one that began in it, is part of the time that
   shares refer to. */
static inline void add_outside(prof_i_aggregation *a, uint64_t start_ns, uint64_t self_ns) {
  if (start_ns >= a->options.from_ns && prof_i_aggregation_is_inside(a))
    a->unwanted.stats.self_ns += self_ns;
}

static inline void add_timed_leaf(prof_i_walker *w, const prof_i_leaf *leaf,
                                  prof_i_pending_span *around) {
  prof_i_aggregation *const a = w->user;
  (void)around;
  if (!prof_i_is_in_window(&a->options, leaf->start_ns)) {
    add_outside(a, leaf->start_ns, leaf->duration_ns);
    return;
  }
  prof_i_group *const g = timed_group(a, leaf);
  if (!g || !add_plain_scope(g, g->stats.outer_ns + leaf->duration_ns, leaf->duration_ns,
                             leaf->duration_ns))
    w->status = PROF_E_NO_MEMORY;
}

static inline void add_timed_pending(prof_i_walker *w, prof_i_pending_span *pending) {
  prof_i_aggregation *const a = w->user;
  const prof_i_span *const span = &pending->span;
  if (is_other_span(span)) {
    emit_pending(w, pending);
    return;
  }
  if (__builtin_expect(w->status != 0, 0)) return;
  const prof_i_pending_call *const waited = &a->pending_call[--a->pending_count];
  if (waited->group)
    add_to_pending_group(w, waited, pending);
  else
    add_outside(a, span->start_ns, span->duration_ns - pending->children_ns);
}

static inline void make_timed_pending(prof_i_walker *w, const prof_i_leaf *leaf,
                                      prof_i_pending_span *pending) {
  prof_i_aggregation *const a = w->user;
  const bool is_in_window = prof_i_is_in_window(&a->options, leaf->start_ns);
  prof_i_pending_init(leaf, pending);
  prof_i_group *const g = is_in_window ? timed_group(a, leaf) : NULL;
  if (__builtin_expect((is_in_window && !g) || !prof_i_aggregation_has_pending_room(a), 0)) {
    w->status = PROF_E_NO_MEMORY;
    return;
  }
  const bool is_inside = is_in_window || prof_i_aggregation_is_inside(a);
  prof_i_pending_call *const waits = &a->pending_call[a->pending_count++];
  if (g) {
    prof_i_pending_call_note(waits, g, is_inside);
    return;
  }
  waits->group = NULL;
  waits->is_step = waits->has_call = false;
  waits->is_inside = is_inside;
}

static void add_timed(prof_i_walker *w, const prof_i_segment *segment) {
  prof_i_walk_plain(w, segment, add_timed_leaf, add_timed_pending, make_timed_pending);
}

prof_i_walk_segment prof_i_aggregation_plain_walk(const prof_i_aggregation *a) {
  const bool is_timed = prof_i_has_window(&a->options) || (a->filter && a->filtered.min_ns);
  return is_timed ? add_timed : add_plain;
}
