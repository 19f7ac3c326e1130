/* Walks segments by a sorted list of their records: a stable merge sort of runs. */
#include "walker.h"

#include <stdlib.h>
#include <string.h>

#include "../format/parse.h"

/* ---- calls of vendors ---- */

/* Fits vendor calls between the scopes of their thread: call_fit().

       scope     [============]         ends during the call: the call is inside, or follows
       call                 [~~~]
       scope                  [=====]   begins during the call: the call precedes it, or is inside

   In a sound capture few scopes begin or end during a call. In a damaged one there may be any
   number. Then the call stays as it is. */

enum { ITEMS_MAX = 64 };

/* Whether this item may enclose a call, or be next to it. */
static bool item_is_around_call(const prof_i_walker *w, prof_i_sorted_record *item) {
  prof_i_long_record record;
  if ((item->words[1] & 15) == 0) return true;
  if (!prof_i_event_read(item->words, &record)) return false;
  if (record.kind == PROF_I_KIND_STEP)
    item->start = prof_i_step_start(&w->trace->catalog, item->end);
  return record.kind == PROF_I_KIND_STEP ||
         (record.kind == PROF_I_KIND_SCOPE && !(record.flags & PROF_I_FLAG_OTHER_THREAD));
}

/* How many items end after that moment, without the call. ITEMS_MAX: as many or more. */
static size_t count_items_after(const prof_i_sorted_record *items, size_t count, uint64_t ticks) {
  size_t behind = 0;
  while (behind < ITEMS_MAX && behind + 1 < count && items[count - 2 - behind].end > ticks)
    behind++;
  return behind;
}

/* Scopes already read are pending on the walker's stack, the latest begin on top. */
static void fit_call_to_begins(const prof_i_walker *w, const prof_i_sorted_record *items,
                               size_t count, prof_i_sorted_record *call) {
  const prof_i_lane *const lane = &w->lanes[0];
  for (uint32_t i = lane->count; i-- > 1 && lane->stack[i].start > call->start;) {
    const uint64_t begin = lane->stack[i].start;
    if (begin >= call->end) continue; /* begins after the call */
    if (call->end - begin >= begin - call->start ||
        count_items_after(items, count, begin) == ITEMS_MAX) {
      call->start = begin;
      return;
    }
    call->end = begin;
  }
}

/* Vendors do not call back on the calling thread. So a scope that seems to begin and end during a
   call, and takes most of it, encloses the call. */
static bool overlaps_mostly(const prof_i_sorted_record *scope, const prof_i_sorted_record *call) {
  return 2 * (scope->end - scope->start) > call->end - call->start;
}

/* Scopes that ended during the call are the items before it. Returns how many items before the call
   the innermost scope around it is. UINT32_MAX: no scope is around it. *is_all_out: false if there
   are too many items to read. */
static uint32_t fit_call_to_ends(const prof_i_walker *w, const prof_i_sorted_record *items,
                                 size_t count, prof_i_sorted_record *call, bool *is_all_out) {
  uint32_t around = UINT32_MAX, looked = 1;
  size_t i = count - 1;
  for (; i-- > 0 && items[i].end > call->start && looked <= ITEMS_MAX; looked++) {
    prof_i_sorted_record scope = items[i];
    if (!item_is_around_call(w, &scope) || scope.start >= call->end ||
        (scope.start >= call->start && !overlaps_mostly(&scope, call)))
      continue;
    if (scope.start > call->start) call->start = scope.start;
    if (call->end > scope.end && call->end - scope.end > scope.end - call->start) {
      call->start = scope.end;
      break;
    }
    if (call->end > scope.end) call->end = scope.end;
    around = looked;
  }
  *is_all_out = looked <= ITEMS_MAX;
  return around;
}

/* Fits a vendor call between the scopes of its thread. The call has another clock, so it may seem
   to cross the edge of a scope that it is inside of, or follows. The call is the last of the items,
   which are in the order of their ends. It moves to the nearer side of each edge. False: its end
   moved back, so other items may follow it now. */
static bool call_fit(const prof_i_walker *walker, prof_i_sorted_record *items, size_t count) {
  prof_i_sorted_record call = items[count - 1];
  bool is_all;
  fit_call_to_begins(walker, items, count, &call);
  const uint64_t end = call.end;
  const uint32_t around = fit_call_to_ends(walker, items, count, &call, &is_all);
  if (!is_all) return true; /* as recorded */
  const size_t places = around != UINT32_MAX          ? around
                        : end != items[count - 1].end ? count_items_after(items, count, end)
                                                      : 0;
  const bool is_moved = around != UINT32_MAX || call.end != items[count - 1].end;
  for (size_t i = 0; i < places; i++) items[count - 1 - i] = items[count - 2 - i];
  items[count - 1 - places] = call;
  return !is_moved;
}

/* ---- order ---- */

enum { RUN_RECORDS = 24 };

