/* See device_totals.h. */
#include "device_totals.h"

#include <stdlib.h>
#include <string.h>

#include "../format/parse.h"
#include "../reader/capture.h"

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

/* ---- what records tell of a side ---- */

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
