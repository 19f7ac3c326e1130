/* Records about a thread: the owner of a chunk, and what a thread leaves when it ends. See
   chunk_internal.h. */
#define _GNU_SOURCE
#include <string.h>

#include "../../base/port.h"
#include "chunk_internal.h"
#include "clock.h"
#include "ledger.h"

enum {
  EXIT_WORDS = 3 + 3 + PROF_I_LOSS_WORDS + PROF_I_NAME_BYTES / 8 + 1,
  EXIT_BYTES = (EXIT_WORDS + 1) / 2 * 16,
  /* Less overhead of an ended thread is not worth a record of 256 bytes: many threads live for a
     few scopes only. The sum of all threads has it anyway. */
  OVERHEAD_NS_WORTH_WRITING = 100000
};

/* Claims from this chunk, as other threads may. NULL: the record does not fit. */
static uint64_t *chunk_claim(prof_i_head *chunk, uint64_t bytes) {
  const uint64_t from = prof_i_claim(&chunk->cursor, bytes);
  if (from + bytes <= chunk->bytes) {
    uint64_t *const record = (uint64_t *)((char *)chunk + from);
    __atomic_store_n(&record[0], bytes / 16 << PROF_I_PENDING_SLOTS_SHIFT | chunk->generation << 4,
                     __ATOMIC_RELAXED);
    /* the mark comes first: a reader that sees other words of the record sees the mark, too */
    PROF_I_STORE_FENCE();
    return record;
  }
  if (from < chunk->bytes)
    __atomic_store_n((uint64_t *)((char *)chunk + from),
                     1ull << PROF_I_FILLER_BIT |
                         (chunk->bytes - from) / 16 << PROF_I_PENDING_SLOTS_SHIFT |
                         chunk->generation << 4,
                     __ATOMIC_RELEASE);
  return NULL;
}

/* This record is no event: if the process is killed meanwhile, nothing may count as lost. */
static void put_owner(prof_i_thread *thread, prof_i_head *chunk) {
  uint64_t *const record = chunk_claim(chunk, PROF_I_OWNER_RECORD_BYTES);
  if (!record) return;
  record[1] = 1;
  record[2] = PROF_I_OWNER_RECORD_BYTES / 16 | (uint64_t)PROF_I_KIND_OWNER << 16;
  record[3] = thread->serial;
  record[4] = thread->tid;
  record[5] = thread->thread_kind;
  prof_i_thread_copy_name(thread->name, thread->slot->name);
  memcpy(record + 6, thread->name, PROF_I_NAME_BYTES);
  __atomic_store_n(&record[0], prof_i_clock_ticks() << 4 | chunk->generation, __ATOMIC_RELEASE);
}

void prof_i_thread_write_owner(prof_i_thread *thread, prof_i_head *chunk) {
  const prof_i_ledger_saved note =
      prof_i_ledger_begin(thread->slot, 0, PROF_I_OWNER_RECORD_BYTES / 16);
  put_owner(thread, chunk);
  prof_i_ledger_end(thread->slot, &note, 0);
}

bool prof_i_thread_exit_is_worth_writing(const prof_i_thread *thread) {
  const prof_i_thread_slot *const slot = thread->slot;
  uint64_t any = (slot->deep_count - slot->deep_before) | (slot->cut_count - slot->cut_before);
  const uint64_t ledger = prof_i_ledger_of(slot);
  for (int i = 0; i < PROF_I_LOSS_WORDS; i++)
    any |= prof_i_slot_lost(slot, ledger, i) - slot->lost_before[i];
  any |= prof_i_slot_thread_own_ns(slot) >= OVERHEAD_NS_WORTH_WRITING;
  for (int i = 0; i < PROF_I_NAME_BYTES / 8; i++)
    any |= __atomic_load_n((const uint64_t *)(const void *)slot->name + i, __ATOMIC_RELAXED) ^
           ((const uint64_t *)(const void *)thread->name)[i];
  return any != 0;
}

static bool put_exit(prof_i_thread *thread, prof_i_head *chunk) {
  uint64_t *const record = chunk_claim(chunk, EXIT_BYTES);
  if (!record) return false;
  const prof_i_thread_slot *const slot = thread->slot;
  record[1] = 1;
  record[2] = EXIT_BYTES / 16 | (uint64_t)PROF_I_KIND_EXIT << 16;
  record[3] = thread->serial;
  record[4] = slot->deep_count - slot->deep_before;
  record[5] = slot->cut_count - slot->cut_before;
  const uint64_t ledger = prof_i_ledger_of(slot);
  for (int i = 0; i < PROF_I_LOSS_WORDS; i++)
    record[6 + i] = prof_i_slot_lost(slot, ledger, i) - slot->lost_before[i];
  prof_i_thread_copy_name((char *)(record + 6 + PROF_I_LOSS_WORDS), slot->name);
  record[EXIT_WORDS - 1] = prof_i_slot_thread_own_ns(slot);
  __atomic_store_n(&record[0], prof_i_clock_ticks() << 4 | chunk->generation, __ATOMIC_RELEASE);
  return true;
}

bool prof_i_thread_write_exit(prof_i_thread *thread, prof_i_head *chunk) {
  const prof_i_ledger_saved note = prof_i_ledger_begin(thread->slot, 0, EXIT_BYTES / 16);
  const bool is_written = put_exit(thread, chunk);
  prof_i_ledger_end(thread->slot, &note, 0);
  return is_written;
}
