/* See pool.h. A block is cut into pieces that lie side by side; what is known of them lies beside,
   because the memory may be a device's:

     block --first--> piece 0 --next--> piece 1 --next--> piece 2 --> NULL
     memory           | ................ | ............... | ....... |

   A request takes the smallest free piece that fits and cuts off the rest; a release joins the free
   neighbours. The walk over all pieces is fine for the few dozen that a program's registers are.
   SPDX-License-Identifier: MIT */
#include "pool.h"

#include <prof/memory.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

typedef struct piece {
  struct piece *next, *previous; /* neighbours in memory; NULL at the block's ends */
  char *memory;
  size_t bytes;
  bool is_free;
} piece;

typedef struct block {
  struct block *next;
  char *memory;
  size_t bytes;
  uint64_t stream;
  piece *first;
} block;

struct pool {
  pthread_mutex_t mutex; /* guards all below */
  block *blocks;
  size_t block_bytes;
  const pool_source *source;
  pool_statistics statistics;
  /* The same for prof, or NULL. The pool's own account above does not depend on it. */
  prof_pool *profile;
};

_Static_assert(POOL_ANY_STREAM == PROF_NO_STREAM, "none is none for prof, too");

static void *reserve_of_the_host(void *user, size_t bytes) {
  (void)user;
  return aligned_alloc(POOL_ALIGNMENT, bytes);
}

static void release_to_the_host(void *user, void *memory) {
  (void)user;
  free(memory);
}

const pool_source pool_host_memory = {
    .device = {PROF_DEVICE_CPU, 0}, .reserve = reserve_of_the_host, .release = release_to_the_host};

static piece *find_smallest_fit(pool *p, size_t bytes, uint64_t stream) {
  piece *best = NULL;
  for (block *b = p->blocks; b != NULL; b = b->next) {
    if (b->stream != stream) continue;
    for (piece *at = b->first; at != NULL; at = at->next)
      if (at->is_free && at->bytes >= bytes && (best == NULL || at->bytes < best->bytes)) best = at;
  }
  return best;
}

static piece *find_piece(const pool *p, const void *memory) {
  for (const block *b = p->blocks; b != NULL; b = b->next)
    for (piece *at = b->first; at != NULL; at = at->next)
      if (!at->is_free && at->memory == memory) return at;
  return NULL;
}

static void raise_to(uint64_t *peak, uint64_t value) {
  if (value > *peak) *peak = value;
}

static block *reserve_block(pool *p, size_t bytes, uint64_t stream) {
  block *b = calloc(1, sizeof *b);
  piece *whole = calloc(1, sizeof *whole);
  char *memory = NULL;
  if (b != NULL && whole != NULL)
    WITH_BASE_PROFILER_LEVEL(2, PROF_HOST, "MemoryReserve", "memory", PROF_ARGS("bytes", bytes),
                             { memory = p->source->reserve(p->source->user, bytes); });
  if (memory == NULL) {
    free(b);
    free(whole);
    return NULL;
  }
  *whole = (piece){.memory = memory, .bytes = bytes, .is_free = true};
  *b = (block){.memory = memory, .bytes = bytes, .stream = stream, .first = whole};
  return b;
}

/* One new block, a free piece as a whole, of so many bytes at least; NULL: the source has none. */
static piece *reserve(pool *p, size_t bytes, uint64_t stream) {
  block *b = reserve_block(p, bytes > p->block_bytes ? bytes : p->block_bytes, stream);
  if (b == NULL) return NULL;
  b->next = p->blocks;
  p->blocks = b;
  p->statistics.reserved_bytes += b->bytes;
  raise_to(&p->statistics.reserved_peak_bytes, p->statistics.reserved_bytes);
  p->statistics.reserve_count++;
  prof_memory_reserve(p->profile, b->memory, b->bytes);
  return b->first;
}

/* Of a block that is taken out of the list. */
static void give_back(pool *p, block *b) {
  prof_memory_release(p->profile, b->memory, b->bytes);
  p->source->release(p->source->user, b->memory);
  while (b->first != NULL) {
    piece *next = b->first->next;
    free(b->first);
    b->first = next;
  }
  free(b);
}

/* Cuts what the request does not need off into a free piece; without memory for a piece's
   description it stays whole. */
