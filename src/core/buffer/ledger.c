/* See ledger.h. */
#include "ledger.h"

/* What the word becomes when the other side counts. */
static uint64_t ledger_flip_side(uint64_t ledger) {
  const uint64_t changes = PROF_I_LEDGER_CHANGES_MASK;
  const uint64_t next = (ledger & changes) + (UINT64_C(1) << PROF_I_LEDGER_CHANGES_SHIFT);
  return ((ledger & ~changes) | (next & changes)) ^ PROF_I_LEDGER_SIDE;
}

/* Onto the side that does not count. A handler may come in between and use it, too: it leaves the
   side that counts as it was, and another number of changes. */
static void ledger_copy_counts(prof_i_thread_slot *slot, uint64_t ledger, int loss,
                               uint64_t count) {
  const bool side = (ledger & PROF_I_LEDGER_SIDE) != 0;
  for (int i = 0; i < PROF_I_LOSS_WORDS; i++) {
    const uint64_t now = __atomic_load_n(&slot->ended_lost[side][i], __ATOMIC_RELAXED);
    __atomic_store_n(&slot->ended_lost[!side][i], now + (i == loss ? count : 0), __ATOMIC_RELAXED);
  }
}

static bool ledger_swap(prof_i_thread_slot *slot, uint64_t from, uint64_t to) {
  return __atomic_compare_exchange_n(&slot->ledger, &from, to, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED);
}

/* One note more, or less, which hides its entry. */
static uint64_t ledger_hidden_ending(uint64_t ending_index) {
  return 1 + (UINT64_C(1) << (PROF_I_LEDGER_HIDES_SHIFT + ending_index));
}

bool prof_i_ledger_hide(prof_i_thread_slot *slot, uint64_t ledger) {
  const uint64_t ending_index = ledger & PROF_I_LEDGER_COUNT_MASK;
  if (ending_index >= PROF_I_ENDING_COUNT) return false;
  ledger_swap(slot, ledger, ledger + ledger_hidden_ending(ending_index));
  return true;
}

bool prof_i_ledger_show(prof_i_thread_slot *slot, uint64_t ledger, bool has_entry) {
  const uint64_t ending_index = (ledger & PROF_I_LEDGER_COUNT_MASK) - 1;
  return ledger_swap(
      slot, ledger,
      ledger - ledger_hidden_ending(ending_index) + has_entry * PROF_I_LEDGER_ONE_DEEP);
}

prof_i_ledger_saved prof_i_ledger_lose(prof_i_thread_slot *slot, int loss, uint64_t scope) {
  const bool is_deep = scope & PROF_I_ENDING_DEEP;
  prof_i_ledger_saved note = {PROF_I_ENDING_COUNT, {0, 0}};
  if (!is_deep) note = prof_i_ledger_put(slot, scope, 0);
  const uint64_t noted =
      note.ending_index < PROF_I_ENDING_COUNT ? ledger_hidden_ending(note.ending_index) : 0;
  uint64_t now;
  do {
    now = prof_i_ledger_of(slot);
    ledger_copy_counts(slot, now, loss, 1);
  } while (
      !ledger_swap(slot, now, ledger_flip_side(now) + noted + is_deep * PROF_I_LEDGER_ONE_DEEP));
  return note;
}

void prof_i_ledger_settle(prof_i_thread_slot *slot, const prof_i_ledger_saved *note) {
  const uint64_t noted =
      note->ending_index < PROF_I_ENDING_COUNT ? ledger_hidden_ending(note->ending_index) : 0;
  uint64_t now;
  do {
    now = prof_i_ledger_of(slot);
    ledger_copy_counts(slot, now, 0, 0); /* nothing more */
  } while (!ledger_swap(slot, now, ledger_flip_side(now) - noted));
  prof_i_ledger_restore(slot, note);
}

void prof_i_ledger_lose_all(prof_i_thread_slot *slot, int loss, uint64_t count,
                            uint64_t deep_count) {
  const uint64_t now = prof_i_ledger_of(slot);
  ledger_copy_counts(slot, now, loss, count);
  __atomic_store_n(
      &slot->ledger,
      (ledger_flip_side(now) | PROF_I_LEDGER_OVER) + deep_count * PROF_I_LEDGER_ONE_DEEP,
      __ATOMIC_RELEASE);
}

void prof_i_ledger_over(prof_i_thread_slot *slot) {
  const uint64_t marks = PROF_I_LEDGER_OVER | PROF_I_LEDGER_HIDES | PROF_I_LEDGER_COUNT_MASK;
  __atomic_store_n(&slot->ledger, prof_i_ledger_of(slot) & ~marks, __ATOMIC_RELEASE);
}

void prof_i_ledger_open(prof_i_thread_slot *slot, uint64_t deep_count) {
  prof_i_ledger_over(slot);
  const uint64_t ledger = prof_i_ledger_of(slot) | PROF_I_LEDGER_KEPT;
  __atomic_store_n(&slot->ledger, ledger - deep_count * PROF_I_LEDGER_ONE_DEEP, __ATOMIC_RELEASE);
}
