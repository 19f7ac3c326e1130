/* The tensor pool: reserves large blocks from the system, hands out pieces of them, joins what comes back. A runtime has
   one because activations live for microseconds, and the system's allocator would give their pages back each time.
   Every call may come from any thread; one mutex guards all of a pool, and nothing but the system's allocator and prof is
   called under it. Requests are level-2 scopes named "MemoryRequest"; pieces, blocks and collections are told to prof under the
   mutex, so that the order told is the order done. SPDX-License-Identifier: MIT */
#ifndef MINILM_POOL_H
#define MINILM_POOL_H

#include <stddef.h>
#include <stdint.h>

enum { POOL_ALIGNMENT = 64 }; /* of every piece: a cache line, and the widest vector load */

typedef struct pool pool;

typedef struct pool_statistics {
  uint64_t used_bytes; /* in pieces handed out, rounded up to the alignment */
  uint64_t used_peak_bytes;
  uint64_t reserved_bytes; /* taken from the system */
  uint64_t reserved_peak_bytes;
  uint64_t request_count;
  uint64_t release_count;
  uint64_t reserve_count; /* requests that had to go to the system */
  uint64_t refused_count;
} pool_statistics;

/* block_bytes: the least that is reserved at once. NULL: no memory. */
pool *pool_create(size_t block_bytes);

/* All pieces must have come back; NULL is ignored. */
void pool_destroy(pool *p);

/* NULL: bytes is 0 or more than the system has. The content is undefined. */
void *pool_acquire(pool *p, size_t bytes);

/* The same for a purpose: prof_memory_tag()'s number, 0: none. */
void *pool_acquire_for(pool *p, size_t bytes, uint32_t tag);

/* NULL is ignored. */
void pool_release(pool *p, void *memory);

/* A collection: gives blocks with nothing handed out back to the system; returns how many. */
size_t pool_trim(pool *p);

void pool_statistics_get(pool *p, pool_statistics *statistics_out);

/* A prof_memory_query: what of the pool is used and reserved now. */
int pool_query(void *p, uint64_t *used_bytes_out, uint64_t *reserved_bytes_out);

#endif
