/* See launch.h. */
#include "launch.h"

#include <stdlib.h>
#include <string.h>

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
   scopes: the device time of scopes takes off a GPU scope what was launched in it. That may be on
   another row, or cross its edge by the clocks' error. open: has room for all. */
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

/* ---- device time of scopes ---- */

int prof_i_device_totals_init(prof_i_device_totals *sums, const prof_trace *trace, bool are_alone) {
  sums->trace = trace;
  const int status = prof_i_launches_find(trace, &sums->launches, are_alone);
  if (status || !sums->launches.count) return status;
  sums->collected = malloc(sums->launches.count * sizeof *sums->collected);
  return sums->collected ? 0 : PROF_E_NO_MEMORY;
}

void prof_i_device_totals_fini(prof_i_device_totals *sums) {
  prof_i_launches_fini(&sums->launches);
  free(sums->collected);
  free(sums->pending);
  free(sums->unattributed);
  *sums = (prof_i_device_totals){0};
}

bool prof_i_device_totals_begin(prof_i_device_totals *sums, uint32_t thread) {
  const uint32_t count = prof_i_launches_of_thread(&sums->launches, thread, &sums->first);
  sums->next = sums->first + count;
  sums->collected_count = sums->unattributed_count = 0;
  if (sums->room) memset(sums->pending, 0, sums->room * sizeof *sums->pending);
  return count != 0;
}

/* ---- device times of a scope, from records ---- */

static bool add_unattributed(prof_i_device_totals *sums, const prof_i_launch *record,
                             uint32_t depth) {
  if (!prof_i_make_room((void **)&sums->unattributed, &sums->unattributed_room,
                        sums->unattributed_count, sizeof *sums->unattributed))
    return false;
  sums->unattributed[sums->unattributed_count++] =
      (prof_i_unattributed_time){record->self_ns, record->stream, depth};
  return true;
}

/* Records are on their stream's row. If the vendor numbers streams in another way, or by hardware
   queues, they are on a row without GPU scopes. */
static bool is_inside_row_launch(const prof_i_device_totals *sums, uint32_t row, uint32_t stream) {
  /* a stream's role is its device */
  return row == stream ||
         (!sums->launches.has_gpu_scopes[row] &&
          sums->trace->threads[row].thread_kind == sums->trace->threads[stream].thread_kind);
}

/* Takes off a GPU scope the time of records that were launched in its scope, where it is
   counted. */
static uint64_t attribute_time(prof_i_device_totals *sums, const prof_i_launch *side,
                               uint32_t depth) {
  uint64_t left_ns = side->self_ns;
  for (uint32_t i = sums->unattributed_count; i > 0 && sums->unattributed[i - 1].depth > depth;
       i--) {
    prof_i_unattributed_time *const it = &sums->unattributed[i - 1];
    if (!is_inside_row_launch(sums, it->stream, side->stream)) continue;
    left_ns -= it->ns < left_ns ? it->ns : left_ns;
    it->ns = 0;
  }
  return left_ns;
}

/* Time that was not taken off a GPU scope passes to the parent, added up by stream. An outermost
   scope drops it. */
static void pass_to_parent(prof_i_device_totals *sums, uint32_t depth, bool is_outermost) {
  uint32_t first = sums->unattributed_count, kept;
  while (first > 0 && sums->unattributed[first - 1].depth > depth) first--;
  kept = first;
  for (uint32_t i = first; i < sums->unattributed_count && !is_outermost; i++) {
    uint32_t same = first;
    if (sums->unattributed[i].ns == 0) continue;
    while (same < kept && sums->unattributed[same].stream != sums->unattributed[i].stream) same++;
    if (same < kept)
      sums->unattributed[same].ns += sums->unattributed[i].ns;
    else
      sums->unattributed[kept++] =
          (prof_i_unattributed_time){sums->unattributed[i].ns, sums->unattributed[i].stream, depth};
  }
  sums->unattributed_count = kept;
}

/* ---- scopes ---- */

/* Collects what was launched in the scope and in no inner one: from *first_out on, the earliest
   last. */
static void collect_launches(prof_i_device_totals *sums, const prof_i_span *span,
                             uint32_t *first_out) {
  const prof_i_launch *const items = sums->launches.items;
  const uint64_t end_ns = span->start_ns + span->duration_ns;
  while (sums->next > sums->first && items[sums->next - 1].at_ns >= span->start_ns)
    sums->collected[sums->collected_count++] = --sums->next;
  *first_out = sums->collected_count;
  while (*first_out > 0 && items[sums->collected[*first_out - 1]].at_ns <= end_ns) --*first_out;
}

/* Records first, because their time is taken off the GPU scopes. */
static bool add_up_launches(prof_i_device_totals *sums, uint32_t first, uint32_t depth,
                            prof_i_device_time *to) {
  for (uint32_t i = first; i < sums->collected_count; i++) {
    const prof_i_launch *const it = &sums->launches.items[sums->collected[i]];
    if (!it->kind) continue;
    if (!add_unattributed(sums, it, depth + 1)) return false;
    if (it->is_shadow) continue;
    to->self_ns += it->self_ns;
    to->count++;
  }
  for (uint32_t i = first; i < sums->collected_count; i++) {
    const prof_i_launch *const it = &sums->launches.items[sums->collected[i]];
    if (it->kind) continue;
    to->self_ns += attribute_time(sums, it, depth);
    to->count++;
  }
  return true;
}

bool prof_i_device_totals_end_scope(prof_i_device_totals *sums, const prof_i_span *span,
                                    prof_i_device_time *time_out) {
  const uint32_t were_uncovered = sums->unattributed_count;
  uint32_t first;
  *time_out = (prof_i_device_time){0};
  /* launches during it belong to the thread's other scopes */
  if (span->record && prof_i_is_async(span->record)) return true;
  if (span->record && (prof_i_is_call(span->record) || prof_i_is_skipped(span->record))) {
    prof_i_device_totals_end_step(sums, span);
    return true;
  }
  collect_launches(sums, span, &first);
  if (!add_up_launches(sums, first, span->lane == 0 ? span->depth : UINT16_MAX, time_out))
    return false;
  sums->collected_count = first;
  time_out->total_ns = time_out->each_ns = time_out->self_ns;
  if (span->lane != 0) { /* its parent is unknown */
    sums->unattributed_count = were_uncovered;
    return true;
  }
  pass_to_parent(sums, span->depth, span->depth == 0);
  if (!prof_i_make_room_at_index((void **)&sums->pending, &sums->room, span->depth + 1u,
                                 sizeof *sums->pending))
    return false;
  time_out->total_ns += sums->pending[span->depth + 1u];
  time_out->each_ns = time_out->total_ns;
  sums->pending[span->depth + 1u] = 0;
  sums->pending[span->depth] += time_out->total_ns;
  return true;
}

void prof_i_device_totals_end_step(prof_i_device_totals *sums, const prof_i_span *span) {
  if (span->lane != 0) return;
  pass_to_parent(sums, span->depth, span->depth == 0);
  if (span->depth + 1u >= sums->room) return;
  sums->pending[span->depth] += sums->pending[span->depth + 1u];
  sums->pending[span->depth + 1u] = 0;
}

const prof_i_launch *prof_i_device_totals_unscoped(prof_i_device_totals *sums) {
  while (sums->collected_count > 0 || sums->next > sums->first) {
    const prof_i_launch *const it =
        &sums->launches.items[sums->collected_count > 0 ? sums->collected[--sums->collected_count]
                                                        : --sums->next];
    if (!it->is_shadow) return it;
  }
  return NULL;
}
