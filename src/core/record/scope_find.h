/* Finds a thread's open scopes, and the one that began last: by hints if they hold, else by a
   search. Also finds the scope of an end on its own thread, and takes it out of another thread's
   slot. Only for scope_slow.c and scope_end_slow.c. */
#ifndef PROF_CORE_RECORD_SCOPE_FIND_H
#define PROF_CORE_RECORD_SCOPE_FIND_H

#include "../buffer/clock.h"
#include "open_stack.h"

static inline uint64_t prof_i_hint_load(const uint64_t *hint) {
  return __atomic_load_n(hint, __ATOMIC_RELAXED);
}
static inline void prof_i_hint_store(uint64_t *hint, uint64_t to) {
  __atomic_store_n(hint, to, __ATOMIC_RELAXED);
}

static inline uint64_t prof_i_open_index_of(const prof_i_thread *thread,
                                            const prof_i_open_entry *open) {
  const prof_i_thread_slot *const slot = thread->slot;
  const bool is_shown = open >= slot->open && open <= &slot->open[PROF_I_OPEN_COUNT];
  return is_shown ? (uint64_t)(open - slot->open)
                  : (uint64_t)(open - thread->deep) + 1 + PROF_I_OPEN_COUNT;
}

/* A handler in between has raised the count: then ours is not the newest any more, whatever is left
   of its words here. */
static inline void prof_i_newest_set(prof_i_newest_scope *newest, uint64_t count, uint64_t start,
                                     uint64_t open_index) {
  newest->start = start;
  newest->open_index = open_index;
  PROF_I_SIGNAL_FENCE();
  newest->at_count = count;
}

/* Of a block: its number, which prof_i_open_blocks_set() takes once it has its start. */
static inline uint64_t prof_i_open_blocks_claim(prof_i_thread *thread) {
  return prof_i_claim(&thread->begun.count, 1);
}
static inline void prof_i_open_blocks_set(prof_i_thread *thread, uint64_t number, uint64_t start,
                                          uint64_t open_index) {
  thread->begun.blocks[number % PROF_I_OPEN_BLOCKS_COUNT].open_index = open_index;
  thread->begun.blocks[number % PROF_I_OPEN_BLOCKS_COUNT].start = start;
}
/* This block ends, and removes all that began later. A handler in between leaves the count as it
   was. */
static inline void prof_i_open_blocks_end(prof_i_thread *thread, uint64_t count, uint64_t number) {
  __atomic_compare_exchange_n(&thread->begun.count, &count, number, false, __ATOMIC_RELAXED,
                              __ATOMIC_RELAXED);
}
/* The last one ends. */
static inline void prof_i_open_blocks_end_last(prof_i_thread *thread, uint64_t start) {
  const uint64_t count = __atomic_load_n(&thread->begun.count, __ATOMIC_RELAXED);
  if (count && thread->begun.blocks[(count - 1) % PROF_I_OPEN_BLOCKS_COUNT].start == start)
    prof_i_open_blocks_end(thread, count, count - 1);
}

/* Where scopes with a start may be: the last PROF_I_HINT_WAYS that were put there, of that many
   places. These are hints: the entry's start tells whether one holds. NULL: there are no deep
   entries, so no hints. */
