/* What the files of threads share: state.c (data), thread.c (attach and slots), thread_exit.c,
   thread_registry.c (all threads). Nobody else includes it; thread.h has what others use. */
#ifndef PROF_CORE_BUFFER_THREAD_INTERNAL_H
#define PROF_CORE_BUFFER_THREAD_INTERNAL_H

#include <stdbool.h>

#include "../record/open_stack.h"
#include "thread.h"

enum {
  PROF_I_NO_EPOCH = -1,         /* an epoch that no site has */
  PROF_I_THREAD_SEARCH_MIN = 16 /* threads made: see thread_take_free() */
};

/* In state.c. The slot of a thread outside the fast path: full, so that no begin takes an entry in
   it. Read only. */
extern prof_i_thread_slot prof_i_no_slot __attribute__((visibility("hidden")));

/* ---- thread_registry.c ---- */

/* Another thread takes the place of an exited one: keeps serial and tid for
   prof_i_thread_serial_of(). */
void prof_i_thread_remember_exited(const prof_i_thread *thread);

/* Has the thread ended without saying so? Only as far as it can be seen without a system call. */
bool prof_i_thread_has_died(const prof_i_thread *thread);

/* True for one of the callers that find the thread ended: that one frees it. */
bool prof_i_thread_take_ended(prof_i_thread *thread);

/* ---- thread_exit.c ---- */

/* The calling thread's end will be seen from now on. is_in_vfork: this is a child of vfork(). */
void prof_i_thread_watch_exit(prof_i_thread *thread, uint64_t pid, uint64_t tid, bool is_in_vfork);

/* The capture takes what an ended thread leaves. Past the gate. */
void prof_i_thread_reclaim(prof_i_thread *thread);

/* Frees an ended thread that the caller has taken. Past the gate. */
void prof_i_thread_free(prof_i_thread *thread);

/* ---- thread.c ---- */

/* Other threads read it, even while the slot gets its next owner. */
void prof_i_slot_set_deep(prof_i_thread_slot *slot, uint64_t count);

/* Empties all entries, except those that another thread is ending: the next owner's entries begin
   above them. */
void prof_i_slot_clear_open(prof_i_thread_slot *slot);

/* Moves the losses that were counted in the slot of a replaced arena to the arena in force. Owner,
   or any thread after its end. Past the gate. */
void prof_i_slot_write_left_out(prof_i_thread_slot *old);

/* Is another thread ending the scope of this entry? */
static inline bool prof_i_entry_is_taken(uint64_t ticks) {
  return prof_i_open_entry_is_open(ticks) && (ticks & PROF_I_OPEN_ENDED) == PROF_I_OPEN_TAKEN;
}

/* The prof_i_thread of a virtual thread; prof_i_no_thread: it has none in this process, as in a
   forked child. NULL is allowed. */
static inline prof_i_thread *prof_i_virtual_thread_owner(
    const prof_i_virtual_thread *virtual_thread) {
  prof_i_thread *const thread =
      virtual_thread ? __atomic_load_n(&virtual_thread->thread, __ATOMIC_RELAXED) : NULL;
  return thread && thread->process == prof_i_threads.process ? thread : &prof_i_no_thread;
}

#endif
