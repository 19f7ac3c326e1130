/* From ticks to nanoseconds, by consecutive straight lines through the recorder's clock pairs. Time
   never goes back. Both count from the capture's start. */
#ifndef PROF_READER_TIMELINE_H
#define PROF_READER_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct prof_i_time_pair {
  uint64_t ticks;
  uint64_t ns;
  uint64_t width_ns; /* the largest time between the two readings */
  uint64_t segment;
} prof_i_time_pair;

typedef struct prof_i_time_line {
  uint64_t from, ticks; /* holds for `ticks` ticks from there */
  uint64_t ns;          /* at from */
  /* ns for one tick, << (64 - shift). The line's end is at most the next line's begin, and fits in
     63 bits */
  uint64_t rate;
  uint64_t shift; /* 0 if a tick is less than 1 ns, else as much as the rate needs */
} prof_i_time_line;

typedef struct prof_i_timeline {
  prof_i_time_line *lines; /* cover 0..UINT64_MAX */
  uint32_t line_count;
  uint32_t segment_count;
  uint64_t error_ns; /* of the pairs, between the first and the last */
  uint64_t bend_ns;  /* further error of the lines between them */
  uint64_t known_ns; /* of the last pair */
  uint64_t end_ppm;  /* error of the rate after it */
} prof_i_timeline;

/* Sorts the pairs and makes the lines. ticks_hz is used if there is only one pair. Pairs that
   contradict others are left out and counted in *bad_count. 0 or PROF_E_NO_MEMORY. */
int prof_i_timeline_init(prof_i_timeline *timeline, prof_i_time_pair *pairs, uint32_t pair_count,
                         uint64_t ticks_hz, uint64_t *bad_count);
void prof_i_timeline_fini(prof_i_timeline *timeline);

const prof_i_time_line *prof_i_timeline_find(const prof_i_timeline *timeline, uint64_t ticks);

/* The lowest ticks that are at that time or after it. */
uint64_t prof_i_timeline_ticks_at(const prof_i_timeline *timeline, uint64_t ns);

__extension__ typedef unsigned __int128 prof_i_u128;

/* Since the line's ns. The upper half of one multiplication. */
static inline uint64_t prof_i_time_line_ns(const prof_i_time_line *line, uint64_t ticks) {
  return (uint64_t)((prof_i_u128)(ticks << line->shift) * line->rate >> 64);
}

/* *line: the line used last, which is tried first. */
static inline uint64_t prof_i_timeline_ns(const prof_i_timeline *timeline,
                                          const prof_i_time_line **line, uint64_t ticks) {
  const prof_i_time_line *l = *line;
  if (__builtin_expect(ticks - l->from >= l->ticks, 0))
    *line = l = prof_i_timeline_find(timeline, ticks);
  return l->ns + prof_i_time_line_ns(l, ticks - l->from);
}

/* Converts start and end. Returns the duration. Fast path: both are on the line used last. */
static inline uint64_t prof_i_timeline_span(const prof_i_timeline *timeline,
                                            const prof_i_time_line **line, uint64_t start,
                                            uint64_t end, uint64_t *start_ns_out) {
  const prof_i_time_line *const l = *line;
  const uint64_t from = start - l->from, to = end - l->from;
  if (__builtin_expect(from >= l->ticks || to >= l->ticks, 0)) {
    *start_ns_out = prof_i_timeline_ns(timeline, line, start);
    return prof_i_timeline_ns(timeline, line, end) - *start_ns_out;
  }
  const uint64_t start_ns = prof_i_time_line_ns(l, from);
  *start_ns_out = l->ns + start_ns;
  return prof_i_time_line_ns(l, to) - start_ns;
}

#endif
