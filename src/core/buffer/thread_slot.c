/* A thread's slot in the arena, and the mappings of replaced arenas that it must keep. See
   thread_internal.h. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>

#include "../../base/fault.h"
#include "../../base/port.h"
#include "../../base/this_thread.h"
#include "arena.h"
#include "blocks.h"
#include "chunk.h"
#include "clock.h"
#include "ledger.h"
#include "observer.h"
#include "thread_internal.h"

enum { SLOT_TOUCHED_BYTES = 2 * 4096 };

/* See thread_internal.h. */
void prof_i_slot_set_deep(prof_i_thread_slot *slot, uint64_t count) {
  __atomic_store_n(&slot->deep, count, __ATOMIC_RELAXED);
}

/* Keeps a mapping of a replaced arena, and unmaps the oldest one. Nobody can find that one any
   more: it was replaced several captures ago. But a thread that looks at slots now may have found
   it before, so it stays mapped then, for good. That is rare. */
static void retire_mapping(prof_i_thread *thread, void *at, uint64_t bytes) {
  prof_i_memory_range *const p =
      &thread->retired_mappings[thread->retired_next++ % PROF_I_RETIRED_COUNT];
  if (p->at && prof_i_blocks_release_extent(p->at) &&
      !__atomic_load_n(&prof_i_threads.looking, __ATOMIC_SEQ_CST))
    munmap(p->at, p->bytes);
  p->at = at;
  p->bytes = bytes;
}

/* Keeps the mappings of chunks that the thread has of a replaced arena. */
void prof_i_thread_retire_chunks(prof_i_thread *thread) {
  uint64_t *const words[] = {&thread->detached_chunk, &thread->previous_chunk};
  for (int i = 0; i < 2; i++) {
    const uint64_t word = __atomic_exchange_n(words[i], 0, __ATOMIC_ACQ_REL);
    if (word)
      retire_mapping(thread, prof_i_chunk_word_address(word), prof_i_chunk_word_bytes(word));
  }
}

bool prof_i_thread_drop_stale_entry(prof_i_thread *thread, uint64_t start) {
  for (int p = 0; p < PROF_I_RETIRED_COUNT; p++) {
    if (!thread->retired_mappings[p].at || thread->retired_mappings[p].bytes != PROF_I_SLOT_BYTES)
      continue;
    /* this may be a chunk of the same size: its words are hardly ever equal to a start */
    prof_i_thread_slot *const slot = thread->retired_mappings[p].at;
    for (int i = 1; i <= PROF_I_OPEN_COUNT; i++) {
      uint64_t ticks = start;
      if (__atomic_compare_exchange_n(&slot->open[i].ticks, &ticks, 0, false, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED))
        return true;
    }
  }
  return false;
}

/* What the slot lost before is not this thread's loss. */
static void start_counting_losses(prof_i_thread_slot *slot) {
  slot->deep_before = slot->deep_count;
  slot->cut_before = slot->cut_count;
  slot->own_ns_before = slot->own_ns;
  const uint64_t ledger = prof_i_ledger_of(slot);
  for (int i = 0; i < PROF_I_LOSS_WORDS; i++)
    slot->lost_before[i] = prof_i_slot_lost(slot, ledger, i);
}

