/* Claims meta records by a locked add on the meta extent's cursor: several threads come here, and
   handlers. See meta.h. */
#include "meta.h"

#include <string.h>

#include "../../base/port.h"
#include "../../base/process.h"
#include "arena.h"

static struct { prof_i_head *extent; /* swapped whole; any thread */ } meta_writer;

void prof_i_meta_reset(void) { __atomic_store_n(&meta_writer.extent, NULL, __ATOMIC_RELEASE); }

size_t prof_i_put_text(uint64_t *to, const char *text, size_t bytes) {
  const size_t words = prof_i_text_words(bytes);
  to[words - 1] = 0;
  to[0] = bytes;
  memcpy(to + 1, text, bytes);
  return words;
}

/* Room of that many bytes in the current extent, or a new one. NULL when the arena is full. */
static uint64_t *meta_claim(uint64_t bytes) {
  for (int tries = 0; tries < 64; tries++) {
    prof_i_head *const extent = __atomic_load_n(&meta_writer.extent, __ATOMIC_ACQUIRE);
    if (extent) {
      const uint64_t at = __atomic_fetch_add(&extent->cursor, bytes, __ATOMIC_RELAXED);
      if (at + bytes <= extent->bytes) return (uint64_t *)((char *)extent + at);
    }
    int loss;
    const uint64_t size =
        bytes + PROF_I_HEAD_BYTES <= PROF_I_UNIT_BYTES ? PROF_I_UNIT_BYTES : 4 * PROF_I_UNIT_BYTES;
    prof_i_head *const fresh = prof_i_arena_take_extent(PROF_I_EXTENT_META, size, size, &loss);
    if (!fresh) return NULL;
    prof_i_head *expected = extent;
    /* Lost the race: the fresh one stays unused in the arena, an empty extent. */
    __atomic_compare_exchange_n(&meta_writer.extent, &expected, fresh, false, __ATOMIC_ACQ_REL,
                                __ATOMIC_ACQUIRE);
  }
  return NULL;
}

/* Marked as claimed; its words 1 and 2 are written. NULL: no room. */
static uint64_t *meta_begin_record(prof_i_kind kind, uint32_t site, size_t count) {
  const uint64_t slots = (3 + count + 1) / 2;
  uint64_t *const record = meta_claim(slots * 16);
  if (!record) return NULL;
  __atomic_store_n(&record[0], slots << PROF_I_PENDING_SLOTS_SHIFT | 1u << 4, __ATOMIC_RELAXED);
  /* the mark comes first: a reader who sees other words of the record sees it, too */
  PROF_I_STORE_FENCE();
  record[1] = (uint64_t)site << 4 | 1;
  record[2] = slots | (uint64_t)kind << 16;
  return record;
}

static void meta_commit_record(uint64_t *record, uint64_t ticks) {
  /* pairs with the reader's acquire */
  __atomic_store_n(&record[0], ticks << 4 | 1, __ATOMIC_RELEASE);
}

/* No handler interrupts it: see prof_i_chunk_change(). */
bool prof_i_meta_write(prof_i_kind kind, uint64_t ticks, uint32_t site, const uint64_t *words,
                       size_t count) {
  PROF_I_HOLD_SIGNALS;
  if (!prof_i_process_is_own()) return false;
  uint64_t *const record = meta_begin_record(kind, site, count);
  if (!record) return false;
  memcpy(record + 3, words, count * sizeof *words);
  meta_commit_record(record, ticks);
  return true;
}

void *prof_i_meta_place(prof_i_kind kind, uint64_t ticks, size_t count,
                        void *(*fill)(uint64_t *words, void *with), void *with) {
  PROF_I_HOLD_SIGNALS;
  if (!prof_i_process_is_own()) return NULL;
  uint64_t *const record = meta_begin_record(kind, 0, count);
  if (!record) return NULL;
  void *const filled = fill(record + 3, with);
  meta_commit_record(record, ticks);
  return filled;
}
