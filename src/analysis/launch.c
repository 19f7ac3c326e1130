/* See launch.h. */
#include "launch.h"

#include <stdlib.h>

#include "../format/parse.h"
#include "../reader/capture.h"

typedef struct launch_search {
  const prof_trace *trace;
  prof_i_launches *launches;
  uint32_t stream;
  bool are_alone;
} launch_search;

static uint32_t thread_index(const prof_trace *trace, uint64_t serial) {
  const prof_i_trace_thread *const thread = prof_i_index_thread(trace, serial);
  return thread ? (uint32_t)(thread - trace->threads) : UINT32_MAX;
}

static bool launches_add(prof_i_launches *to, const prof_i_launch *launch) {
  if (!prof_i_make_room((void **)&to->items, &to->room, to->count, sizeof *to->items)) return false;
  to->items[to->count++] = *launch;
  return true;
}

static int visit_launches(void *user, const prof_i_span *spans, size_t count) {
  launch_search *const f = user;
  for (const prof_i_span *span = spans; span != spans + count; span++) {
    prof_i_long_record record;
    prof_i_launch_words words;
    if (span->kind != PROF_EVENT_SCOPE || !span->record ||
        !prof_i_event_read(span->record, &record) || !prof_i_launch_read(&record, &words))
      continue;
    if (words.kind == PROF_RECORD_ANNOTATION) continue; /* no work */
    prof_i_launch launch = {.at_ns = prof_i_trace_ns(f->trace, words.ticks),
                            .start_ns = span->start_ns,
                            .duration_ns = span->duration_ns,
                            .self_ns = span->duration_ns,
                            .record = span->record,
                            .site = span->site,
                            .thread = thread_index(f->trace, words.serial),
                            .stream = f->stream,
                            .lane = span->lane,
                            .kind = words.kind};
    f->launches->has_gpu_scopes[f->stream] |= words.kind == 0;
    if (!launches_add(f->launches, &launch)) return PROF_E_NO_MEMORY;
  }
  return 0;
}

/* ---- self times ---- */

/* Of two that begin at the same time the outer one is first. Of two equal ones, the one recorded
   later is the outer one. */
static int launch_compare_outer_first(const void *x, const void *y) {
  const prof_i_launch *const a = x, *const b = y;
  if (a->start_ns != b->start_ns) return a->start_ns < b->start_ns ? -1 : 1;
  if (a->duration_ns != b->duration_ns) return a->duration_ns > b->duration_ns ? -1 : 1;
  return ((uintptr_t)a->record < (uintptr_t)b->record) -
         ((uintptr_t)a->record > (uintptr_t)b->record);
}

static uint64_t launch_end_ns(const prof_i_launch *it) { return it->start_ns + it->duration_ns; }

/* A stream's GPU scopes nest in each other, and so do its records. But records do not nest in GPU
   scopes: device_totals.c takes off a GPU scope what was launched in it. That may be on another
   row, or cross its edge by the clocks' error. open: has room for all. */
static void settle_self_times(prof_i_launch *all, uint32_t count, bool are_records,
                              prof_i_launch **open) {
  uint32_t depth = 0;
  for (prof_i_launch *it = all; it != all + count; it++) {
    if ((it->kind != 0) != are_records) continue;
    while (depth > 0 && launch_end_ns(open[depth - 1]) <= it->start_ns) depth--;
    prof_i_launch *const around =
        depth > 0 && launch_end_ns(open[depth - 1]) >= launch_end_ns(it) ? open[depth - 1] : NULL;
    if (around)
      around->self_ns -= it->duration_ns < around->self_ns ? it->duration_ns : around->self_ns;
    open[depth++] = it;
  }
}

/* Launches with a kind lose their thread. A shadow keeps it. */
static bool set_apart_kinds(prof_i_launches *launches, uint32_t first) {
  for (uint32_t i = first, count = launches->count; i < count; i++) {
    if (launches->items[i].kind == 0) continue;
    prof_i_launch shadow = launches->items[i];
    shadow.is_shadow = true;
    launches->items[i].thread = UINT32_MAX;
    if (shadow.thread != UINT32_MAX && !launches_add(launches, &shadow)) return false;
  }
  return true;
}

/* Of the stream whose first it is. */
static int settle_stream_self_times(launch_search *f, uint32_t first) {
  const uint32_t count = f->launches->count - first;
  if (count == 0) return 0; /* there may be no items at all */
  prof_i_launch *const all = f->launches->items + first;
  prof_i_launch **const open = malloc(count * sizeof(prof_i_launch *));
  if (!open) return PROF_E_NO_MEMORY;
  qsort(all, count, sizeof *all, launch_compare_outer_first);
  settle_self_times(all, count, false, open);
  settle_self_times(all, count, true, open);
  free(open);
  return !f->are_alone || set_apart_kinds(f->launches, first) ? 0 : PROF_E_NO_MEMORY;
}

static int launch_compare(const void *x, const void *y) {
  const prof_i_launch *const a = x, *const b = y;
  if (a->thread != b->thread) return a->thread < b->thread ? -1 : 1;
  if (a->at_ns != b->at_ns) return a->at_ns < b->at_ns ? -1 : 1;
  if (a->start_ns != b->start_ns) return a->start_ns < b->start_ns ? -1 : 1;
  return ((uintptr_t)a->record > (uintptr_t)b->record) -
         ((uintptr_t)a->record < (uintptr_t)b->record);
}

int prof_i_launches_find(const prof_trace *trace, prof_i_launches *launches_out, bool are_alone) {
  launch_search f = {.trace = trace, .launches = launches_out, .are_alone = are_alone};
  int status = 0;
  *launches_out =
      (prof_i_launches){.has_gpu_scopes = calloc(trace->thread_count + 1u, sizeof(bool))};
  if (!launches_out->has_gpu_scopes) return PROF_E_NO_MEMORY;
  for (f.stream = 0; !status && f.stream < trace->thread_count; f.stream++) {
    const uint32_t first = launches_out->count;
    if (!prof_i_thread_is_stream(&trace->threads[f.stream])) continue;
    status = prof_i_trace_walk(trace, f.stream, visit_launches, &f);
    if (!status) status = settle_stream_self_times(&f, first);
  }
  if (launches_out->count)
    qsort(launches_out->items, launches_out->count, sizeof *launches_out->items, launch_compare);
  return status;
}

void prof_i_launches_fini(prof_i_launches *launches) {
  free(launches->items);
  free(launches->has_gpu_scopes);
}

uint32_t prof_i_launches_of_thread(const prof_i_launches *launches, uint32_t thread,
                                   uint32_t *first_out) {
  uint32_t ends[2];
  for (uint32_t i = 0; i < 2; i++) {
    uint32_t low = 0, high = launches->count;
    while (low < high) {
      const uint32_t middle = low + (high - low) / 2;
      if (launches->items[middle].thread < (uint64_t)thread + i)
        low = middle + 1;
      else
        high = middle;
    }
    ends[i] = low;
  }
  *first_out = ends[0];
  return ends[1] - ends[0];
}
