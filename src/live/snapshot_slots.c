/* Slots of a snapshot: open scopes, as they were at one moment, and losses. */
#include <string.h>

#include "../reader/capture.h"
#include "live.h"

/* The entry as the arena has it now, at the index that it was copied from, or below, where
   compacting moves it (core/record/compact.h). 0: it has changed in more than its marks. */
static uint64_t steady_entry(const prof_i_snapshot *s, uint64_t offset, size_t i) {
  const prof_i_thread_slot *const slot = (const prof_i_thread_slot *)(s->to + offset);
  const prof_i_open_entry *const from = ((const prof_i_thread_slot *)(s->from + offset))->open;
  const uint64_t copied = slot->open[i].ticks;
  const uint64_t marks = PROF_I_OPEN_COPY | PROF_I_OPEN_OF_DEEP | PROF_I_OPEN_TAKEN;
  for (size_t at = i; at > 0 && (at == i || prof_i_open_entry_is_open(copied)); at--) {
    const uint64_t now = __atomic_load_n(&from[at].ticks, __ATOMIC_ACQUIRE);
    if ((now & ~marks) == (copied & ~marks) &&
        prof_i_snapshot_load(&from[at].packed) == slot->open[i].packed)
      return now;
  }
  return 0;
}

/* Removes entries from the copy that have changed since. The others, with their payloads, were open
   at the same moment. */
static void keep_steady_entries(const prof_i_snapshot *s, uint64_t offset) {
  prof_i_thread_slot *const slot = (prof_i_thread_slot *)(s->to + offset);
  prof_i_snapshot_fence();
  for (size_t i = 1; i <= PROF_I_OPEN_COUNT; i++)
    if (!steady_entry(s, offset, i)) slot->open[i].ticks = 0;
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

static bool is_copied_slot(const prof_i_snapshot *s, uint64_t offset) {
  const prof_i_head *const head = (const prof_i_head *)(s->to + offset);
  return head->magic == PROF_I_EXTENT_MAGIC && head->kind == PROF_I_EXTENT_SLOT;
}

/* All but the ledger. A slot that was not there when the ledgers were copied gets it now. */
static void copy_slot(const prof_i_snapshot *s, uint64_t offset) {
  enum { PACK_TRIES = 100 }; /* a thread may be stopped while it moves entries */
  if (!is_copied_slot(s, offset)) copy_ledger(s, offset);
  const uint64_t *const packs = &((const prof_i_thread_slot *)(s->from + offset))->pack_count;
  uint64_t before;
  int tries = 0;
  do { /* entries that moved during the copy are copied again */
    before = __atomic_load_n(packs, __ATOMIC_ACQUIRE);
    prof_i_snapshot_copy_words(s, offset, offsetof(prof_i_thread_slot, ledger));
    prof_i_snapshot_fence();
  } while (++tries < PACK_TRIES && (before % 2 || prof_i_snapshot_load(packs) != before));
  /* Read again: a scope that opened since has its payload above the first value. */
  const uint64_t payload_top =
      prof_i_snapshot_load(s->from + offset + offsetof(prof_i_thread_slot, payload_top));
  const uint64_t top = payload_top < PROF_I_TEXT_END ? payload_top & ~7ull : PROF_I_TEXT_END;
  if (top > PROF_I_TEXT_OFFSET)
    prof_i_snapshot_copy_words(s, offset + PROF_I_TEXT_OFFSET, top - PROF_I_TEXT_OFFSET);
  keep_steady_entries(s, offset);
}

/* The next slot of the arena, which may have more of them than before. 0: the end. */
static uint64_t next_live_slot(const prof_i_snapshot *s, uint64_t *offset) {
  prof_i_head head;
  for (uint64_t at; (at = prof_i_snapshot_next_of_kind(s, offset, PROF_I_EXTENT_SLOT, &head)) != 0;)
    if (head.bytes >= PROF_I_SLOT_BYTES) return at;
  return 0;
}

/* All ledgers come before all entries: a thread may end a scope of another one's slot. What is
   counted as lost between the two is seen as a change later, and its entry goes. */
void prof_i_snapshot_copy_slots(const prof_i_snapshot *s) {
  uint64_t at;
  prof_i_snapshot_copy_words(s, 0, PROF_I_HEADER_BYTES);
  for (uint64_t offset = PROF_I_FIRST_UNIT_OFFSET; (at = next_live_slot(s, &offset)) != 0;) {
    copy_ledger(s, at);
    prof_i_snapshot_copy_words(s, at, sizeof(prof_i_head));
  }
  prof_i_snapshot_fence();
  for (uint64_t offset = PROF_I_FIRST_UNIT_OFFSET; (at = next_live_slot(s, &offset)) != 0;)
    copy_slot(s, at);
}

static uint64_t chunk_lost_count(const prof_i_thread_slot *slot, int loss) {
  return prof_i_slot_lost(slot, slot->ledger, loss);
}

/* If another thread has taken the slot since, its losses are not those of the copied thread.
   Returns whether anything was lost since its ledger was copied, or was being lost then. */
static bool copy_losses_of_slot(const prof_i_snapshot *s, uint64_t offset) {
  prof_i_thread_slot *const to = (prof_i_thread_slot *)(s->to + offset);
  const prof_i_thread_slot *const from = (const prof_i_thread_slot *)(s->from + offset);
  const uint64_t changes = PROF_I_LEDGER_CHANGES_MASK | PROF_I_LEDGER_SIDE, ledger = to->ledger;
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
  return any != 0 || ((to->ledger ^ ledger) & changes) != 0;
}

/* The next slot that the copy has. 0: the end. */
static uint64_t next_slot(const prof_i_snapshot *s, uint64_t *offset) {
  for (uint64_t at; (at = next_live_slot(s, offset)) != 0;)
    if (((const prof_i_head *)(s->to + at))->magic == PROF_I_EXTENT_MAGIC) return at;
  return 0;
}

/* An entry may have ended since it was copied. Then its scope has a record in the chunk of any
   thread, which index.c finds, or it is counted as lost. Or another thread is ending it: the entry
   still stands, and a note in that thread's ledger may say that it is lost. */
static void mark_ended_entries(const prof_i_snapshot *s, uint64_t offset, bool has_losses) {
  prof_i_thread_slot *const slot = (prof_i_thread_slot *)(s->to + offset);
  for (size_t i = 1; i <= PROF_I_OPEN_COUNT; i++) {
    if (!prof_i_open_entry_is_open(slot->open[i].ticks)) continue;
    const uint64_t now = steady_entry(s, offset, i);
    if (now)
      slot->open[i].ticks |= now & PROF_I_OPEN_TAKEN;
    else if (has_losses)
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
