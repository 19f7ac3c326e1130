/* The data of a pool's plot: used and allocated over time, the axis with its ticks, and the two
   peaks. The terminal plot and the SVG draw the same. */
#ifndef PROF_REPORT_MEMORY_CURVE_H
#define PROF_REPORT_MEMORY_CURVE_H

#include <prof/memory.h>

typedef struct prof_i_memory_mark {
  int64_t bytes;
  uint64_t ns;
  uint32_t column;
} prof_i_memory_mark;

typedef struct prof_i_memory_curve {
  uint32_t count; /* of columns */
  /* in each the highest, between low and high; one array, allocated behind used */
  int64_t *used, *allocated;
  uint64_t begin_ns, end_ns; /* begin before end */
  int64_t low, high;         /* of the axis, multiples of step; 0 lies between them */
  /* between its ticks: a power of two, so that they read well in KiB, MiB, GiB */
  int64_t step;
  prof_i_memory_mark used_peak, allocated_peak;
  uint32_t has_allocated; /* 0: a pool without blocks, as malloc()'s: allocated is not drawn */
} prof_i_memory_curve;

/* index below prof_memory_pool_count(). 0, or an error whose text is set; then there is nothing to
   free. */
int prof_i_memory_curve_init(prof_i_memory_curve *curve, const prof_memory *memory, uint32_t index,
                             uint32_t count);
void prof_i_memory_curve_fini(prof_i_memory_curve *curve);

/* 1, 2 or 5 times a power of ten, so that the span has at most this many ticks. */
uint64_t prof_i_memory_time_step(uint64_t span_ns, uint32_t ticks_max);
/* "1.5 MiB", "200ms", "0": as short as a tick needs it. */
void prof_i_memory_tick_bytes(char *to, size_t room, int64_t bytes);
void prof_i_memory_tick_time(char *to, size_t room, uint64_t ns);

#endif
