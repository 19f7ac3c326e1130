/* The words of an open scope's entry, and what the files of scopes share. The fast path is in
   scope.c and scope_argument.c, the unusual cases in scope_slow.c and scope_end_slow.c. The
   payloads of open scopes are in payload_area.c. */
#ifndef PROF_CORE_RECORD_OPEN_STACK_H
#define PROF_CORE_RECORD_OPEN_STACK_H

#include <prof/scope.h>

#include "../../base/port.h"
#include "../../format/layout.h"
#include "../buffer/thread.h"

enum {
  PROF_I_TYPE_PLAIN = 0,
  PROF_I_TYPE_LONG = 1,
  PROF_I_PACKED_SITE_SHIFT = 4,
  PROF_I_PACKED_OFFSET_SHIFT = 24,
  PROF_I_PACKED_WORDS_SHIFT = 48
};

/* Site and type: the low bits of a record's word 1. */
static inline uint64_t prof_i_packed_record_word(uint64_t packed) {
  return packed & ((1u << PROF_I_PACKED_OFFSET_SHIFT) - 1) & ~(uint64_t)PROF_I_OPEN_BY_CALL;
}
static inline uint64_t prof_i_packed_payload_offset(uint64_t packed) {
  return packed >> PROF_I_PACKED_OFFSET_SHIFT & 0xffffff;
}
static inline uint64_t prof_i_details_by_call(const prof_details *details) {
  return details->flags & PROF_I_BY_CALL ? PROF_I_OPEN_BY_CALL : 0;
}
/* Does the scope add nothing to its site? */
static inline bool prof_i_details_are_bare(const prof_details *details) {
  return !(details->flags & (PROF_I_ON_STREAM | PROF_I_ASYNC)) && details->args.count == 0 &&
         details->device.type == PROF_DEVICE_CPU && details->device.index == 0;
}
static inline bool prof_i_details_are_plain(const prof_details *details) {
  const uint32_t both = PROF_I_NAME_LITERAL | PROF_I_CATEGORY_LITERAL;
  return (details->flags & both) == both && prof_i_details_are_bare(details);
}
static inline void prof_i_open_entry_set(prof_i_open_entry *open, uint64_t ticks) {
  __atomic_store_n(&open->ticks, ticks, __ATOMIC_RELEASE);
}

/* By one instruction, because a handler may do the same. Only the thread that cleared an entry may
   pop it. */
static inline bool prof_i_open_entry_clear_gone(prof_i_open_entry *open) {
  uint64_t ticks = PROF_I_OPEN_GONE;
  return __atomic_load_n(&open->ticks, __ATOMIC_RELAXED) == ticks &&
         __atomic_compare_exchange_n(&open->ticks, &ticks, 0, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED);
}

