/* What full chunks hold, counted once: prof_health() need not walk gigabytes of records, or read
   them back from a file, at each call. See count_cache.c. */
#ifndef PROF_CORE_BUFFER_COUNT_CACHE_H
#define PROF_CORE_BUFFER_COUNT_CACHE_H

#include <stdbool.h>
#include <stdint.h>

/* Of one chunk, while its sequence is this one. The count is live while the capture's last clear is
   this one. It is cleared after a clear that is not before latest_end. */
typedef struct prof_i_counted_chunk {
  uint64_t sequence; /* 0: nothing is known */
  uint64_t clear_ticks;
  uint64_t live;       /* events, none of which was cleared */
  uint64_t latest_end; /* ticks: each of them had ended by then */
} prof_i_counted_chunk;

/* Takes the table, for this arena. False: another thread has it, or there is no memory; then
   everything is walked. Any thread, no lock. */
bool prof_i_count_cache_acquire(uint64_t arena, uint64_t cap_bytes);
void prof_i_count_cache_release(void);

/* The place of the chunk at this offset, of that size; NULL: it has none, being small. The caller
   has the table. */
prof_i_counted_chunk *prof_i_count_cache_find(uint64_t offset, uint64_t bytes);

#endif
