/* Makes the time line. In a segment of the clock the line goes through its pairs. After the last
   pair it continues at the segment's rate until the next segment begins. What happened between two
   segments is unknown. Time may stop there, but never goes back. */
#include "timeline.h"

#include <prof/status.h>
#include <stdlib.h>

/* Pairs that are closer than this, or closer than this multiple of their error, give a worse rate
   than their neighbours. */
static const uint64_t pair_gap_min_ns = 1000000, pair_gap_widths = 100;
static const uint64_t ns_max = 1ull << 62;
static const uint64_t ticks_max = 1ull << 60;
static const uint64_t rate_max = 1ull << 62;

/* Binary places of a rate. */
enum { RATE_SHIFT = 40 };

static uint64_t rate_between(uint64_t ns, uint64_t ticks) {
  const prof_i_u128 rate = ((prof_i_u128)ns << RATE_SHIFT) / ticks;
  return rate < rate_max ? (uint64_t)rate : rate_max;
}

static uint64_t nominal_rate(uint64_t ticks_hz, uint64_t *bad_count) {
  if (ticks_hz >= 100000 && ticks_hz <= 1000000000000) return rate_between(1000000000, ticks_hz);
  ++*bad_count;
  return 1ull << RATE_SHIFT;
}

static int pair_compare_ticks(const void *a, const void *b) {
  const prof_i_time_pair *const x = a, *const y = b;
  if (x->ticks != y->ticks) return x->ticks < y->ticks ? -1 : 1;
  if (x->ns != y->ns) return x->ns < y->ns ? -1 : 1;
  return (x->segment > y->segment) - (x->segment < y->segment);
}

static bool pair_is_near(const prof_i_time_pair *last, const prof_i_time_pair *pair) {
  const uint64_t gap = pair->ns - last->ns;
  return gap < pair_gap_min_ns || gap / pair_gap_widths < last->width_ns ||
         gap / pair_gap_widths < pair->width_ns;
}

/* Keeps the pairs that do not contradict each other, and returns their number. The first is the
   capture's start. */
static uint32_t keep_usable(prof_i_time_pair *pairs, uint32_t count, uint64_t *bad_count) {
  uint32_t kept = 1;
  for (uint32_t i = 1; i < count; i++) {
    prof_i_time_pair *const last = &pairs[kept - 1];
    if (pairs[i].ns < last->ns || pairs[i].ns >= ns_max || pairs[i].ticks >= ticks_max) {
      ++*bad_count;
      continue;
    }
    if (pairs[i].ticks == last->ticks) {
      if (pairs[i].width_ns > last->width_ns) last->width_ns = pairs[i].width_ns;
      continue;
    }
    if (pairs[i].segment == last->segment && pair_is_near(last, &pairs[i])) continue;
    pairs[kept++] = pairs[i];
  }
  return kept;
}

static uint32_t count_segments(const prof_i_time_pair *pairs, uint32_t count) {
  uint32_t segments = 1;
  for (uint32_t i = 1; i < count; i++) segments += pairs[i].segment != pairs[i - 1].segment;
  return segments;
}

/* Moves the rate up to 64 binary places, so that ns are the upper half of a product; what does not
   fit is left to the ticks. Exact: with RATE_SHIFT places ticks * rate is at most 2^(62 +
   RATE_SHIFT), so that a rate of more bits leaves the ticks that many fewer. */
static prof_i_time_line make_segment_line(uint64_t from, uint64_t ticks, uint64_t ns,
                                          uint64_t rate) {
  const uint64_t wanted = 64 - RATE_SHIFT, room = rate ? (uint64_t)__builtin_clzll(rate) : wanted;
  const uint64_t up = room < wanted ? room : wanted;
  return (prof_i_time_line){
      .from = from, .ticks = ticks, .ns = ns, .rate = rate << up, .shift = wanted - up};
}

/* Adds a line with this rate from the pair on, for at most so many ticks and up to limit_ns. A
   level line covers the rest of the ticks. Returns the number of lines: 1 or 2. */
static uint32_t put_lines(prof_i_time_line *lines, const prof_i_time_pair *at, uint64_t rate,
                          uint64_t ticks, uint64_t limit_ns) {
  const prof_i_u128 reach = rate ? ((prof_i_u128)(limit_ns - at->ns) << RATE_SHIFT) / rate : ticks;
  lines[0] = make_segment_line(at->ticks, reach < ticks ? (uint64_t)reach : ticks, at->ns, rate);
  if (lines[0].ticks == ticks) return 1;
  lines[1] = make_segment_line(at->ticks + lines[0].ticks, ticks - lines[0].ticks, limit_ns, 0);
  return 2;
}

/* The rate after the last pair of a segment. first: its first pair. */
static uint64_t rate_after(const prof_i_time_pair *first, const prof_i_time_pair *last,
                           uint64_t nominal) {
  return first != last ? rate_between(last->ns - first->ns, last->ticks - first->ticks) : nominal;
}

