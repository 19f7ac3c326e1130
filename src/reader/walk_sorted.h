/* Walks segments by a sorted list of their records: segments that are not in the order of ends, and
   segments with vendor calls, which may move. */
#ifndef PROF_READER_WALK_SORTED_H
#define PROF_READER_WALK_SORTED_H

#include "walker.h"

typedef struct prof_i_sorted_record {
  uint64_t start, end; /* ticks */
  const uint64_t *words;
} prof_i_sorted_record;

/* segments: `count` neighbours of one group. */
void prof_i_walk_sorted(prof_i_walker *walker, const prof_i_segment *segments, uint32_t count);

/* ---- call_fit.c ---- */

/* Fits a vendor call between the scopes of its thread. The call has another clock, so it may seem
   to cross the edge of a scope that it is inside of, or follows. The call is the last of the items,
   which are in the order of their ends. It moves to the nearer side of each edge. False: its end
   moved back, so other items may follow it now. */
bool prof_i_call_fit(const prof_i_walker *walker, prof_i_sorted_record *items, size_t count);

#endif
