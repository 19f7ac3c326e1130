/* The tensor pool: reserves large blocks from the system, hands out pieces of them, joins what
   comes back. A runtime has one because activations live for microseconds, and the system's
   allocator would give their pages back each time. What is handed out may be memory of a device:
   the pool never looks into it. A block belongs to a stream, and so do its pieces. A returned piece
   may be handed out again while a device still works on it, because that stream's next work comes
   behind. Every call may come from any thread; one mutex guards all of a pool, and nothing but the
   source, the system's allocator and prof is called under it. Requests are level-2 scopes named
   "MemoryRequest". Pieces, blocks and collections are reported to prof under the mutex, so that
   they are reported in the order in which they happen. SPDX-License-Identifier: MIT */
#ifndef MINILM_POOL_H
#define MINILM_POOL_H

#include <prof/args.h>
#include <stddef.h>
#include <stdint.h>

enum { POOL_ALIGNMENT = 64 }; /* of every piece: a cache line, and the widest vector load */

typedef struct pool pool;

/* Where blocks come from. */
typedef struct pool_source {
  prof_device device;
  /* a multiple of POOL_ALIGNMENT, aligned to it; NULL: there is no more */
  void *(*reserve)(void *user, size_t bytes);
  void (*release)(void *user, void *memory);
  void *user;
} pool_source;

extern const pool_source pool_host_memory;

/* Memory whose user is done with it when it comes back: the host's. */
#define POOL_ANY_STREAM UINT64_MAX

/* What a piece is for. */
typedef struct pool_purpose {
  uint32_t tag;    /* prof_memory_tag()'s number, 0: none */
  uint64_t stream; /* whose work comes in order, or POOL_ANY_STREAM */
} pool_purpose;

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

/* block_bytes: the least that is reserved at once. source must outlive it. NULL: no memory. */
pool *pool_create(size_t block_bytes, const pool_source *source);

/* All pieces must have come back; NULL is ignored. */
void pool_destroy(pool *p);

/* NULL: bytes is 0 or more than the system has. The content is undefined. */
void *pool_acquire(pool *p, size_t bytes);

/* The same for a purpose. */
void *pool_acquire_for(pool *p, size_t bytes, pool_purpose purpose);

/* NULL is ignored; what the pool has not handed out, too. */
void pool_release(pool *p, void *memory);

/* A collection: gives blocks with nothing handed out back to the system; returns how many. */
size_t pool_trim(pool *p);

void pool_statistics_get(pool *p, pool_statistics *statistics_out);

/* A prof_memory_query: what of the pool is used and reserved now. */
int pool_query(void *p, uint64_t *used_bytes_out, uint64_t *reserved_bytes_out);

#endif