static void insertion_sort(prof_i_sorted_record *items, size_t count) {
  for (size_t i = 1; i < count; i++) {
    const prof_i_sorted_record moved = items[i];
    size_t at = i;
    for (; at > 0 && items[at - 1].end > moved.end; at--) items[at] = items[at - 1];
    items[at] = moved;
  }
}

/* Merges two neighbouring runs. spare gets the first one. */
static void merge_runs(prof_i_sorted_record *items, size_t first, size_t both,
                       prof_i_sorted_record *spare) {
  memcpy(spare, items, first * sizeof *items);
  size_t left = 0, right = first, to = 0;
  while (left < first && right < both)
    items[to++] = items[right].end < spare[left].end ? items[right++] : spare[left++];
  while (left < first) items[to++] = spare[left++];
}

/* Stable: of two that end at the same time, the one recorded later is the outer one. Nearly sorted
   records are the usual case: they take one pass, and one comparison at each seam. */
static void sort_records(prof_i_sorted_record *items, size_t count, prof_i_sorted_record *spare) {
  for (size_t at = 0; at < count; at += RUN_RECORDS)
    insertion_sort(items + at, count - at < RUN_RECORDS ? count - at : RUN_RECORDS);
  for (size_t width = RUN_RECORDS; width < count; width *= 2) {
    for (size_t at = 0; at + width < count; at += 2 * width) {
      if (items[at + width - 1].end <= items[at + width].end) continue;
      merge_runs(items + at, width, count - at < 2 * width ? count - at : 2 * width, spare);
    }
  }
}

/* The segment that has these words. Tries `last` first, because sorted records seldom change their
   segment. */
static const prof_i_segment *record_segment(const prof_i_segment *segments, uint32_t count,
                                            const prof_i_segment *last, const uint64_t *words) {
  const prof_i_segment *segment = last;
  for (uint32_t i = 0; i < count && !(words >= segment->words &&
                                      words < segment->words + segment->slot_count * 2ull);
       i++)
    segment = &segments[i];
  return segment;
}

static size_t collect_records(const prof_i_walker *w, const prof_i_segment *segment,
                              prof_i_sorted_record *items) {
  size_t count = 0;
  const uint64_t *at = segment->words;
  for (uint64_t left = segment->slot_count, slots; left > 0 && count < segment->event_count;
       at += slots * 2, left -= slots) {
    prof_i_long_record record;
    const prof_i_parse_result parsed =
        prof_i_parse_record(at, left, segment->generation, &slots, &record);
    if (parsed != PROF_I_PARSED_PLAIN && parsed != PROF_I_PARSED_EVENT) continue;
    const prof_i_interval when =
        parsed == PROF_I_PARSED_PLAIN
            ? prof_i_plain_interval_in(at, segment->start_ticks, segment->clock_offset)
            : prof_i_event_interval(at, &record, segment->start_ticks, segment->clock_offset);
    if (when.end >= w->trace->floor)
      items[count++] = (prof_i_sorted_record){when.start, when.end, at};
  }
  return count;
}

/* has_own_clock: calls have another clock than the thread's scopes. An imported trace has one
   clock, so its calls are not moved. */
static void put_last_record(prof_i_walker *w, prof_i_sorted_record *items, size_t *count,
                            bool has_own_clock) {
  const prof_i_sorted_record *const last = &items[*count - 1];
  if (!has_own_clock || (last->words[1] & 15) != 1 || !prof_i_is_call(last->words)) {
    prof_i_walker_put(w, last->words);
  } else {
    if (!call_fit(w, items, *count)) return;
    prof_i_walker_put_call(w, last->words, last->start, last->end);
  }
  --*count;
}

void prof_i_walk_sorted(prof_i_walker *walker, const prof_i_segment *segments,
                        uint32_t segment_count) {
  uint64_t room = 0;
  for (uint32_t i = 0; i < segment_count; i++) room += segments[i].event_count;
  prof_i_sorted_record *const items = malloc((room + 1) * sizeof *items);
  prof_i_sorted_record *const spare = malloc((room + 1) * sizeof *spare);
  if (!items || !spare) {
    walker->status = PROF_E_NO_MEMORY;
  } else {
    size_t count = 0;
    for (uint32_t i = 0; i < segment_count; i++)
      count += collect_records(walker, &segments[i], items + count);
    sort_records(items, count, spare);
    const prof_i_segment *segment = segments;
    bool has_own_clock = false;
    for (uint32_t i = 0; i < segment_count; i++) has_own_clock |= segments[i].is_side_written;
    while (count > 0 && !walker->status) {
      if (walker->trace->clock_epoch_count > 1)
        prof_i_walker_enter_segment(
            walker,
            segment = record_segment(segments, segment_count, segment, items[count - 1].words));
      put_last_record(walker, items, &count, has_own_clock);
    }
  }
  free(items);
  free(spare);
}