/* With the gate closed the slot may become zeros at any moment. */
static inline void prof_i_slot_decrement_gone(prof_i_thread_slot *slot) {
  uint64_t gone = __atomic_load_n(&slot->deep_gone, __ATOMIC_RELAXED);
  while (gone && !__atomic_compare_exchange_n(&slot->deep_gone, &gone, gone - 1, false,
                                              __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

/* slot->open[depth]. The offset is hidden from gcc, which would spend two more instructions on the
   address: see docs/explanation/performance.md. */
static inline prof_i_open_entry *prof_i_open_entry_at(prof_i_thread_slot *slot, uint64_t depth) {
  uint64_t offset = depth * sizeof slot->open[0];
  __asm__("" : "+r"(offset));
  return (prof_i_open_entry *)((char *)slot->open + offset);
}

/* The next entry of the owner's, which had room for it: empty, and so it stays where it is until it
   is filled, whatever a handler does. */
static inline prof_i_open_entry *prof_i_open_entry_push(prof_i_thread_slot *slot) {
  prof_i_count_up(&slot->depth);
  PROF_I_SIGNAL_FENCE();
  return prof_i_open_entry_at(slot, __atomic_load_n(&slot->depth, __ATOMIC_RELAXED));
}

/* When a scope begins: later than all that began on this thread before, since ends find their
   scopes by it. And when it ends: not before one that began inside it. Nothing on x86-64. Owner
   thread only; a handler in between ends what it begins. */
static inline uint64_t prof_i_scope_begin_ticks(prof_i_thread *thread, uint64_t ticks) {
#ifdef PROF_I_COARSE_COUNTER
  if (PROF_I_UNLIKELY(ticks <= thread->latest)) ticks = thread->latest + 1;
  thread->latest = ticks;
#else
  (void)thread;
#endif
  return ticks;
}
static inline uint64_t prof_i_scope_end_ticks(const prof_i_thread *thread, uint64_t ticks) {
#ifdef PROF_I_COARSE_COUNTER
  if (PROF_I_UNLIKELY(ticks < thread->latest)) ticks = thread->latest;
#else
  (void)thread;
#endif
  return ticks;
}

/* The same of the counter now, shifted as entries and records have it. */
static inline uint64_t prof_i_scope_start_now(prof_i_thread *thread) {
#ifdef PROF_I_COARSE_COUNTER
  return prof_i_scope_begin_ticks(thread, prof_i_counter()) << 4;
#else
  (void)thread;
  return prof_i_counter_shifted();
#endif
}
static inline uint64_t prof_i_scope_end_now(const prof_i_thread *thread) {
#ifdef PROF_I_COARSE_COUNTER
  return prof_i_scope_end_ticks(thread, prof_i_counter()) << 4;
#else
  (void)thread;
  return prof_i_counter_shifted();
#endif
}

/* What a begin by call returns: the scope's start, and in its low bits, which a start leaves 0, the
   tag of the thread that began it. Two threads' scopes may begin at one tick. The end looks on
   threads with that tag alone. Threads have tags from 1 to 15 in turn, so of 16 threads two share
   one. Entries and records have the start without a tag, and so have blocks: tag 0 fits every
   thread. */
static inline uint64_t prof_i_handle_with_tag(uint64_t start) {
  return PROF_I_LIKELY(start != 0) ? start | prof_i_this_thread->tag : 0;
}
static inline uint64_t prof_i_handle_tag(uint64_t handle) { return handle & 15; }
static inline bool prof_i_handle_may_be_of(const prof_i_thread *thread, uint64_t tag) {
  return PROF_I_LIKELY(tag == thread->tag) || tag == 0;
}

/* An end has claimed room that does not fit. Perhaps its capture was replaced just after the claim,
   and its memory reads as zeros now. Then the old capture counts the scope as unfinished
   (header.is_left), so it must not be counted again. A claim made after the replacement would have
   an offset below PROF_I_HEAD_BYTES. */
static inline void prof_i_scope_note_failed_claim(prof_i_thread *thread, const prof_i_head *chunk,
                                                  uint64_t at, uint64_t start) {
  if (chunk != &thread->full && chunk->limit == 0 && at >= PROF_I_HEAD_BYTES)
    thread->unfinished_claim = start;
}

/* Another thread may be ending the scope. */
static inline uint64_t prof_i_open_entry_ticks(const prof_i_open_entry *open) {
  return __atomic_load_n(&open->ticks, __ATOMIC_RELAXED);
}

/* Whatever the fast path cannot do. handle: the start, perhaps with a tag. ticks: when it ended, or
   0: now. Keep errno. Signal-safe. */
PROF_I_COLD uint64_t prof_i_scope_begin_slow(prof_site *site, const prof_details *details);
/* The same of a scope whose name has that state: see name.h. */
PROF_I_COLD uint64_t prof_i_scope_begin_slow_named(prof_site *site, const prof_details *details,
                                                   uint64_t name_state);
PROF_I_COLD void prof_i_scope_end_slow(uint64_t handle, uint64_t ticks);
/* Is the scope that this thread began then still open, in the session in force? */
PROF_I_COLD bool prof_i_scope_is_open(uint64_t start);

/* Copies the scope's payload into the slot's payload area. Returns the entry's word `packed` for
   the site of that number. new_entry: the entry that is being made. call_site: the number of the
   call site, for its arguments' keys. Owner thread only. */
uint64_t prof_i_payload_area_put(prof_i_thread *thread, prof_i_thread_slot *slot,
                                 const prof_i_open_entry *new_entry, const prof_details *details,
                                 uint32_t call_site, uint32_t number);

/* A scope of this `packed` is over, and others' texts stand behind its own. Any thread. */
void prof_i_payload_area_leave_hole(prof_i_thread *thread, uint64_t packed);

/* Frees what no open scope needs at the end of the payload area, if all open scopes have entries.
   Owner thread only. */
void prof_i_payload_area_trim(prof_i_thread *thread);
/* The same, and the holes before it, when not even the longest payload would fit behind. */
void prof_i_payload_area_make_room(prof_i_thread *thread);

#endif
