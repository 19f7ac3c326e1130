/* See compact.h. */
#include "compact.h"

#include "../../base/fault.h"
#include "../buffer/ledger.h"
#include "../buffer/observer.h"
#include "../buffer/thread.h"
#include "open_stack.h"

/* By one instruction: a handler may be at the same, or another thread. */
static bool entry_swap_ticks(prof_i_open_entry *open, uint64_t from, uint64_t to) {
  return __atomic_compare_exchange_n(&open->ticks, &from, to, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED);
}

static bool entry_is_copy_of(uint64_t ticks, uint64_t start) {
  return (ticks & PROF_I_OPEN_COPY) && prof_i_open_entry_start(ticks) == start;
}

/* Step 3. False: the scope has been ended meanwhile. */
static bool move_leave_upper(const prof_i_entry_move *m) {
  for (uint64_t ticks = prof_i_open_entry_ticks(m->from);;
       ticks = prof_i_open_entry_ticks(m->from)) {
    if (ticks == PROF_I_OPEN_MOVED) return true;
    if (prof_i_open_entry_start(ticks) != m->start || ticks & PROF_I_OPEN_TAKEN) return false;
    if (entry_swap_ticks(m->from, ticks, PROF_I_OPEN_MOVED))
      return true; /* else it is marked as old */
  }
}

/* Step 4, or the copy goes. False: the scope has been ended meanwhile, or a handler was faster. */
static bool move_keep_copy(const prof_i_entry_move *m, bool is_moved) {
  const uint64_t marks = PROF_I_OPEN_COPY | PROF_I_OPEN_OF_DEEP;
  for (uint64_t ticks; entry_is_copy_of(ticks = prof_i_open_entry_ticks(m->to), m->start);)
    if (entry_swap_ticks(m->to, ticks, is_moved ? ticks & ~marks : PROF_I_OPEN_GONE)) {
      if (!is_moved && m->is_to_deep) __atomic_fetch_add(&m->slot->deep_gone, 1, __ATOMIC_RELAXED);
      return true;
    }
  return false;
}

/* Step 5. */
static void move_free_upper(const prof_i_entry_move *m) {
  if (prof_i_open_entry_ticks(m->from) != PROF_I_OPEN_MOVED) return;
  if (m->is_from_deep) __atomic_fetch_add(&m->slot->deep_gone, 1, __ATOMIC_RELAXED);
  if (!entry_swap_ticks(m->from, PROF_I_OPEN_MOVED, PROF_I_OPEN_GONE) && m->is_from_deep)
    prof_i_slot_decrement_gone(m->slot); /* a handler has done it */
}

/* Is the last thing that the slot's ledger notes that this scope's entry does not count yet? */
static bool move_is_hidden(const prof_i_entry_move *m, uint64_t ledger) {
  const uint64_t count = prof_i_ledger_endings(ledger);
  return count && prof_i_ledger_hides(ledger, count - 1) &&
         m->slot->endings[count - 1].scope == (m->start | PROF_I_ENDING_MOVES);
}

/* Step 4 of a deep scope that gets an entry in the slot: from one store on it counts there, and not
   as a deep one. A handler that comes in between does what is left. Another thread may end it
   before, as a deep one. */
static void move_out_of_deep(const prof_i_entry_move *m) {
  prof_i_ledger_saved note = {PROF_I_ENDING_COUNT, {0, 0}};
  bool counts = false;
  for (;;) {
    const uint64_t ledger = prof_i_ledger_of(m->slot);
    PROF_I_SIGNAL_FENCE();
    if (move_is_hidden(m, ledger)) {
      counts |= move_keep_copy(m, true) ||
                prof_i_open_entry_start(prof_i_open_entry_ticks(m->to)) == m->start;
      if (prof_i_ledger_show(m->slot, ledger, counts)) break;
    } else if (!entry_is_copy_of(prof_i_open_entry_ticks(m->to), m->start)) {
      break;
    } else {
      const prof_i_ledger_saved again =
          prof_i_ledger_put(m->slot, m->start | PROF_I_ENDING_MOVES, 0);
      if (note.ending_index == PROF_I_ENDING_COUNT) note = again;
      if (!prof_i_ledger_hide(m->slot, ledger)) { /* no room */
        if (move_keep_copy(m, true)) prof_i_claim(&m->slot->ledger, PROF_I_LEDGER_ONE_DEEP);
        break;
      }
    }
  }
  prof_i_ledger_restore(m->slot, &note);
}

/* Each step may have been done, by a handler that came in between. */
static void move_finish(const prof_i_entry_move *m) {
  if (!entry_is_copy_of(prof_i_open_entry_ticks(m->to), m->start) &&
      prof_i_open_entry_ticks(m->from) != PROF_I_OPEN_MOVED)
    return;
  const bool is_moved = move_leave_upper(m);
  if (is_moved && m->is_from_deep && !m->is_to_deep)
    move_out_of_deep(m);
  else
    move_keep_copy(m, is_moved);
  move_free_upper(m);
}

void prof_i_compact_finish(prof_i_thread *thread) {
  if (PROF_I_LIKELY(!thread->move.to)) return;
  const prof_i_entry_move m = thread->move;
  move_finish(&m);
}

static prof_i_open_entry *entry_at(prof_i_thread *thread, prof_i_thread_slot *slot,
                                   uint64_t open_index) {
  return open_index <= PROF_I_OPEN_COUNT ? &slot->open[open_index]
                                         : &thread->deep[open_index - PROF_I_OPEN_COUNT - 1];
}