/* At most two lines a pair. */
static uint32_t make_lines(prof_i_time_line *lines, const prof_i_time_pair *pairs, uint32_t count,
                           uint64_t nominal) {
  uint32_t made = 0;
  const prof_i_time_pair *first = pairs; /* of the segment */
  for (uint32_t i = 0; i + 1 < count; i++) {
    const prof_i_time_pair *const at = &pairs[i], *const next = &pairs[i + 1];
    const bool goes_on = at->segment == next->segment;
    const uint64_t rate = goes_on ? rate_between(next->ns - at->ns, next->ticks - at->ticks)
                                  : rate_after(first, at, nominal);
    made += put_lines(lines + made, at, rate, next->ticks - at->ticks, next->ns);
    if (!goes_on) first = next;
  }
  const prof_i_time_pair *const last = &pairs[count - 1];
  return made + put_lines(lines + made, last, rate_after(first, last, nominal),
                          UINT64_MAX - last->ticks, ns_max);
}

static double pair_ns_between(const prof_i_time_pair *from, const prof_i_time_pair *to) {
  return (double)(to->ns - from->ns);
}
static double pair_ticks_between(const prof_i_time_pair *from, const prof_i_time_pair *to) {
  return (double)(to->ticks - from->ticks);
}

/* The distance of a pair from the line through the two pairs before it, less the error of the three
   readings. The rate may have changed at any time since the last pair. So the straight line between
   the two is wrong by this much at most. */
static uint64_t pair_bend_ns(const prof_i_time_pair *pair) {
  const prof_i_time_pair *const last = pair - 1, *const first = pair - 2;
  const double times = pair_ticks_between(last, pair) / pair_ticks_between(first, last);
  const double off = times * pair_ns_between(first, last) - pair_ns_between(last, pair),
               size = off < 0 ? -off : off;
  const double readings = times * (double)(first->width_ns + last->width_ns) +
                          (double)(last->width_ns + pair->width_ns);
  const double most = 0x1p60;
  return size - readings >= most ? (uint64_t)most
         : size > readings       ? (uint64_t)(size - readings)
                                 : 0;
}

static uint64_t worst_bend(const prof_i_time_pair *pairs, uint32_t count) {
  uint64_t worst = 0;
  for (uint32_t i = 2; i < count; i++) {
    if (pairs[i].segment != pairs[i - 2].segment || pairs[i - 1].segment != pairs[i].segment)
      continue;
    const uint64_t bend = pair_bend_ns(&pairs[i]);
    if (bend > worst) worst = bend;
  }
  return worst;
}

/* The accuracy of the time after the last pair. The recorder assumes that a rate varies by 200
   ppm. */
static void find_end_error(prof_i_timeline *timeline, const prof_i_time_pair *pairs,
                           uint32_t count) {
  const prof_i_time_pair *const last = &pairs[count - 1], *first = last;
  while (first > pairs && first[-1].segment == last->segment) first--;
  timeline->known_ns = last->ns;
  timeline->end_ppm = 10000;
  if (first == last) return;
  const uint64_t widths = first->width_ns / 2 + last->width_ns / 2,
                 ppm = widths / ((last->ns - first->ns) / 2000000 + 1);
  timeline->end_ppm = ppm < 10000 ? 200 + ppm : 10200;
}

int prof_i_timeline_init(prof_i_timeline *timeline, prof_i_time_pair *pairs, uint32_t pair_count,
                         uint64_t ticks_hz, uint64_t *bad_count) {
  const uint64_t nominal = nominal_rate(ticks_hz, bad_count);
  qsort(pairs, pair_count, sizeof *pairs, pair_compare_ticks);
  if (pairs[0].segment == UINT64_MAX && pair_count > 1)
    pairs[0].segment = pairs[1].segment; /* the header's, which names none */
  const uint32_t kept = keep_usable(pairs, pair_count, bad_count);
  timeline->error_ns = 0;
  for (uint32_t i = 0; i < kept; i++)
    if (pairs[i].width_ns > timeline->error_ns) timeline->error_ns = pairs[i].width_ns;
  timeline->bend_ns = worst_bend(pairs, kept);
  find_end_error(timeline, pairs, kept);
  timeline->segment_count = count_segments(pairs, kept);
  timeline->lines = malloc(2 * (size_t)kept * sizeof *timeline->lines);
  if (!timeline->lines) return PROF_E_NO_MEMORY;
  timeline->line_count = make_lines(timeline->lines, pairs, kept, nominal);
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
    if (timeline->lines[middle].from <= ticks)
      low = middle;
    else
      high = middle;
  }
  return &timeline->lines[low];
}

uint64_t prof_i_timeline_ticks_at(const prof_i_timeline *timeline, uint64_t ns) {
  uint64_t low = 0, high = ticks_max;
  const prof_i_time_line *line = timeline->lines;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (prof_i_timeline_ns(timeline, &line, middle) >= ns)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}
