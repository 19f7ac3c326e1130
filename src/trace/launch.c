/* See launch.h. */
#include "launch.h"

#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "parse.h"

typedef struct finder {
  const prof_trace *trace;
  prof_i_launches *launches;
  uint32_t stream;
  bool are_alone;
  uint64_t *held_ns; /* by depth, in lane 0: of records that stand right inside of what comes next */
  uint32_t held_room;
} finder;

static uint32_t thread_of(const prof_trace *trace, uint64_t serial) {
  const prof_i_trace_thread *const thread = prof_i_index_thread(trace, serial);
  return thread ? (uint32_t)(thread - trace->threads) : UINT32_MAX;
}

/* The walk has taken off a side the records that stand in it. What is to be taken off is what was launched in its scope, which may stand on another row, or beside it by what the clocks are wrong: so those are given back. False: no memory. */
static bool give_back(finder *f, const prof_i_span *span, uint32_t kind, uint64_t *self_ns) {
  if (span->lane != 0) return true;
  if (!prof_i_reach_place((void **)&f->held_ns, &f->held_room, span->depth + 1u, sizeof *f->held_ns)) return false;
  if (kind == 0) *self_ns += f->held_ns[span->depth + 1u];
  f->held_ns[span->depth + 1u] = 0;
  if (kind != 0) f->held_ns[span->depth] += span->duration_ns;
  return true;
}

static bool put(prof_i_launches *to, const prof_i_launch *launch) {
  if (!prof_i_make_room((void **)&to->items, &to->room, to->count, sizeof *to->items)) return false;
  to->items[to->count++] = *launch;
  return true;
}

static int visit(void *user, const prof_i_span *spans, size_t count) {
  finder *const f = user;
  for (const prof_i_span *span = spans; span != spans + count; span++) {
    prof_i_long record;
    prof_i_launch_words words;
    if (span->kind != PROF_EVENT_SCOPE || !span->record || !prof_i_event_read(span->record, &record) || !prof_i_launch_read(&record, &words)) continue;
    prof_i_launch launch = {.at_ns = prof_i_trace_ns(f->trace, words.ticks),
                            .start_ns = span->start_ns,
                            .duration_ns = span->duration_ns,
                            .self_ns = span->self_ns,
                            .record = span->record,
                            .site = span->site,
                            .thread = thread_of(f->trace, words.serial),
                            .stream = f->stream,
                            .lane = span->lane,
                            .kind = words.kind,
                            .is_shadow = f->are_alone && words.kind};
    f->launches->has_sides[f->stream] |= words.kind == 0;
    if (!give_back(f, span, words.kind, &launch.self_ns)) return PROF_E_NO_MEMORY;
    if ((!launch.is_shadow || launch.thread != UINT32_MAX) && !put(f->launches, &launch)) return PROF_E_NO_MEMORY;
    if (!launch.is_shadow) continue;
    launch.thread = UINT32_MAX;
    launch.is_shadow = false;
    if (!put(f->launches, &launch)) return PROF_E_NO_MEMORY;
  }
  return 0;
}

static int in_order(const void *x, const void *y) {
  const prof_i_launch *const a = x, *const b = y;
  if (a->thread != b->thread) return a->thread < b->thread ? -1 : 1;
  if (a->at_ns != b->at_ns) return a->at_ns < b->at_ns ? -1 : 1;
  if (a->start_ns != b->start_ns) return a->start_ns < b->start_ns ? -1 : 1;
  return ((uintptr_t)a->record > (uintptr_t)b->record) - ((uintptr_t)a->record < (uintptr_t)b->record);
}

int prof_i_launches_find(const prof_trace *trace, prof_i_launches *launches_out, bool are_alone) {
  finder f = {.trace = trace, .launches = launches_out, .are_alone = are_alone};
  int status = 0;
  *launches_out = (prof_i_launches){.has_sides = calloc(trace->thread_count + 1u, sizeof(bool))};
  if (!launches_out->has_sides) return PROF_E_NO_MEMORY;
  for (f.stream = 0; !status && f.stream < trace->thread_count; f.stream++) {
    if (f.held_room) memset(f.held_ns, 0, f.held_room * sizeof *f.held_ns);
    if (prof_i_is_stream(&trace->threads[f.stream])) status = prof_i_trace_walk(trace, f.stream, visit, &f);
  }
  free(f.held_ns);
  if (launches_out->count) qsort(launches_out->items, launches_out->count, sizeof *launches_out->items, in_order);
  return status;
}

void prof_i_launches_fini(prof_i_launches *launches) {
  free(launches->items);
  free(launches->has_sides);
}

uint32_t prof_i_launches_of(const prof_i_launches *launches, uint32_t thread, uint32_t *first_out) {
  uint32_t ends[2];
  for (uint32_t i = 0; i < 2; i++) {
    uint32_t low = 0, high = launches->count;
    while (low < high) {
      const uint32_t middle = low + (high - low) / 2;
      if (launches->items[middle].thread < (uint64_t)thread + i) low = middle + 1;
      else high = middle;
    }
    ends[i] = low;
  }
  *first_out = ends[0];
  return ends[1] - ends[0];
}
