/* See pool.h. A block is cut into pieces that lie side by side, each with a header in front:

     block | header | memory ... | header | memory ... | header | memory ... |
             piece 0 ---next---->  piece 1 ---next---->  piece 2 ---> NULL

   A request takes the smallest free piece that fits and cuts off the rest; a release joins the free neighbours. The walk
   over all pieces is fine for the few dozen that a program's registers are. SPDX-License-Identifier: MIT */
#include "pool.h"

#include <prof/memory.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdlib.h>

typedef struct piece {
  struct piece *next, *previous; /* neighbours in memory; NULL at the block's ends */
  size_t bytes;                  /* behind the header */
  bool is_free;
} piece;

typedef struct block {
  struct block *next;
  size_t bytes;
} block;

enum { HEADER_BYTES = POOL_ALIGNMENT };
_Static_assert(sizeof(piece) <= HEADER_BYTES && sizeof(block) <= HEADER_BYTES, "headers fit in front of aligned memory");

struct pool {
  pthread_mutex_t mutex; /* guards all below */
  block *blocks;
  size_t block_bytes;
  pool_statistics statistics;
  prof_pool *profile; /* what the same is told to; NULL: nobody. The pool's own account above does not depend on it */
};

static piece *first_piece(block *b) { return (piece *)(void *)((char *)b + HEADER_BYTES); }

static void *memory_of(piece *p) { return (char *)p + HEADER_BYTES; }

static piece *find_smallest_fit(pool *p, size_t bytes) {
  piece *best = NULL;
  for (block *b = p->blocks; b != NULL; b = b->next)
    for (piece *at = first_piece(b); at != NULL; at = at->next)
      if (at->is_free && at->bytes >= bytes && (best == NULL || at->bytes < best->bytes)) best = at;
  return best;
}

static void raise_to(uint64_t *peak, uint64_t value) {
  if (value > *peak) *peak = value;
}

/* One new block that holds at least one piece of so many bytes; NULL: the system has none. */
static piece *reserve(pool *p, size_t bytes) {
  const size_t needed = bytes + 2 * HEADER_BYTES;
  const size_t total = needed > p->block_bytes ? needed : p->block_bytes;
  block *b = NULL;
  WITH_BASE_PROFILER_LEVEL(2, PROF_HOST, "MemoryReserve", "memory", PROF_ARGS("bytes", total),
                           { b = aligned_alloc(POOL_ALIGNMENT, total); });
  if (b == NULL) return NULL;
  *b = (block){p->blocks, total};
  p->blocks = b;
  p->statistics.reserved_bytes += total;
  raise_to(&p->statistics.reserved_peak_bytes, p->statistics.reserved_bytes);
  p->statistics.reserve_count++;
  prof_memory_reserve(p->profile, b, total);
  piece *whole = first_piece(b);
  *whole = (piece){NULL, NULL, total - 2 * HEADER_BYTES, true};
  return whole;
}

/* Cuts what the request does not need off into a free piece, if it is worth a header. */
static void cut(piece *p, size_t bytes) {
  if (p->bytes - bytes < HEADER_BYTES + POOL_ALIGNMENT) return;
  piece *rest = (piece *)(void *)((char *)memory_of(p) + bytes);
  *rest = (piece){p->next, p, p->bytes - bytes - HEADER_BYTES, true};
  if (rest->next != NULL) rest->next->previous = rest;
  p->next = rest;
  p->bytes = bytes;
}

static void join_with_next(piece *p) {
  piece *next = p->next;
  if (next == NULL || !p->is_free || !next->is_free) return;
  p->bytes += HEADER_BYTES + next->bytes;
  p->next = next->next;
  if (p->next != NULL) p->next->previous = p;
}

static piece *acquire_locked(pool *p, size_t bytes) {
  p->statistics.request_count++;
  /* Half of the address space is refused before rounding up could overflow. */
  const size_t rounded = (bytes + POOL_ALIGNMENT - 1) & ~(size_t)(POOL_ALIGNMENT - 1);
  piece *found = NULL;
  if (bytes > 0 && bytes <= SIZE_MAX / 2) {
    found = find_smallest_fit(p, rounded);
    if (found == NULL) found = reserve(p, rounded);
  }
  if (found == NULL) {
    p->statistics.refused_count++;
    return NULL;
  }
  cut(found, rounded);
  found->is_free = false;
  p->statistics.used_bytes += found->bytes;
  raise_to(&p->statistics.used_peak_bytes, p->statistics.used_bytes);
  return found;
}

