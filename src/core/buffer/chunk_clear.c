/* What is done to all chunks: the begin of an arena, and clear, by steps of one chunk. See chunk.h.
   Readers may still look at a cleared chunk. Such a chunk is deferred until they are done
   (snapshot_pin.h). */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>

#include "../../base/fault.h"
#include "../../base/port.h"
#include "blocks.h"
#include "chunk.h"
#include "internal.h"
#include "snapshot_pin.h"

enum { DEFERRED_COUNT = 8192 };

/* A chunk that was cleared while somebody read it. */
typedef struct deferred_chunk {
  uint64_t offset, number;
  uint64_t clear; /* the clear's number: snapshot_pin.h */
} deferred_chunk;

/* Control lock held. `chunks` has DEFERRED_COUNT places, from the first start on. */
static struct {
  deferred_chunk *chunks;
  uint32_t count;
} deferred;

/* If all places are used, the chunk is retired, and the next clear tries again. */
bool prof_i_chunk_defer_free(prof_i_head *chunk, uint64_t number, uint64_t clear) {
  if (!prof_i_snapshot_pin_sees(number, clear)) return false;
  if (deferred.count == DEFERRED_COUNT)
    prof_i_chunk_set_retired(chunk);
  else
    deferred.chunks[deferred.count++] = (deferred_chunk){prof_i_arena_offset(chunk), number, clear};
  return true;
}

prof_i_head *prof_i_chunk_take_deferred(void) {
  if (PROF_I_FAULT(NEVER_BACK)) return NULL;
  for (uint32_t i = deferred.count; i-- > 0;) {
    const deferred_chunk one = deferred.chunks[i];
    if (prof_i_snapshot_pin_sees(one.number, one.clear)) continue;
    deferred.chunks[i] = deferred.chunks[--deferred.count];
    return prof_i_chunk_at(one.offset);
  }
  return NULL;
}

/* True: the chunk is the caller's, and empty. */
static bool chunk_clear(prof_i_head *chunk, uint64_t *number_out) {
  if (!prof_i_chunk_own_if_retired(chunk)) return false;
  const prof_i_chunk_count count =
      prof_i_chunk_count_events(chunk, prof_i_chunk_last_clear(), NULL);
  if (count.unfinished || count.live) {
    prof_i_chunk_set_retired(chunk);
    return false;
  }
  *number_out = prof_i_sequence_number(chunk->sequence);
  prof_i_chunk_evict(chunk, &count, PROF_I_EVICTED_CLEARED);
  if (prof_i_the_arena.policy != PROF_POLICY_RING) return true;
  prof_i_chunk_next_generation(chunk, &count); /* stays in the ring's list, as the first to take */
  if (!prof_i_block_is_private(prof_i_arena_offset(chunk)))
    prof_i_port_drop_pages(chunk, chunk->bytes); /* a private block's pages have no other copy */
  prof_i_ring_put(chunk);
  return false;
}

uint64_t prof_i_chunk_begin_clear(void) {
  prof_i_chunk_forget_partial();
  return prof_i_snapshot_pin_begin_clear();
}

bool prof_i_chunk_clear_next(uint64_t *offset, prof_i_head **chunk_out, uint64_t *number_out) {
  prof_i_head *const head = prof_i_arena_next(offset, prof_i_arena_readable_bytes());
  *chunk_out =
      head && prof_i_head_kind(head) == PROF_I_EXTENT_CHUNK && chunk_clear(head, number_out) ? head
                                                                                             : NULL;
  return head != NULL;
}

void prof_i_chunk_reopen_arena(void) {
  prof_i_arena_clear_full();
  prof_i_ring_may_grow();
  prof_i_prepared_note_room();
  if (prof_i_prepared_is_on()) prof_i_chunk_helper_wake();
}

int prof_i_chunk_prepare(const prof_i_arena *fresh) {
  const int error = prof_i_free_list_prepare();
  if (error) return error;
  if (!deferred.chunks) {
    void *const memory = mmap(NULL, DEFERRED_COUNT * sizeof *deferred.chunks,
                              PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return errno;
    deferred.chunks = memory;
  }
  return prof_i_ring_prepare(fresh);
}

void prof_i_chunk_begin(void) {
  prof_i_chunk_forget_partial();
  prof_i_chunk_begin_numbers();
  prof_i_prepared_begin();
  deferred.count = 0; /* no reader holds a chunk of this arena */
  prof_i_free_list_begin();
  prof_i_ring_begin();
  prof_i_chunk_size_begin();
}