enum { PROF_I_HINT_WAYS = 4 };
static inline uint32_t *prof_i_find_hints(const prof_i_thread *thread, uint64_t start,
                                          uint64_t count) {
  prof_i_open_entry *const deep = __atomic_load_n(&thread->deep, __ATOMIC_RELAXED);
  if (!deep) return NULL;
  const uint64_t hash = (start >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 32;
  return (uint32_t *)(deep + PROF_I_DEEP_COUNT) + (hash & (count - PROF_I_HINT_WAYS));
}

/* Few places stay in the nearest caches. */
static inline void prof_i_find_remember(const prof_i_thread *thread, uint64_t start,
                                        uint64_t open_index) {
  const bool are_few = thread->slot->deep < PROF_I_HINT_COUNT_FEW / 8;
  uint32_t *const it =
      prof_i_find_hints(thread, start, are_few ? PROF_I_HINT_COUNT_FEW : PROF_I_HINT_COUNT);
  if (!it) return;
  for (int i = PROF_I_HINT_WAYS - 1; i > 0; i--) it[i] = it[i - 1];
  it[0] = (uint32_t)open_index;
}

/* What the end needs of a scope, independent of the place of its entry. */
typedef struct prof_i_ended_scope {
  uint64_t start, end; /* ticks << 4; ticks */
  uint64_t tag;        /* of the thread that began it, or 0: see open_stack.h */
  uint64_t packed;
  uint32_t flags;    /* PROF_I_FLAG_OTHER_THREAD, PROF_I_FLAG_NO_DETAILS */
  uint64_t *payload; /* own copy, in the own slot's text area; NULL: none */
  uint64_t scratch;  /* payload_top before the copy was put there, or 0 */
  bool is_deep;      /* it had no entry in a slot */
  bool is_old;       /* its entry said that it began in an older session */
  bool is_skipped;   /* it never ended by itself */
  bool has_skipped;  /* its end ended others, too */
  uint64_t index;    /* of its entry, or in thread->deep */
} prof_i_ended_scope;

/* Did the open scope at that place begin after f? The place tells, whatever the counter of another
   processor said. If gaps of the thread were used (entry_between()), the ticks tell.
   open_index: deep ones come after the 64. */
static inline bool prof_i_is_later(const prof_i_thread *thread, uint64_t ticks, uint64_t open_index,
                                   const prof_i_ended_scope *f) {
  if (!prof_i_open_entry_is_open(ticks)) return false;
  if (!thread->is_slow) return open_index > f->index + (f->is_deep ? PROF_I_OPEN_COUNT : 0);
  return prof_i_clock_is_before(f->start >> 4, ticks >> 4);
}

/* Has this thread's entry at that place this scope? */
static inline bool prof_i_find_own_scope_at(prof_i_thread *thread, uint64_t open_index,
                                            prof_i_ended_scope *f) {
  const bool is_deep = open_index > PROF_I_OPEN_COUNT;
  const uint64_t index = is_deep ? open_index - PROF_I_OPEN_COUNT : open_index;
  const prof_i_open_entry *const deep = __atomic_load_n(&thread->deep, __ATOMIC_RELAXED);
  if (is_deep && !deep) return false; /* a handler has just made it */
  const prof_i_open_entry *const open = is_deep ? &deep[index - 1] : &thread->slot->open[index];
  const uint64_t ticks = prof_i_open_entry_ticks(open);
  if ((ticks & ~(uint64_t)PROF_I_OPEN_OLD) != f->start) return false;
  f->is_old = ticks & PROF_I_OPEN_OLD;
  f->packed = open->packed;
  f->is_deep = is_deep;
  f->index = index; /* the entry itself is cleared when its record stands */
  return true;
}

static inline bool prof_i_is_open_index(const prof_i_thread *thread, uint64_t open_index) {
  const prof_i_thread_slot *const slot = thread->slot;
  return open_index > PROF_I_OPEN_COUNT ? open_index - PROF_I_OPEN_COUNT <= slot->deep
                                        : open_index > 0 && open_index <= slot->depth;
}

/* Is it sure that f began last, or, of newest_block, as the last block? */
static inline bool prof_i_is_known_newest(const prof_i_thread *thread,
                                          const prof_i_newest_scope *newest,
                                          const prof_i_ended_scope *f) {
  return thread->is_slow && newest->start == f->start && newest->at_count == newest->begun_count;
}

/* Is it the last entry, and so the last that began? */
static inline bool prof_i_is_last_entry(const prof_i_thread *thread, const prof_i_ended_scope *f) {
  const prof_i_thread_slot *const slot = thread->slot;
  return !thread->is_slow &&
         (f->is_deep ? slot->deep == f->index : slot->deep == 0 && slot->depth == f->index);
}

static inline prof_i_open_entry *prof_i_entry_of(prof_i_thread *thread,
                                                 const prof_i_ended_scope *f) {
  return f->is_deep ? &thread->deep[f->index - 1] : &thread->slot->open[f->index];
}

/* The entry is over, and stays until trim() takes it off. */
static inline void prof_i_leave_entry_gone(prof_i_thread *thread, const prof_i_ended_scope *f) {
  if (f->is_deep) __atomic_fetch_add(&thread->slot->deep_gone, 1, __ATOMIC_RELAXED);
  prof_i_open_entry_set(prof_i_entry_of(thread, f), PROF_I_OPEN_GONE);
  uint64_t *const hint = f->is_deep ? &thread->deep_gap : &thread->shown_gap;
  const uint64_t at = f->is_deep ? f->index - 1 : f->index;
  if (at < prof_i_hint_load(hint)) prof_i_hint_store(hint, at);
  if (!f->is_deep) prof_i_thread_note_gap(thread);
}

/* Where it is known to be, or own entries from the top down: mostly it is the first. Owner
   thread. */
bool prof_i_find_own_scope(prof_i_thread *thread, prof_i_ended_scope *f);
/* Is it the open scope that began last? Owner thread. */
bool prof_i_is_newest_of(const prof_i_thread *thread, const prof_i_ended_scope *f);

/* With the gate closed the whole slot may become zeros at any moment, when its arena goes: then not
   less than that. */
static inline void prof_i_decrement_if_equal(uint64_t *count, uint64_t from) {
  __atomic_compare_exchange_n(count, &from, from - 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* Takes entries off the top whose scopes are over without their end here. Not whatever is empty:
   this may be a handler that came in the midst of a begin, whose entry has no start yet. Owner
   thread. */
void prof_i_open_stack_trim(prof_i_thread *thread);

/* Where a scope is open on another thread. Past the gate, or between prof_i_thread_slots_acquire()
   and its release: slots stay mapped. */
typedef struct prof_i_remote_scope {
  prof_i_thread *thread;
  prof_i_thread_slot *slot;
  prof_i_open_entry *open; /* NULL: nowhere */
  uint64_t ticks, packed;
  bool is_deep;
  bool counts_deep; /* taken: it counted as a deep one; it may have been on its way to an entry */
} prof_i_remote_scope;

/* From the top down, since entries move down (compact.h). thread: whose entries are left out, or
   NULL. only_by_call: blocks are left out, too. handle: see prof_i_scope_end_slow(). */
prof_i_remote_scope prof_i_find_remote_scope(const prof_i_thread *thread, uint64_t handle,
                                             bool only_by_call);
/* Whoever swaps it has it. Its own thread may be marking it meanwhile, and takes what is gone off
   its counts at once: so those come first. An entry that counts stays, as taken, until
   prof_i_remote_scope_finish(). False: it has been ended, or has moved. */
bool prof_i_remote_scope_take(prof_i_remote_scope *p);
/* Finds it and takes it out, where its record is of no use. False: it is nowhere. */
bool prof_i_remote_scope_find_take(const prof_i_thread *thread, uint64_t handle, bool only_by_call,
                                   prof_i_remote_scope *at);
/* Does this capture count it as a deep one? Not if its thread has not come here yet: it will not
   bring what is over. */
bool prof_i_remote_scope_is_deep(const prof_i_remote_scope *p);
/* Its record stands, or its loss is counted. */
void prof_i_remote_scope_finish(const prof_i_remote_scope *p);

#endif