pool *pool_create(size_t block_bytes) {
  pool *p = calloc(1, sizeof *p);
  if (p == NULL) return NULL;
  p->block_bytes = (block_bytes + POOL_ALIGNMENT - 1) & ~(size_t)(POOL_ALIGNMENT - 1);
  if (pthread_mutex_init(&p->mutex, NULL) != 0) {
    free(p);
    return NULL;
  }
  /* Without it the pool works, unprofiled. */
  const prof_pool_options options = {.size = sizeof options, .name = "tensors", .query = pool_query, .user = p};
  if (prof_pool_create(&options, &p->profile) != PROF_OK) p->profile = NULL;
  return p;
}

void pool_destroy(pool *p) {
  if (p == NULL) return;
  while (p->blocks != NULL) {
    block *next = p->blocks->next;
    prof_memory_release(p->profile, p->blocks, p->blocks->bytes);
    free(p->blocks);
    p->blocks = next;
  }
  prof_pool_destroy(p->profile);
  pthread_mutex_destroy(&p->mutex);
  free(p);
}

void *pool_acquire(pool *p, size_t bytes) { return pool_acquire_for(p, bytes, 0); }

/* The piece is told behind the scope, still under the mutex: so the scope that it is counted to is the caller's. */
void *pool_acquire_for(pool *p, size_t bytes, uint32_t tag) {
  piece *found = NULL;
  WITH_BASE_PROFILER_LEVEL(2, PROF_HOST, "MemoryRequest", "memory", PROF_ARGS("bytes", bytes), {
    pthread_mutex_lock(&p->mutex);
    found = acquire_locked(p, bytes);
  });
  void *memory = found == NULL ? NULL : memory_of(found);
  if (found != NULL) prof_memory_alloc_for(p->profile, memory, bytes, found->bytes, tag, PROF_NO_STREAM);
  pthread_mutex_unlock(&p->mutex);
  if (found == NULL && bytes > 0) prof_memory_oom(PROF_HOST, bytes);
  return memory;
}

void pool_release(pool *p, void *memory) {
  if (memory == NULL) return;
  pthread_mutex_lock(&p->mutex);
  piece *back = (piece *)(void *)((char *)memory - HEADER_BYTES);
  prof_memory_free(p->profile, memory, back->bytes);
  back->is_free = true;
  p->statistics.used_bytes -= back->bytes;
  p->statistics.release_count++;
  join_with_next(back);
  if (back->previous != NULL) join_with_next(back->previous);
  pthread_mutex_unlock(&p->mutex);
}

size_t pool_trim(pool *p) {
  size_t count = 0;
  pthread_mutex_lock(&p->mutex);
  const uint64_t begun = prof_memory_collect_begin(p->profile);
  for (block **link = &p->blocks; *link != NULL;) {
    block *b = *link;
    piece *whole = first_piece(b);
    if (!whole->is_free || whole->next != NULL) {
      link = &b->next;
      continue;
    }
    *link = b->next;
    p->statistics.reserved_bytes -= b->bytes;
    prof_memory_release(p->profile, b, b->bytes);
    free(b);
    count++;
  }
  prof_memory_collect_end(p->profile, begun);
  pthread_mutex_unlock(&p->mutex);
  return count;
}

void pool_statistics_get(pool *p, pool_statistics *statistics_out) {
  pthread_mutex_lock(&p->mutex);
  *statistics_out = p->statistics;
  pthread_mutex_unlock(&p->mutex);
}

int pool_query(void *p, uint64_t *used_bytes_out, uint64_t *reserved_bytes_out) {
  pool_statistics s;
  pool_statistics_get(p, &s);
  *used_bytes_out = s.used_bytes;
  *reserved_bytes_out = s.reserved_bytes;
  return 0;
}
