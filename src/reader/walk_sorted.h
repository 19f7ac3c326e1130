/* Segments whose records do not stand in the order of their ends, or hold calls that may have to be
   moved: walked by a list of them that is sorted. */
#ifndef PROF_READER_SORTED_H
#define PROF_READER_SORTED_H

#include "walker.h"

typedef struct prof_i_sorted_record {
  uint64_t start, end; /* ticks */
  const uint64_t *words;
} prof_i_sorted_record;

/* segments: side by side, of one group. */
void prof_i_walk_sorted(prof_i_walker *walker, const prof_i_segment *segments, uint32_t count);

#endif
