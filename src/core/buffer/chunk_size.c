/* See chunk_internal.h. If few threads took large chunks, those that come later would find no room,
   while most of the cap holds no records. */
#define _GNU_SOURCE
#include "chunk_internal.h"

#include <prof/profiler.h>

#include "arena.h"
#include "free_list.h"
#include "thread.h"

enum {
  CHUNKS_EACH = 4,    /* of what is free, a thread gets this part of its share at once */
  LOOK_AT_LEAST = 16, /* changes from one count of the threads to the next */
  LOOK_SHARE = 4      /* and a quarter as many as there are threads */
};

/* Any thread, relaxed. */
static struct {
  uint64_t threads; /* that were alive at the last count */
  uint64_t changes; /* since then */
} size_state;

/* To count is to walk over all threads. */
static uint64_t thread_count(void) {
  const uint64_t known = __atomic_load_n(&size_state.threads, __ATOMIC_RELAXED);
  const uint64_t changes = __atomic_add_fetch(&size_state.changes, 1, __ATOMIC_RELAXED);
  if (known && changes < LOOK_AT_LEAST + known / LOOK_SHARE) return known;
  __atomic_store_n(&size_state.changes, 0, __ATOMIC_RELAXED);
  const uint64_t alive = prof_i_thread_alive_count(), count = alive ? alive : 1;
  __atomic_store_n(&size_state.threads, count, __ATOMIC_RELAXED);
  return count;
}

/* In a ring, all is free: the oldest is evicted. */
static uint64_t arena_free_bytes(void) {
  const prof_i_arena *const arena = &prof_i_the_arena;
  if (arena->policy == PROF_POLICY_RING) return arena->cap_bytes;
  const uint64_t taken = prof_i_arena_taken_bytes();
  return (taken < arena->cap_bytes ? arena->cap_bytes - taken : 0) + prof_i_free_list_bytes();
}

uint64_t prof_i_chunk_size_max(void) {
  const prof_i_arena *const arena = &prof_i_the_arena;
  const uint64_t share = arena_free_bytes() / (CHUNKS_EACH * thread_count());
  uint64_t bytes = arena->chunk_bytes_max;
  while (bytes > share && bytes > arena->chunk_bytes_min) bytes /= 4;
  return bytes;
}

void prof_i_chunk_size_begin(void) { size_state.threads = size_state.changes = 0; }
