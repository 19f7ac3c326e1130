/* Writing one record into a thread's chunk, whatever it takes: the slow way. */
#ifndef PROF_CORE_BUFFER_RECORD_H
#define PROF_CORE_BUFFER_RECORD_H

#include "../../base/port.h"
#include "arena.h"
#include "thread.h"

static inline bool prof_i_record_fits(const prof_i_head *chunk, uint64_t at, uint64_t bytes) {
  return PROF_I_LIKELY(at + bytes <= chunk->limit + 15);
}

/* A claim at `at` has reached the chunk's limit. Does it fit nevertheless? An observer may have set
   the limit before the chunk's end: then this notifies it. Signal-safe. */
bool prof_i_record_extends(prof_i_head *chunk, uint64_t at, uint64_t bytes);

/* Marks claimed room as pending, where it fits. */
static inline uint64_t *prof_i_record_mark(prof_i_head *chunk, uint64_t at, uint64_t bytes) {
  uint64_t *const record = (uint64_t *)((char *)chunk + at);
  __atomic_store_n(&record[0], bytes / 16 << PROF_I_PENDING_SLOTS_SHIFT | chunk->generation << 4,
                   __ATOMIC_RELAXED);
  /* The mark comes first: a reader who sees other words of the record sees it, too. */
  PROF_I_STORE_FENCE();
  return record;
}

/* Of room that has just been claimed. NULL: it does not fit, and is marked as filler. */
static inline uint64_t *prof_i_record_take(prof_i_head *chunk, uint64_t at, uint64_t bytes) {
  uint64_t *const record = (uint64_t *)((char *)chunk + at);
  if (!prof_i_record_fits(chunk, at, bytes) && !prof_i_record_extends(chunk, at, bytes)) {
    const uint64_t end = chunk->bytes;
    if (at < end)
      __atomic_store_n(&record[0],
                       1ull << PROF_I_FILLER_BIT | (end - at) / 16 << PROF_I_PENDING_SLOTS_SHIFT |
                           chunk->generation << 4,
                       __ATOMIC_RELEASE);
    return 0;
  }
  return prof_i_record_mark(chunk, at, bytes);
}

/* Claims room and marks it pending at once. NULL: as above. */
static inline uint64_t *prof_i_record_claim(prof_i_head *chunk, uint64_t bytes) {
  return prof_i_record_take(chunk, prof_i_claim(&chunk->cursor, bytes), bytes);
}

/* Writes a record of word 0 ticks4 (ticks << 4), word 1, and `words` more words (0: plain, 16
   bytes), changing chunks as needed. A scope that began (began4, ticks << 4) before the arena was
   full may use the reserve. Returns the loss (prof_loss), or -1: it stands. Past the gate,
   attached. */
int prof_i_record_write(prof_i_thread *thread, uint64_t ticks4, uint64_t began4, uint64_t word1,
                        const uint64_t *more, uint64_t words);

#endif
