/* Walks segments by a sorted list of their records: a stable merge sort of runs. */
#include "walk_sorted.h"

#include <stdlib.h>
#include <string.h>

#include "../format/parse.h"

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
    const prof_i_parse_result sight =
        prof_i_parse_record(at, left, segment->generation, &slots, &record);
    if (sight != PROF_I_PARSED_PLAIN && sight != PROF_I_PARSED_EVENT) continue;
    const prof_i_interval when =
        sight == PROF_I_PARSED_PLAIN
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
    if (!prof_i_call_fit(w, items, *count)) return;
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
