/* Slots of a snapshot: open scopes, as they were at one moment, and losses. */
#include <string.h>

#include "../reader/capture.h"
#include "live.h"

/* Whether the arena has the entry as it was copied, at its index or below, where compacting moves
   it (core/record/compact.h). */
static bool entry_is_steady(const prof_i_snapshot *s, uint64_t offset, size_t i) {
  const prof_i_thread_slot *const slot = (const prof_i_thread_slot *)(s->to + offset);
  const prof_i_open_entry *const from = ((const prof_i_thread_slot *)(s->from + offset))->open;
  const uint64_t copied = slot->open[i].ticks;
  const uint64_t marks = PROF_I_OPEN_COPY | PROF_I_OPEN_OF_DEEP | PROF_I_OPEN_TAKEN;
  for (size_t at = i; at > 0 && (at == i || prof_i_open_entry_is_open(copied)); at--) {
    const uint64_t now = __atomic_load_n(&from[at].ticks, __ATOMIC_ACQUIRE);
    if ((now & ~marks) == (copied & ~marks) &&
        prof_i_snapshot_load(&from[at].packed) == slot->open[i].packed)
      return true;
  }
  return false;
}

/* Removes entries from the copy that have changed since. The others, with their payloads, were open
   at the same moment. */
static void keep_steady_entries(const prof_i_snapshot *s, uint64_t offset) {
  prof_i_thread_slot *const slot = (prof_i_thread_slot *)(s->to + offset);
  prof_i_snapshot_fence();
  for (size_t i = 1; i <= PROF_I_OPEN_COUNT; i++)
    if (!entry_is_steady(s, offset, i)) slot->open[i].ticks = 0;
}

/* Copies what the owner publishes by one store of its ledger, as it was at one moment. */
static void copy_ledger(const prof_i_snapshot *s, uint64_t offset) {
  enum { LEDGER_TRIES = 1000 };
  const size_t endings = offsetof(prof_i_thread_slot, endings);
  const uint64_t *const word = &((const prof_i_thread_slot *)(s->from + offset))->ledger;
  prof_i_thread_slot *const to = (prof_i_thread_slot *)(s->to + offset);
  int tries = 0;
  do {
    to->ledger = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    prof_i_snapshot_copy_words(s, offset + endings, sizeof(prof_i_thread_slot) - endings);
    prof_i_snapshot_fence();
  } while (__atomic_load_n(word, __ATOMIC_RELAXED) != to->ledger && ++tries < LEDGER_TRIES);
}

static void copy_slot(const prof_i_snapshot *s, uint64_t offset, const prof_i_head *head) {
  enum { PACK_TRIES = 100 }; /* a thread may be stopped while it moves entries */
  if (head->bytes < PROF_I_SLOT_BYTES) return;
  const uint64_t *const packs = &((const prof_i_thread_slot *)(s->from + offset))->pack_count;
  uint64_t before;
  int tries = 0;
  do { /* entries that moved during the copy are copied again */
    before = __atomic_load_n(packs, __ATOMIC_ACQUIRE);
    prof_i_snapshot_copy_words(s, offset, sizeof(prof_i_thread_slot));
    prof_i_snapshot_fence();
  } while (++tries < PACK_TRIES && (before % 2 || prof_i_snapshot_load(packs) != before));
  /* Read again: a scope that opened since has its payload above the first value. */
  const uint64_t payload_top =
      prof_i_snapshot_load(s->from + offset + offsetof(prof_i_thread_slot, payload_top));
  const uint64_t top = payload_top < PROF_I_TEXT_END ? payload_top & ~7ull : PROF_I_TEXT_END;
  if (top > PROF_I_TEXT_OFFSET)
    prof_i_snapshot_copy_words(s, offset + PROF_I_TEXT_OFFSET, top - PROF_I_TEXT_OFFSET);
  copy_ledger(s, offset);
  keep_steady_entries(s, offset);
}

void prof_i_snapshot_copy_slots(const prof_i_snapshot *s) {
  prof_i_head head;
  uint64_t at, offset = PROF_I_FIRST_UNIT_OFFSET;
  prof_i_snapshot_copy_words(s, 0, PROF_I_HEADER_BYTES);
  while ((at = prof_i_snapshot_next_of_kind(s, &offset, PROF_I_EXTENT_SLOT, &head)) != 0)
    copy_slot(s, at, &head);
}