/* Word by word, because an end on another thread may be searching for its scope. */
void prof_i_slot_clear_open(prof_i_thread_slot *slot) {
  uint64_t top = 0;
  for (uint64_t i = PROF_I_OPEN_COUNT + 1; i-- > 0;) {
    uint64_t ticks = __atomic_load_n(&slot->open[i].ticks, __ATOMIC_RELAXED);
    while (!prof_i_entry_is_taken(ticks) &&
           !__atomic_compare_exchange_n(&slot->open[i].ticks, &ticks,
                                        i && i < top ? PROF_I_OPEN_GONE : 0, false,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    if (prof_i_entry_is_taken(ticks) && !top) top = i;
  }
  slot->depth = top;
}

/* Copies the open scopes into a slot of another arena. Scopes of this session keep their entries
   and payloads. The ends of older scopes will find nothing, and count as late. A begin that is not
   done fills its entry in the old slot, so an empty entry is over, too. */
static void move_open_scopes(prof_i_thread_slot *slot, const prof_i_thread_slot *old,
                             uint64_t since) {
  const uint64_t depth = old->depth <= PROF_I_OPEN_COUNT ? old->depth : 0;
  const uint64_t top = old->payload_top >= PROF_I_TEXT_OFFSET && old->payload_top <= PROF_I_TEXT_END
                           ? old->payload_top
                           : PROF_I_TEXT_OFFSET;
  memcpy((char *)slot + PROF_I_TEXT_OFFSET, (const char *)old + PROF_I_TEXT_OFFSET,
         top - PROF_I_TEXT_OFFSET);
  slot->payload_top = top;
  const uint64_t deep = old->deep <= PROF_I_DEEP_COUNT ? old->deep : 0;
  const uint64_t deep_gone = __atomic_load_n(&old->deep_gone, __ATOMIC_RELAXED);
  prof_i_slot_set_deep(slot, deep);
  slot->deep_gone = deep_gone < deep ? deep_gone : deep;
  slot->depth = depth;
  for (uint64_t i = 1; i <= depth; i++) {
    const uint64_t ticks = __atomic_load_n(&old->open[i].ticks, __ATOMIC_RELAXED);
    slot->open[i].packed = old->open[i].packed;
    const bool stays = prof_i_open_entry_is_open(ticks) && !prof_i_entry_is_taken(ticks) &&
                       !prof_i_clock_is_before(ticks >> 4, since);
    slot->open[i].ticks = stays ? ticks : PROF_I_OPEN_GONE;
  }
  prof_i_ledger_open(slot, slot->deep - slot->deep_gone);
}

static prof_i_thread_slot *slot_take(void) {
  int loss;
  if (PROF_I_FAULT(OPEN_ELSEWHERE))
    return mmap(NULL, PROF_I_SLOT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                0);
  prof_i_head *const slot =
      prof_i_arena_take_extent(PROF_I_EXTENT_SLOT, PROF_I_SLOT_BYTES, SLOT_TOUCHED_BYTES, &loss);
  return (prof_i_thread_slot *)(slot ? slot : prof_i_chunk_take_for_slot(SLOT_TOUCHED_BYTES));
}

/* A begin that is left out is counted without the gate, perhaps just after the slot's arena was
   replaced. The slot's memory is zeros then, and only it has these counts. */
void prof_i_slot_write_left_out(prof_i_thread_slot *old) {
  for (int i = 0; i < PROF_I_LOSS_WORDS; i++) {
    const uint64_t count = __atomic_exchange_n(&old->lost[i], 0, __ATOMIC_RELAXED);
    if (count) __atomic_fetch_add(&prof_i_arena_header()->unattributed[i], count, __ATOMIC_RELAXED);
  }
}

/* See thread_internal.h. The slot is published last. */
bool prof_i_slot_give(prof_i_thread *thread, uint64_t since) {
  prof_i_thread_slot *const old = thread->slot;
  const bool keeps = old && thread->arena == prof_i_the_arena.number;
  prof_i_thread_slot *const slot = keeps ? old : slot_take();
  if (!slot) return false;
  slot->deep_gone = 0;
  prof_i_slot_set_deep(slot, 0);
  prof_i_ledger_open(slot, 0);
  start_counting_losses(slot);
  prof_i_slot_clear_open(slot);
  slot->payload_top = PROF_I_TEXT_OFFSET;
  __atomic_store_n(&slot->tid, thread->tid, __ATOMIC_RELAXED);
  slot->thread_kind = thread->thread_kind;
  slot->chunk = 0;
  prof_i_thread_write_name(thread, slot);
  slot->head.owner = thread->serial;
  thread->is_slow = !keeps && old && since && thread->is_slow;
  __atomic_store_n(&thread->begun.count, 0, __ATOMIC_RELAXED);
  if (!keeps && old) {
    PROF_I_ANNOUNCE(entries_needed, thread);
    if (since) move_open_scopes(slot, old, since);
    prof_i_slot_write_left_out(old);
    retire_mapping(thread, old, PROF_I_SLOT_BYTES);
    prof_i_thread_note_gap(thread);
  }
  /* from now on other threads search this slot for their scopes */
  __atomic_store_n(&thread->slot, slot, __ATOMIC_SEQ_CST);
  /* prof_health() reads it */
  __atomic_store_n(&thread->arena, prof_i_the_arena.number, __ATOMIC_RELAXED);
  __atomic_store_n(&slot->serial, thread->serial, __ATOMIC_RELEASE);
  if (thread->serial != prof_i_this_flags.exited_serial)
    __atomic_fetch_add(&prof_i_arena_header()->thread_count, 1, __ATOMIC_RELAXED);
  return true;
}