static void cut(piece *p, size_t bytes) {
  if (p->bytes == bytes) return;
  piece *rest = malloc(sizeof *rest);
  if (rest == NULL) return;
  *rest = (piece){.next = p->next,
                  .previous = p,
                  .memory = p->memory + bytes,
                  .bytes = p->bytes - bytes,
                  .is_free = true};
  if (rest->next != NULL) rest->next->previous = rest;
  p->next = rest;
  p->bytes = bytes;
}

static void join_with_next(piece *p) {
  piece *next = p->next;
  if (next == NULL || !p->is_free || !next->is_free) return;
  p->bytes += next->bytes;
  p->next = next->next;
  if (p->next != NULL) p->next->previous = p;
  free(next);
}

static piece *acquire_locked(pool *p, size_t bytes, uint64_t stream) {
  p->statistics.request_count++;
  /* Half of the address space is refused before rounding up could overflow. */
  const size_t rounded = (bytes + POOL_ALIGNMENT - 1) & ~(size_t)(POOL_ALIGNMENT - 1);
  piece *found = NULL;
  if (bytes > 0 && bytes <= SIZE_MAX / 2) {
    found = find_smallest_fit(p, rounded, stream);
    if (found == NULL) found = reserve(p, rounded, stream);
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

pool *pool_create(size_t block_bytes, const pool_source *source) {
  pool *p = calloc(1, sizeof *p);
  if (p == NULL) return NULL;
  p->block_bytes = (block_bytes + POOL_ALIGNMENT - 1) & ~(size_t)(POOL_ALIGNMENT - 1);
  if (pthread_mutex_init(&p->mutex, NULL) != 0) {
    free(p);
    return NULL;
  }
  p->source = source;
  /* Without it the pool works, unprofiled. */
  const prof_pool_options options = {.size = sizeof options,
                                     .name = "tensors",
                                     .device = p->source->device,
                                     .query = pool_query,
                                     .user = p};
  if (prof_pool_create(&options, &p->profile) != PROF_OK) p->profile = NULL;
  return p;
}

void pool_destroy(pool *p) {
  if (p == NULL) return;
  while (p->blocks != NULL) {
    block *b = p->blocks;
    p->blocks = b->next;
    give_back(p, b);
  }
  prof_pool_destroy(p->profile);
  pthread_mutex_destroy(&p->mutex);
  free(p);
}

void *pool_acquire(pool *p, size_t bytes) {
  return pool_acquire_for(p, bytes, (pool_purpose){0, POOL_ANY_STREAM});
}

/* The piece is reported behind the scope, still under the mutex: so the scope that it is counted to
   is the caller's. */
void *pool_acquire_for(pool *p, size_t bytes, pool_purpose purpose) {
  piece *found = NULL;
  WITH_BASE_PROFILER_LEVEL(2, PROF_HOST, "MemoryRequest", "memory", PROF_ARGS("bytes", bytes), {
    pthread_mutex_lock(&p->mutex);
    found = acquire_locked(p, bytes, purpose.stream);
  });
  void *memory = found == NULL ? NULL : found->memory;
  if (found != NULL)
    prof_memory_alloc_for(p->profile, memory, bytes, found->bytes, purpose.tag, purpose.stream);
  pthread_mutex_unlock(&p->mutex);
  if (found == NULL && bytes > 0) prof_memory_oom(p->source->device, bytes);
  return memory;
}

static void release_locked(pool *p, piece *back) {
  prof_memory_free(p->profile, back->memory, back->bytes);
  back->is_free = true;
  p->statistics.used_bytes -= back->bytes;
  p->statistics.release_count++;
  join_with_next(back);
  if (back->previous != NULL) join_with_next(back->previous);
}

void pool_release(pool *p, void *memory) {
  if (memory == NULL) return;
  pthread_mutex_lock(&p->mutex);
  piece *back = find_piece(p, memory);
  if (back != NULL) release_locked(p, back);
  pthread_mutex_unlock(&p->mutex);
}

size_t pool_trim(pool *p) {
  size_t count = 0;
  pthread_mutex_lock(&p->mutex);
  const uint64_t begun = prof_memory_collect_begin(p->profile);
  for (block **link = &p->blocks; *link != NULL;) {
    block *b = *link;
    if (!b->first->is_free || b->first->next != NULL) {
      link = &b->next;
      continue;
    }
    *link = b->next;
    p->statistics.reserved_bytes -= b->bytes;
    give_back(p, b);
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
