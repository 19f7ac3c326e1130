/* See record.h. */
#include "record.h"

#include <prof/profiler.h>
#include <string.h>

#include "../../base/fault.h"
#include "../../base/process.h"
#include "arena.h"
#include "chunk.h"
#include "clock.h"
#include "observer.h"

enum { TRIES = 64 };

/* Past the gate, or the chunk might be recycled: this takes longer than a claim and its store. With
   the gate closed the limit stays, and the next claim comes here, too. */
bool prof_i_record_extends(prof_i_head *chunk, uint64_t at, uint64_t bytes) {
  prof_i_thread *const thread = prof_i_this_thread;
  bool fits = false;
  if (!prof_i_arena_guard_enter()) return at + bytes <= chunk->bytes;
  if (at + bytes <= chunk->bytes) {
    fits = true;
    if (__atomic_load_n(&thread->chunk, __ATOMIC_RELAXED) == chunk)
      PROF_I_ANNOUNCE(limit_reached, thread, chunk, at, at + bytes);
  }
  prof_i_arena_guard_exit();
  return fits;
}

static bool write_in_chunk(prof_i_head *chunk, uint64_t ticks4, uint64_t word1,
                           const uint64_t *more, uint64_t words) {
  uint64_t *record;
  if (!prof_i_process_is_own()) return false; /* makes the chunk of a child's parent empty memory */
  if (words == 0) {
    const uint64_t at = prof_i_claim(&chunk->cursor, 16);
    if (at >= chunk->limit && !prof_i_record_extends(chunk, at, 16)) return false;
    record = (uint64_t *)((char *)chunk + at);
  } else {
    record = prof_i_record_claim(chunk, (2 + words + 1) / 2 * 16);
    if (!record) return false;
    memcpy(record + 2, more, words * sizeof *more);
  }
  __atomic_store_n(&record[1], word1, __ATOMIC_RELAXED);
  /* pairs with the reader's acquire */
  __atomic_store_n(&record[0], ticks4 | chunk->generation, __ATOMIC_RELEASE);
  return true;
}

int prof_i_record_write(prof_i_thread *thread, uint64_t ticks4, uint64_t began4, uint64_t word1,
                        const uint64_t *more, uint64_t words) {
  const uint64_t bytes = (2 + words + 1) / 2 * 16;
  int loss = PROF_LOSS_NO_CHUNK;
  for (int i = 0; i < TRIES; i++) {
    prof_i_head *const chunk = prof_i_thread_chunk(thread);
    if (chunk != &thread->full && write_in_chunk(chunk, ticks4, word1, more, words)) return -1;
    if (!prof_i_chunk_change(thread, bytes, &loss)) break;
  }
  const uint64_t full = __atomic_load_n(&prof_i_arena_header()->full_ticks, __ATOMIC_ACQUIRE);
  if (full && prof_i_clock_is_before(began4 >> 4, full)) {
    prof_i_head *const reserve = prof_i_chunk_reserve(thread);
    if (reserve && write_in_chunk(reserve, ticks4, word1, more, words)) return -1;
  }
  return PROF_I_FAULT(DROP_COUNT) ? -1 : loss;
}
