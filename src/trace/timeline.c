/* See timeline.h. Inside a segment of the clock the line goes through its pairs; behind its last pair it goes on at the segment's
   own rate, until the next segment begins: what happened between the two is not known, and time may stand there, never run back. */
#include "timeline.h"

#include <prof/status.h>
#include <stdlib.h>

/* Pairs nearer than this tell a rate worse than their neighbours do: a reading is some 50 ns wide. */
static const uint64_t pair_gap_min_ns = 1000000;
static const uint64_t ns_max = 1ull << 62;
static const uint64_t ticks_max = 1ull << 60;
static const uint64_t rate_max = 1ull << 62;

static uint64_t rate_between(uint64_t ns, uint64_t ticks) {
  const prof_i_u128 rate = ((prof_i_u128)ns << PROF_I_RATE_SHIFT) / ticks;
  return rate < rate_max ? (uint64_t)rate : rate_max;
}

static uint64_t nominal_rate(uint64_t ticks_hz, uint64_t *bad_count) {
  if (ticks_hz >= 100000 && ticks_hz <= 1000000000000) return rate_between(1000000000, ticks_hz);
  ++*bad_count;
  return 1ull << PROF_I_RATE_SHIFT;
}

static int by_ticks(const void *a, const void *b) {
  const prof_i_time_pair *const x = a, *const y = b;
  if (x->ticks != y->ticks) return x->ticks < y->ticks ? -1 : 1;
  if (x->ns != y->ns) return x->ns < y->ns ? -1 : 1;
  return (x->segment > y->segment) - (x->segment < y->segment);
}

/* Keeps those that may stand one behind the other; returns their number. The first one is the capture's start. */
static uint32_t keep_usable(prof_i_time_pair *pairs, uint32_t count, uint64_t *bad_count) {
  uint32_t kept = 1;
  for (uint32_t i = 1; i < count; i++) {
    const prof_i_time_pair *const last = &pairs[kept - 1];
    if (pairs[i].ns < last->ns || pairs[i].ns >= ns_max || pairs[i].ticks >= ticks_max) {
      ++*bad_count;
      continue;
    }
    if (pairs[i].ticks == last->ticks) continue;
    if (pairs[i].segment == last->segment && pairs[i].ns - last->ns < pair_gap_min_ns) continue;
    pairs[kept++] = pairs[i];
  }
  return kept;
}

static uint32_t count_segments(const prof_i_time_pair *pairs, uint32_t count) {
  uint32_t segments = 1;
  for (uint32_t i = 1; i < count; i++) segments += pairs[i].segment != pairs[i - 1].segment;
  return segments;
}

/* The line from one pair to the next; first is its segment's first pair. */
static prof_i_time_line line_between(const prof_i_time_pair *first, const prof_i_time_pair *at, const prof_i_time_pair *next,
                                     uint64_t nominal) {
  prof_i_time_line line = {at->ticks, next->ticks - at->ticks, at->ns, 0, next->ns};
  if (at->segment == next->segment) {
    line.rate = rate_between(next->ns - at->ns, line.ticks);
    return line;
  }
  line.rate = first != at ? rate_between(at->ns - first->ns, at->ticks - first->ticks) : nominal;
  if (((prof_i_u128)line.ticks * line.rate >> PROF_I_RATE_SHIFT) > ns_max) line.rate = rate_between(next->ns - at->ns, line.ticks);
  return line;
}

int prof_i_timeline_init(prof_i_timeline *timeline, prof_i_time_pair *pairs, uint32_t pair_count, uint64_t ticks_hz,
                         uint64_t *bad_count) {
  const uint64_t nominal = nominal_rate(ticks_hz, bad_count);
  qsort(pairs, pair_count, sizeof *pairs, by_ticks);
  if (pairs[0].segment == UINT64_MAX && pair_count > 1) pairs[0].segment = pairs[1].segment; /* the header's, which names none */
  timeline->error_ns = 0;
  for (uint32_t i = 0; i < pair_count; i++)
    if (pairs[i].width_ns > timeline->error_ns) timeline->error_ns = pairs[i].width_ns;
  const uint32_t kept = keep_usable(pairs, pair_count, bad_count);
  timeline->segment_count = count_segments(pairs, kept);
  prof_i_time_line *const lines = malloc(((size_t)kept + 1) * sizeof *lines);
  if (!lines) return PROF_E_NO_MEMORY;
  uint32_t first = 0;
  for (uint32_t i = 0; i + 1 < kept; i++) {
    if (pairs[i].segment != pairs[first].segment) first = i;
    lines[i] = line_between(&pairs[first], &pairs[i], &pairs[i + 1], nominal);
  }
  /* Behind the last pair: on for as long as the nanoseconds fit, then level. */
  const prof_i_time_pair *const last = &pairs[kept - 1];
  if (last->segment != pairs[first].segment) first = kept - 1;
  const uint64_t rate = first != kept - 1 ? rate_between(last->ns - pairs[first].ns, last->ticks - pairs[first].ticks) : nominal;
  const prof_i_u128 reach = rate ? ((prof_i_u128)(ns_max - last->ns) << PROF_I_RATE_SHIFT) / rate : ticks_max;
  const uint64_t ticks = reach < ticks_max ? (uint64_t)reach : ticks_max;
  lines[kept - 1] = (prof_i_time_line){last->ticks, ticks, last->ns, rate, ns_max};
  const uint64_t end_ns = last->ns + (uint64_t)((prof_i_u128)ticks * rate >> PROF_I_RATE_SHIFT);
  lines[kept] = (prof_i_time_line){last->ticks + ticks, UINT64_MAX - last->ticks - ticks, end_ns, 0, ns_max};
  timeline->lines = lines;
  timeline->line_count = kept + 1;
  return 0;
}

void prof_i_timeline_fini(prof_i_timeline *timeline) {
  free(timeline->lines);
  timeline->lines = NULL;
}

const prof_i_time_line *prof_i_timeline_find(const prof_i_timeline *timeline, uint64_t ticks) {
  uint32_t low = 0, high = timeline->line_count;
  while (high - low > 1) {
    const uint32_t middle = low + (high - low) / 2;
    if (timeline->lines[middle].from <= ticks) low = middle;
    else high = middle;
  }
  return &timeline->lines[low];
}

uint64_t prof_i_timeline_ticks_at(const prof_i_timeline *timeline, uint64_t ns) {
  uint64_t low = 0, high = ticks_max;
  const prof_i_time_line *line = timeline->lines;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (prof_i_timeline_ns(timeline, &line, middle) >= ns) high = middle;
    else low = middle + 1;
  }
  return low;
}
