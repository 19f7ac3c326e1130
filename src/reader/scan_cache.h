/* Results of chunk scans, kept for the next trace of the process's own capture. A program that is
   profiled in cycles makes a trace in each cycle. Without the cache each trace would scan all that
   was ever recorded. Only finished chunks are kept. Their key distinguishes them from any later use
   of the same room. Called by scan.c and src/live/snapshot.c. */
#ifndef PROF_READER_SCAN_CACHE_H
#define PROF_READER_SCAN_CACHE_H

#include "capture.h"

enum { PROF_I_SCAN_SEGMENTS = 4 }; /* a chunk with more is scanned each time */

/* Padding is zero, because keys are compared byte by byte. */
typedef struct prof_i_scan_key {
  uint64_t start_ticks, start_ns; /* of the capture */
  uint64_t offset, bytes;         /* of the chunk */
  uint64_t sequence, generation, cursor, owner;
} prof_i_scan_key;

/* start_ticks, start_ns: of the capture's header. */
prof_i_scan_key prof_i_scan_key_of(uint64_t start_ticks, uint64_t start_ns, uint64_t offset,
                                   const prof_i_head *head);

/* Whether the chunk is cached. Then each of its records is finished. */
bool prof_i_scan_cache_has(const prof_i_scan_key *key);

/* The chunk's segments, with pointers into the chunk at that address. False: it is not cached. */
bool prof_i_scan_cache_get(const prof_i_scan_key *key, const unsigned char *chunk,
                           prof_i_segment segments_out[PROF_I_SCAN_SEGMENTS], uint32_t *count_out);

/* Caches them, if there is room. */
void prof_i_scan_cache_put(const prof_i_scan_key *key, const unsigned char *chunk,
                           const prof_i_segment *segments, uint32_t count);

#endif
