/* What the files of threads share: thread.c (attach), thread_registry.c (finding, freeing, all
   threads), thread_exit.c, thread_slot.c, thread_loss.c, virtual_thread.c. Nobody else includes it;
   thread.h has what others use. */
#ifndef PROF_CORE_BUFFER_THREAD_INTERNAL_H
#define PROF_CORE_BUFFER_THREAD_INTERNAL_H

#include <stdbool.h>

#include "../record/open_stack.h"
#include "thread.h"

/* An epoch that no site has. */
enum { PROF_I_NO_EPOCH = -1 };

/* In thread.c. The slot of a thread outside the fast path: full, so that no begin takes an entry in
   it. Read only. */
extern prof_i_thread_slot prof_i_no_slot __attribute__((visibility("hidden")));

/* In thread_registry.c. Any thread reads and writes, by atomics, unless a member says otherwise. */
typedef struct prof_i_thread_registry {
  prof_i_thread *first; /* all threads; pushed with release */
  uint64_t serials;     /* the last serial given */
  uint64_t process;     /* raised in each forked child, before it has threads; else constant */
  uint32_t looking;     /* threads that look at the slots of others */
  /* prof_i_thread structs made, and at how many to search for ended threads: see
     threads_free_ended() */
  uint32_t made, search_at;
  uint32_t exited_next; /* the next place in the list of exited threads */
} prof_i_thread_registry;
extern prof_i_thread_registry prof_i_threads __attribute__((visibility("hidden")));

/* ---- thread_registry.c ---- */

/* A prof_i_thread that is free, preferably with a slot in this arena, or a new one. NULL: no
   memory. Past the gate. */
prof_i_thread *prof_i_thread_take_free(void);

/* Another thread takes the place of an exited one: keeps serial and tid for
   prof_i_thread_serial_of(). */
void prof_i_thread_remember_exited(const prof_i_thread *thread);

/* The kernel gave this tid to the calling thread, which does not show it yet. So a thread that
   shows it has ended, and is freed. Past the gate. */
void prof_i_threads_free_with(uint64_t pid, uint64_t tid);

/* ---- thread_exit.c ---- */

/* The calling thread's end will be seen from now on. is_in_vfork: this is a child of vfork(). */
void prof_i_thread_watch_exit(prof_i_thread *thread, uint64_t pid, uint64_t tid, bool is_in_vfork);

/* Has the thread ended without saying so? Only as far as it can be seen without a system call. */
bool prof_i_thread_has_died(const prof_i_thread *thread);

/* True for one of the callers that find the thread ended: that one frees it. */
bool prof_i_thread_take_ended(prof_i_thread *thread);

/* The capture takes what an ended thread leaves. Past the gate. */
void prof_i_thread_reclaim(prof_i_thread *thread);

/* The calling thread records no more as this thread. Outside of the gate, which may be closed. */
void prof_i_thread_exit(prof_i_thread *thread);

/* ---- thread_loss.c ---- */

/* In a forked child: the parent counts these losses. */
void prof_i_thread_forget_losses(void);

/* ---- thread_slot.c ---- */

/* Gives the thread a slot in the arena in force. Scopes that began at `since` or later move there;
   0: none does. A thread that has a slot in this arena keeps it, and nothing is open in it. */
bool prof_i_slot_give(prof_i_thread *thread, uint64_t since);

/* Other threads read it, even while the slot gets its next owner. */
void prof_i_slot_set_deep(prof_i_thread_slot *slot, uint64_t count);

/* Empties all entries, except those that another thread is ending: the next owner's entries begin
   above them. */
void prof_i_slot_clear_open(prof_i_thread_slot *slot);

/* Moves the losses that were counted in the slot of a replaced arena to the arena in force. Owner,
   or any thread after its end. Past the gate. */
void prof_i_slot_write_left_out(prof_i_thread_slot *old);

/* Keeps the mappings of chunks that the thread has of a replaced arena. */
void prof_i_thread_retire_chunks(prof_i_thread *thread);

/* Is another thread ending the scope of this entry? */
static inline bool prof_i_entry_is_taken(uint64_t ticks) {
  return prof_i_open_entry_is_open(ticks) && (ticks & PROF_I_OPEN_ENDED) == PROF_I_OPEN_TAKEN;
}

/* ---- thread.c and virtual_thread.c ---- */

/* Attaches the calling thread, which has no prof_i_thread yet. virtual_thread: NULL for a thread of
   the process. */
prof_i_thread *prof_i_thread_attach_new(const prof_i_virtual_thread *virtual_thread);

/* The prof_i_thread of a virtual thread; prof_i_no_thread: it has none in this process. NULL is
   allowed. */
prof_i_thread *prof_i_virtual_thread_owner(const prof_i_virtual_thread *virtual_thread);

#endif
