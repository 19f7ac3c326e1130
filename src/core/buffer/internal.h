/* Functions on threads and chunks that only files of this folder use. Other folders use thread.h
   and chunk.h. Each file has its own state, except for state.c. */
#ifndef PROF_CORE_BUFFER_INTERNAL_H
#define PROF_CORE_BUFFER_INTERNAL_H

#include <prof/profiler.h>
#include <stdbool.h>

#include "../record/open_stack.h"
#include "arena.h"
#include "chunk.h"
#include "thread.h"

enum {
  PROF_I_NO_EPOCH = -1,         /* an epoch that no site has */
  PROF_I_THREAD_SEARCH_MIN = 16 /* slots: see thread_take_free() */
};

/* In state.c. The slot of a thread outside the fast path. It is full, so that no begin uses an
   entry of it. Read only. */
extern prof_i_thread_slot prof_i_no_slot __attribute__((visibility("hidden")));

/* ---- thread_registry.c ---- */

/* Keeps the serial and tid of an exited thread for prof_i_thread_serial_of(). Call it before
   another thread reuses its memory. */
void prof_i_thread_remember_exited(const prof_i_thread *thread);

/* Whether the thread has ended without its exit handler. Checks the thread's lock only, without a
   system call, so some of these threads are not detected. */
bool prof_i_thread_has_died(const prof_i_thread *thread);

/* Claims an ended thread. Returns true to only one of several callers, which must free it. */
bool prof_i_thread_take_ended(prof_i_thread *thread);

/* A search that was counted in prof_i_threads.searches ends: all threads were asked, and so many
   were alive. Others may still be under way. Decides when to search next, for a thread that finds
   no room: at 8 system calls a thread at most, or 1 if there were no ended ones. */
void prof_i_thread_end_search(uint32_t alive, bool has_freed);

/* ---- thread_exit.c ---- */

/* Makes the end of the calling thread detectable: by a thread-specific key, or by a lock that the
   thread holds. is_in_vfork: this is a child of vfork(). */
void prof_i_thread_watch_exit(prof_i_thread *thread, uint64_t pid, uint64_t tid, bool is_in_vfork);

/* The thread is left to others: PROF_I_FREE or PROF_I_EXITED. */
void prof_i_thread_leave_as(prof_i_thread *thread, uint32_t alive);

/* Ends the open scopes of an ended thread, and releases its chunk and slot. Past the gate. */
void prof_i_thread_reclaim(prof_i_thread *thread);

/* Frees an ended thread that the caller has claimed. Past the gate. */
void prof_i_thread_free(prof_i_thread *thread);

/* ---- thread.c ---- */

/* Frees the ended threads that only their tids tell: one system call for each thread that is alive.
   Returns false while another caller searches, perhaps the code that this handler interrupted. What
   it frees comes later. True: there may be room now, of this search or an earlier one. Past the
   gate. */
bool prof_i_thread_free_ended(void);

/* Sets the count of deep scopes. Other threads may read it at any time, even while the slot changes
   its owner. */
void prof_i_slot_set_deep(prof_i_thread_slot *slot, uint64_t count);

/* Clears all entries, except those that another thread is ending. The entries of the next owner
   begin above them. */
void prof_i_slot_clear_open(prof_i_thread_slot *slot);

/* Moves the losses that were counted in the slot of a replaced arena to the current arena. Called
   by the owner, or by any thread after the owner's end. Past the gate. */
void prof_i_slot_write_left_out(prof_i_thread_slot *old);

/* Whether another thread is ending the scope of this entry. */
static inline bool prof_i_entry_is_taken(uint64_t ticks) {
  return prof_i_open_entry_is_open(ticks) && (ticks & PROF_I_OPEN_ENDED) == PROF_I_OPEN_TAKEN;
}

/* The prof_i_thread of a virtual thread. prof_i_no_thread: it has none in this process, for example
   in a forked child. NULL is allowed. */
static inline prof_i_thread *prof_i_virtual_thread_owner(
    const prof_i_virtual_thread *virtual_thread) {
  prof_i_thread *const thread =
      virtual_thread ? __atomic_load_n(&virtual_thread->thread, __ATOMIC_RELAXED) : NULL;
  return thread && thread->process == prof_i_threads.process ? thread : &prof_i_no_thread;
}

/* ---- ring.c ---- */

/* A ring's chunks: a list of all of them, with their ages. It grows up to its share of the cap.
   Then the oldest chunk is evicted. A thread that needs little room gets a part of it, so that many
   threads do not empty the ring. The calls may come from a signal handler: no lock. */

/* The age of a chunk that holds nothing: it is the first to be taken. */
enum { PROF_I_RING_AGE_EMPTY = 1 };

/* Memory for the list of an arena that is not in force yet. 0 or an errno. Control lock held. */
int prof_i_ring_prepare(const prof_i_arena *fresh);

/* That arena is in force now. Control lock held, level 0. */
void prof_i_ring_begin(void);

/* A chunk of that size, or another of at least least_bytes. It holds nothing and is the caller's.
   NULL: loss_out says why (prof_loss). */
prof_i_head *prof_i_ring_take(uint64_t bytes, uint64_t least_bytes, int *loss_out);

/* The oldest chunk, or a part of it, becomes a slot: its memory is zero. NULL: there is none. */
prof_i_head *prof_i_ring_take_for_slot(void);