static uint64_t chunk_lost_count(const prof_i_thread_slot *slot, int loss) {
  return prof_i_slot_lost(slot, slot->ledger, loss);
}

/* If another thread has taken the slot since, its losses are not those of the copied thread.
   Returns whether anything was lost during the copy. */
static bool copy_losses_of_slot(const prof_i_snapshot *s, uint64_t offset) {
  prof_i_thread_slot *const to = (prof_i_thread_slot *)(s->to + offset);
  const prof_i_thread_slot *const from = (const prof_i_thread_slot *)(s->from + offset);
  uint64_t before[PROF_I_LOSS_WORDS], any = 0;
  for (int i = 0; i < PROF_I_LOSS_WORDS; i++) before[i] = chunk_lost_count(to, i);
  for (int i = 0; i < PROF_I_LOSS_WORDS; i++) to->lost[i] = prof_i_snapshot_load(&from->lost[i]);
  copy_ledger(s, offset);
  prof_i_snapshot_fence();
  const bool is_another = prof_i_snapshot_load(&from->serial) != to->serial;
  for (int i = 0; i < PROF_I_LOSS_WORDS; i++) {
    const uint64_t more = chunk_lost_count(to, i) - before[i];
    if (is_another) to->lost_before[i] += more;
    any |= more;
  }
  return any != 0;
}

/* The next slot that the copy has. 0: the end. */
static uint64_t next_slot(const prof_i_snapshot *s, uint64_t *offset) {
  prof_i_head head;
  for (uint64_t at; (at = prof_i_snapshot_next_of_kind(s, offset, PROF_I_EXTENT_SLOT, &head)) != 0;)
    if (head.bytes >= PROF_I_SLOT_BYTES &&
        ((const prof_i_head *)(s->to + at))->magic == PROF_I_EXTENT_MAGIC)
      return at;
  return 0;
}

/* An entry has ended since it was copied. Its scope has a record in the chunk of any thread, which
   index.c finds, or it is counted as lost. */
static void mark_ended_entries(const prof_i_snapshot *s, uint64_t offset, bool has_losses) {
  prof_i_thread_slot *const slot = (prof_i_thread_slot *)(s->to + offset);
  for (size_t i = 1; i <= PROF_I_OPEN_COUNT; i++) {
    if (!prof_i_open_entry_is_open(slot->open[i].ticks) || entry_is_steady(s, offset, i)) continue;
    if (has_losses)
      slot->open[i].ticks = 0;
    else
      slot->open[i].ticks |= PROF_I_OPEN_TAKEN;
  }
}

void prof_i_snapshot_copy_losses(const prof_i_snapshot *s) {
  prof_i_header *const header = (prof_i_header *)s->to;
  bool has_losses = false;
  uint64_t at;
  prof_i_snapshot_fence();
  for (int i = 0; i < PROF_I_LOSS_WORDS; i++) {
    const uint64_t now =
        prof_i_snapshot_load(s->from + offsetof(prof_i_header, unattributed) + (size_t)i * 8);
    has_losses |= now != header->unattributed[i];
    header->unattributed[i] = now;
  }
  header->deep_over = prof_i_snapshot_load(s->from + offsetof(prof_i_header, deep_over));
  for (uint64_t offset = PROF_I_FIRST_UNIT_OFFSET; (at = next_slot(s, &offset)) != 0;)
    has_losses |= copy_losses_of_slot(s, at);
  prof_i_snapshot_fence();
  for (uint64_t offset = PROF_I_FIRST_UNIT_OFFSET; (at = next_slot(s, &offset)) != 0;) {
    ((prof_i_thread_slot *)(s->to + at))->deep_count =
        prof_i_snapshot_load(s->from + at + offsetof(prof_i_thread_slot, deep_count));
    mark_ended_entries(s, at, has_losses);
  }
}

void prof_i_snapshot_keep_steady_slots(const prof_i_snapshot *s) {
  uint64_t offset = PROF_I_FIRST_UNIT_OFFSET;
  for (uint64_t at; (at = next_slot(s, &offset)) != 0;) keep_steady_entries(s, at);
}