/* The first place in use, from that one on. 0: there is none. */
static uint64_t next_open_index(const prof_i_thread_slot *slot, uint64_t open_index) {
  if (open_index > slot->depth && open_index <= PROF_I_OPEN_COUNT)
    open_index = PROF_I_OPEN_COUNT + 1;
  return open_index <= PROF_I_OPEN_COUNT || open_index - PROF_I_OPEN_COUNT <= slot->deep
             ? open_index
             : 0;
}

/* The first place of the gap that reaches up to that one, which is free. */
static uint64_t lowest_free_index(prof_i_thread *thread, prof_i_thread_slot *slot,
                                  uint64_t open_index) {
  if (open_index <= PROF_I_OPEN_COUNT && open_index > slot->depth) open_index = slot->depth + 1;
  while (open_index > 1 &&
         prof_i_open_entry_ticks(entry_at(thread, slot, open_index - 1)) == PROF_I_OPEN_GONE)
    open_index--;
  return open_index;
}

/* Step 1. */
static bool move_take_lower(prof_i_thread *thread, prof_i_thread_slot *slot, uint64_t to) {
  if (to <= PROF_I_OPEN_COUNT && to > slot->depth) { /* what is deep comes into the slot */
    if (slot->depth >= PROF_I_OPEN_COUNT || to != slot->depth + 1) return false;
    return prof_i_open_entry_push(slot) == &slot->open[to];
  }
  if (!prof_i_open_entry_clear_gone(entry_at(thread, slot, to))) return false;
  if (to > PROF_I_OPEN_COUNT) prof_i_slot_decrement_gone(slot);
  return true;
}

/* False: no more may move. A handler may come between any two instructions. If it ends the scope,
   or moves the thread to another arena, the slot is out of use, and a move that had begun is
   finished. */
static bool entry_move_down(prof_i_thread *thread, prof_i_thread_slot *slot, uint64_t from,
                            uint64_t to) {
  prof_i_open_entry *const upper = entry_at(thread, slot, from);
  prof_i_open_entry *const lower = entry_at(thread, slot, to);
  const bool is_from_deep = from > PROF_I_OPEN_COUNT, is_to_deep = to > PROF_I_OPEN_COUNT;
  if (!move_take_lower(thread, slot, to)) return false;
  const uint64_t ticks = prof_i_open_entry_ticks(upper);
  if (!prof_i_open_entry_is_open(ticks) || ticks & PROF_I_OPEN_TAKEN) { /* it has just been ended */
    if (is_to_deep) __atomic_fetch_add(&slot->deep_gone, 1, __ATOMIC_RELAXED);
    prof_i_open_entry_set(lower, PROF_I_OPEN_GONE);
    return true;
  }
  const prof_i_entry_move was = thread->move;
  const prof_i_entry_move m = {upper, lower,        prof_i_open_entry_start(ticks),
                               slot,  is_from_deep, is_to_deep};
  thread->move.to = NULL;
  PROF_I_SIGNAL_FENCE();
  thread->move.from = upper;
  thread->move.start = m.start;
  thread->move.slot = slot;
  thread->move.is_from_deep = is_from_deep;
  thread->move.is_to_deep = is_to_deep;
  PROF_I_SIGNAL_FENCE();
  thread->move.to = lower;
  PROF_I_SIGNAL_FENCE();
  __atomic_store_n(&lower->packed, __atomic_load_n(&upper->packed, __ATOMIC_RELAXED),
                   __ATOMIC_RELAXED);
  if (PROF_I_FAULT(EARLY_MOVE)) prof_i_open_entry_set(upper, PROF_I_OPEN_MOVED);
  prof_i_open_entry_set(lower, ticks | (PROF_I_FAULT(UNMARKED_COPY) ? 0 : PROF_I_OPEN_COPY) |
                                   (is_from_deep && !is_to_deep ? PROF_I_OPEN_OF_DEEP : 0));
  PROF_I_SIGNAL_FENCE();
  const bool goes_on = __atomic_load_n(&thread->slot, __ATOMIC_RELAXED) == slot;
  if (goes_on) move_finish(&m);
  PROF_I_SIGNAL_FENCE();
  thread->move.to = NULL;
  PROF_I_SIGNAL_FENCE();
  if (was.to) thread->move = was; /* of what we, a handler, have interrupted */
  return goes_on;
}

void prof_i_compact_above(prof_i_thread *thread, uint64_t open_index) {
  prof_i_thread_slot *const slot = thread->slot;
  const bool was_busy = thread->is_text_busy;
  uint64_t to = lowest_free_index(thread, slot, open_index);
  __atomic_fetch_add(&slot->pack_count, 1, __ATOMIC_ACQ_REL);
  thread->is_text_busy = true; /* two entries may say where one text is */
  PROF_I_SIGNAL_FENCE();
  for (uint64_t from = open_index; (from = next_open_index(slot, from)) != 0; from++) {
    const uint64_t ticks = prof_i_open_entry_ticks(entry_at(thread, slot, from));
    if (ticks == PROF_I_OPEN_GONE) continue;
    if (!prof_i_open_entry_is_open(ticks)) break; /* a begin is under way */
    if (from > to && !entry_move_down(thread, slot, from, to)) break;
    to++;
  }
  PROF_I_SIGNAL_FENCE();
  thread->is_text_busy = was_busy;
  __atomic_fetch_add(&slot->pack_count, 1, __ATOMIC_ACQ_REL);
}

const prof_i_observer prof_i_compact_observer = {.entries_needed = prof_i_compact_finish};