/* The chunk is as young as this number says. */
void prof_i_ring_set_age(const prof_i_head *chunk, uint64_t age);

/* The chunk is the caller's and holds nothing: it is the next to be taken. */
void prof_i_ring_put(prof_i_head *chunk);

/* A chunk of the ring was retired: whoever found none may look again. */
void prof_i_ring_note_retired(void);

/* How often a chunk was retired. 0 without a ring. */
uint64_t prof_i_ring_retired_count(void);

/* How much the ring has: its chunks together. */
uint64_t prof_i_ring_bytes(void);

/* Did the kernel refuse room since the arena began, or since prof_i_ring_may_grow()? */
bool prof_i_ring_is_refused(void);
void prof_i_ring_may_grow(void);

/* ---- chunk.c ---- */

/* A chunk begins with a record that says whose it is: see PROF_I_KIND_OWNER. */
enum {
  PROF_I_OWNER_RECORD_WORDS = 3 + 3 + PROF_I_NAME_BYTES / 8,
  PROF_I_OWNER_RECORD_BYTES = (PROF_I_OWNER_RECORD_WORDS + 1) / 2 * 16
};

static inline prof_i_head *prof_i_chunk_at(uint64_t offset) {
  return (prof_i_head *)(prof_i_the_arena.base + offset);
}
static inline bool prof_i_policy_is_ring(void) {
  return prof_i_the_arena.policy == PROF_POLICY_RING;
}
static inline bool prof_i_chunk_size_is_largest(uint64_t bytes) {
  return bytes == prof_i_the_arena.chunk_bytes_max;
}

/* What has been claimed so far, and what is left of the chunk. */
static PROF_I_RACES_BY_DESIGN inline uint64_t prof_i_chunk_claimed_bytes(const prof_i_head *chunk) {
  const uint64_t cursor = __atomic_load_n(&chunk->cursor, __ATOMIC_ACQUIRE);
  return cursor < chunk->bytes ? cursor : chunk->bytes;
}
static inline uint64_t prof_i_chunk_room(const prof_i_head *chunk) {
  /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a thread's chunk is never NULL */
  return chunk->bytes - prof_i_chunk_claimed_bytes(chunk);
}

/* The first thread that takes the chunk has it. */
static inline void prof_i_chunk_set_retired(prof_i_head *chunk) {
  __atomic_store_n(&chunk->state, PROF_I_CHUNK_RETIRED, __ATOMIC_RELEASE);
  if (prof_i_policy_is_ring()) prof_i_ring_note_retired();
}

/* How large a thread's next chunk may be: between the arena's smallest and largest chunk, by how
   many threads share what is free. Any thread. Signal-safe. */
uint64_t prof_i_chunk_size_max(void);

/* Another arena is in force. Control lock held, level 0. */
void prof_i_chunk_size_begin(void);

/* Takes a retired chunk for the caller. False: somebody else was faster. */
bool prof_i_chunk_own_if_retired(prof_i_head *chunk);

/* Forgets the part-filled chunks that are left to other threads: a clear looks at them itself. */
void prof_i_chunk_forget_partial(void);

/* ---- chunk_records.c ---- */

/* Ticks of the last clear. Atomic: the helper reads it outside the gate, and a clear may store it
   at the same time. */
uint64_t prof_i_chunk_last_clear(void);

/* Counts the records. `evicted` stays 0. */
prof_i_chunk_count prof_i_chunk_walk(const prof_i_head *chunk, uint64_t clear_ticks);

/* From one store on the chunk is empty, and its events count as evicted. live_is: how the live ones
   count. Owner of the chunk only. */
void prof_i_chunk_evict(prof_i_head *chunk, const prof_i_chunk_count *records,
                        prof_i_evicted live_is);

/* Makes an evicted chunk ready for other records. Owner of the chunk only. */
void prof_i_chunk_next_generation(prof_i_head *chunk, const prof_i_chunk_count *records);

/* Another arena is in force: its first chunk gets the number 2. Control lock held, level 0. */
void prof_i_chunk_begin_numbers(void);

/* The number under which readers know the chunk's present use. */
void prof_i_chunk_set_number(prof_i_head *chunk, uint64_t number);

/* ---- helper.c ---- */

/* Puts an offset into an empty place. False: there is none. Any thread. */
bool prof_i_offsets_put(uint64_t *places, size_t count, uint64_t value);

/* The arena in force is a new one. Control lock held, level 0. */
void prof_i_prepared_begin(void);

/* Is the helper thread on? */
bool prof_i_prepared_is_on(void);

/* Takes a prepared chunk of the smallest size that has so many bytes. NULL: there is none. */
prof_i_head *prof_i_prepared_take_from(uint64_t bytes);

/* Takes a prepared chunk of that size. NULL with PROF_LOSS_NO_CHUNK: the helper is late, and the
   thread does not wait. NULL with another loss: no more are prepared, and smaller chunks may use
   the remaining room. */
prof_i_head *prof_i_prepared_take(uint64_t bytes, int *loss_out);

/* Do all chunks of the largest size come from the helper? */
bool prof_i_prepared_serves(void);

/* Would the thread get no chunk now, because the helper is late? */
bool prof_i_prepared_starves(const prof_i_thread *thread);

/* There is room again: threads that found none may look again. */
void prof_i_prepared_note_room(void);

/* The helper is to drop the pages of this retired chunk. False: the caller drops them. */
bool prof_i_prepared_trim_later(uint64_t offset);

#endif
