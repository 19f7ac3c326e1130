/* See device_sums.h. */
#include "device_sums.h"

#include <stdlib.h>
#include <string.h>

#include "../format/parse.h"
#include "../reader/capture.h"

int prof_i_device_sums_init(prof_i_device_sums *sums, const prof_trace *trace, bool are_alone) {
  sums->trace = trace;
  const int status = prof_i_launches_find(trace, &sums->launches, are_alone);
  if (status || !sums->launches.count) return status;
  sums->met = malloc(sums->launches.count * sizeof *sums->met);
  return sums->met ? 0 : PROF_E_NO_MEMORY;
}

void prof_i_device_sums_fini(prof_i_device_sums *sums) {
  prof_i_launches_fini(&sums->launches);
  free(sums->met);
  free(sums->waiting);
  free(sums->uncovered);
  *sums = (prof_i_device_sums){0};
}

bool prof_i_device_sums_go(prof_i_device_sums *sums, uint32_t thread) {
  const uint32_t count = prof_i_launches_of(&sums->launches, thread, &sums->first);
  sums->next = sums->first + count;
  sums->met_count = sums->uncovered_count = 0;
  if (sums->room) memset(sums->waiting, 0, sums->room * sizeof *sums->waiting);
  return count != 0;
}

/* ---- what records tell of a side ---- */

static bool add_uncovered(prof_i_device_sums *sums, const prof_i_launch *record, uint32_t depth) {
  if (!prof_i_make_room((void **)&sums->uncovered, &sums->uncovered_room, sums->uncovered_count,
                        sizeof *sums->uncovered))
    return false;
  sums->uncovered[sums->uncovered_count++] =
      (prof_i_uncovered){record->self_ns, record->stream, depth};
  return true;
}

/* Records stand on their stream's row; or on one that no scope was ever put on, where their vendor
   numbers streams in another way, or knows the hardware's queues alone. */
static bool may_be_of(const prof_i_device_sums *sums, uint32_t row, uint32_t stream) {
  /* a stream's role is its device */
  return row == stream || (!sums->launches.has_sides[row] &&
                           sums->trace->threads[row].role == sums->trace->threads[stream].role);
}

/* Of a side that much which was launched in its scope: it is counted there. */
static uint64_t cover(prof_i_device_sums *sums, const prof_i_launch *side, uint32_t depth) {
  uint64_t left_ns = side->self_ns;
  for (uint32_t i = sums->uncovered_count; i > 0 && sums->uncovered[i - 1].depth > depth; i--) {
    prof_i_uncovered *const it = &sums->uncovered[i - 1];
    if (!may_be_of(sums, it->stream, side->stream)) continue;
    left_ns -= it->ns < left_ns ? it->ns : left_ns;
    it->ns = 0;
  }
  return left_ns;
}

/* What no side of the scope's has had is for the scope around it, a stream's in one; of an
   outermost one, nobody's. */
static void hand_up(prof_i_device_sums *sums, uint32_t depth, bool is_outermost) {
  uint32_t first = sums->uncovered_count, kept;
  while (first > 0 && sums->uncovered[first - 1].depth > depth) first--;
  kept = first;
  for (uint32_t i = first; i < sums->uncovered_count && !is_outermost; i++) {
    uint32_t same = first;
    if (sums->uncovered[i].ns == 0) continue;
    while (same < kept && sums->uncovered[same].stream != sums->uncovered[i].stream) same++;
    if (same < kept)
      sums->uncovered[same].ns += sums->uncovered[i].ns;
    else
      sums->uncovered[kept++] =
          (prof_i_uncovered){sums->uncovered[i].ns, sums->uncovered[i].stream, depth};
  }
  sums->uncovered_count = kept;
}

/* ---- scopes ---- */

/* What was launched in it and in nothing deeper: from *first on, the earliest last. */
static void meet(prof_i_device_sums *sums, const prof_i_span *span, uint32_t *first_out) {
  const prof_i_launch *const items = sums->launches.items;
  const uint64_t end_ns = span->start_ns + span->duration_ns;
  while (sums->next > sums->first && items[sums->next - 1].at_ns >= span->start_ns)
    sums->met[sums->met_count++] = --sums->next;
  *first_out = sums->met_count;
  while (*first_out > 0 && items[sums->met[*first_out - 1]].at_ns <= end_ns) --*first_out;
}

/* Records first: sides are told what is left of them. */
static bool add_up(prof_i_device_sums *sums, uint32_t first, uint32_t depth,
                   prof_i_device_time *to) {
  for (uint32_t i = first; i < sums->met_count; i++) {
    const prof_i_launch *const it = &sums->launches.items[sums->met[i]];
    if (!it->kind) continue;
    if (!add_uncovered(sums, it, depth + 1)) return false;
    if (it->is_shadow) continue;
    to->self_ns += it->self_ns;
    to->count++;
  }
  for (uint32_t i = first; i < sums->met_count; i++) {
    const prof_i_launch *const it = &sums->launches.items[sums->met[i]];
    if (it->kind) continue;
    to->self_ns += cover(sums, it, depth);
    to->count++;
  }
  return true;
}

bool prof_i_device_sums_take(prof_i_device_sums *sums, const prof_i_span *span,
                             prof_i_device_time *time_out) {
  const uint32_t were_uncovered = sums->uncovered_count;
  uint32_t first;
  *time_out = (prof_i_device_time){0};
  /* what was launched meanwhile is for the thread's own scopes */
  if (span->record && prof_i_is_async(span->record)) return true;
  if (span->record && (prof_i_is_call(span->record) || prof_i_is_skipped(span->record))) {
    prof_i_device_sums_pass(sums, span);
    return true;
  }
  meet(sums, span, &first);
  if (!add_up(sums, first, span->lane == 0 ? span->depth : UINT16_MAX, time_out)) return false;
  sums->met_count = first;
  time_out->total_ns = time_out->each_ns = time_out->self_ns;
  if (span->lane != 0) { /* what stands around it is not known */
    sums->uncovered_count = were_uncovered;
    return true;
  }
  hand_up(sums, span->depth, span->depth == 0);
  if (!prof_i_reach_place((void **)&sums->waiting, &sums->room, span->depth + 1u,
                          sizeof *sums->waiting))
    return false;
  time_out->total_ns += sums->waiting[span->depth + 1u];
  time_out->each_ns = time_out->total_ns;
  sums->waiting[span->depth + 1u] = 0;
  sums->waiting[span->depth] += time_out->total_ns;
  return true;
}

void prof_i_device_sums_pass(prof_i_device_sums *sums, const prof_i_span *span) {
  if (span->lane != 0) return;
  hand_up(sums, span->depth, span->depth == 0);
  if (span->depth + 1u >= sums->room) return;
  sums->waiting[span->depth] += sums->waiting[span->depth + 1u];
  sums->waiting[span->depth + 1u] = 0;
}

const prof_i_launch *prof_i_device_sums_left(prof_i_device_sums *sums) {
  while (sums->met_count > 0 || sums->next > sums->first) {
    const prof_i_launch *const it =
        &sums->launches.items[sums->met_count > 0 ? sums->met[--sums->met_count] : --sums->next];
    if (!it->is_shadow) return it;
  }
  return NULL;
}
