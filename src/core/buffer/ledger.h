/* Counting ends exactly: recorded + lost + open = begun, also if the process is killed between any
   two instructions.

   A scope is open by its entry in a slot, or if it has none, by a difference of two counts. Its end
   changes two places. One says that it is recorded or lost, the other that it is no longer open. A
   reader must count it once at any moment between.

   - A plain end on its own thread: the entry has the record's start, and a reader hides it.

   - A scope without an entry: the end notes the start in slot->endings[], and a reader that finds
     the record counts one open scope less. One store then takes away both the note and the scope.

   - A loss: the slot has two sides of counts. The other side gets the counts with the loss in it.
     One store then chooses that side, and says that the entry with this start does not count.

   - A scope of another thread: its entry is marked as taken (PROF_I_OPEN_TAKEN). A record of any
     thread hides such an entry, or the note of a loss does.

   What a handler does in between comes on top, and it leaves the number of notes and the side as it
   found them. So what it has interrupted sees by one compare-and-swap whether to count again. */
#ifndef PROF_CORE_BUFFER_LEDGER_H
#define PROF_CORE_BUFFER_LEDGER_H

#include "../../base/port.h"
#include "../../format/layout.h"

/* What prof_i_ledger_begin() and prof_i_ledger_lose() have noted. */
typedef struct prof_i_ledger_saved {
  uint64_t
      ending_index; /* PROF_I_ENDING_COUNT: there was no room. Only a kill just then miscounts */
  prof_i_ending before; /* of what we, a handler, have interrupted */
} prof_i_ledger_saved;

static inline prof_i_ledger_saved prof_i_ledger_put(prof_i_thread_slot *slot, uint64_t scope,
                                                    uint64_t slots) {
  prof_i_ledger_saved note = {prof_i_ledger_of(slot) & PROF_I_LEDGER_COUNT_MASK, {0, 0}};
  if (note.ending_index >= PROF_I_ENDING_COUNT) return note;
  prof_i_ending *const it = &slot->endings[note.ending_index];
  note.before = *it;
  __atomic_store_n(&it->scope, scope, __ATOMIC_RELAXED);
  __atomic_store_n(&it->slots, slots, __ATOMIC_RELAXED);
  PROF_I_SIGNAL_FENCE();
  return note;
}

static inline void prof_i_ledger_restore(prof_i_thread_slot *slot,
                                         const prof_i_ledger_saved *note) {
  PROF_I_SIGNAL_FENCE();
  if (note->ending_index >= PROF_I_ENDING_COUNT) return;
  prof_i_ending *const it = &slot->endings[note->ending_index];
  __atomic_store_n(&it->scope, note->before.scope, __ATOMIC_RELAXED);
  __atomic_store_n(&it->slots, note->before.slots, __ATOMIC_RELAXED);
}

/* A record is about to be written that claims so many slots. scope: see prof_i_ending. Owner
   thread. */
static inline prof_i_ledger_saved prof_i_ledger_begin(prof_i_thread_slot *slot, uint64_t scope,
                                                      uint64_t slots) {
  const prof_i_ledger_saved note = prof_i_ledger_put(slot, scope, slots);
  if (note.ending_index < PROF_I_ENDING_COUNT) prof_i_add(&slot->ledger, 1);
  PROF_I_SIGNAL_FENCE();
  return note;
}

/* The record stands, or there is none. deep_count: of scopes without an entry, those that are over
   with it. */
static inline void prof_i_ledger_end(prof_i_thread_slot *slot, const prof_i_ledger_saved *note,
                                     uint64_t deep_count) {
  PROF_I_SIGNAL_FENCE();
  const uint64_t one = note->ending_index < PROF_I_ENDING_COUNT;
  prof_i_add(&slot->ledger, deep_count * PROF_I_LEDGER_ONE_DEEP - one);
  prof_i_ledger_restore(slot, note);
}

/* Counts an open scope as lost. It has no entry: it is not open any more. It has one: the note says
   so until prof_i_ledger_settle(), and meanwhile the entry goes. Owner thread. */
prof_i_ledger_saved prof_i_ledger_lose(prof_i_thread_slot *slot, int loss, uint64_t scope);
void prof_i_ledger_settle(prof_i_thread_slot *slot, const prof_i_ledger_saved *note);

/* Of a deep scope that gets an entry. What was put last hides the entry, where the ledger is as it
   was. False: there is no room for that. Owner thread. */
bool prof_i_ledger_hide(prof_i_thread_slot *slot, uint64_t ledger);
/* The entry counts from now on, and not as a deep one. has_entry: unless another thread has ended
   it. False: the ledger has changed. */
bool prof_i_ledger_show(prof_i_thread_slot *slot, uint64_t ledger, bool has_entry);

/* The thread that has the slot has ended. So many of its scopes are lost with it: those without an
   entry, deep_count of them, and those whose entries are marked as PROF_I_OPEN_ENDED. The caller,
   which reclaims the thread, clears these before it calls prof_i_ledger_over(), also if there were
   none. */
void prof_i_ledger_lose_all(prof_i_thread_slot *slot, int loss, uint64_t count,
                            uint64_t deep_count);
void prof_i_ledger_over(prof_i_thread_slot *slot);

/* A thread gets the slot, and brings so many open scopes that have no entry. */
void prof_i_ledger_open(prof_i_thread_slot *slot, uint64_t deep_count);

#endif
