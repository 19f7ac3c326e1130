/* Chunks: how a thread gets room, what becomes of full ones, rings, take-over, clear. This is the
   slow path of recording, once in some thousand scopes. It is lock-free, because a handler may come
   here while the code that it interrupted is here. */
#ifndef PROF_CORE_BUFFER_CHUNK_H
#define PROF_CORE_BUFFER_CHUNK_H

#include <stdbool.h>
#include <stdint.h>

#include "arena.h"
#include "thread.h"

/* Gives the thread a chunk with room for need_bytes, and retires its old one. True: claim again,
   perhaps from a chunk that a handler has set. False: there is no chunk, and loss_out says why
   (prof_loss). */
bool prof_i_chunk_change(prof_i_thread *thread, uint64_t need_bytes, int *loss_out);

/* A thread ends. Its part-filled chunk is left to the next thread, and its losses are written
   behind its records. */
void prof_i_chunk_thread_exit(prof_i_thread *thread);

/* prof_stop(): takes every thread's chunk out, so that every later end takes the slow path. A chunk
   is kept until its thread records again. Control lock held. */
void prof_i_chunk_detach_all(void);
/* Takes the thread's chunk back. NULL: there is none. Any thread. */
prof_i_head *prof_i_chunk_reattach(prof_i_thread *thread);

/* Leaves a part-filled chunk, from which nobody claims any more, to the next thread. */
void prof_i_chunk_leave_partial(prof_i_head *chunk);

/* The thread's reserve, for scopes that were open when the arena became full. NULL: it cannot be
   used. */
prof_i_head *prof_i_chunk_reserve(prof_i_thread *thread);

/* Room for a thread's slot when the arena is used up: from what a clear gave back, or a ring's
   oldest chunk. NULL: there is none. */
prof_i_head *prof_i_chunk_take_for_slot(uint64_t populate_bytes);

/* How often threads changed their chunk, and the times that it took. */
typedef struct prof_i_chunk_times {
  uint64_t count, median_ns, p99_ns, max_ns;
} prof_i_chunk_times;
prof_i_chunk_times prof_i_chunk_change_times(void);

/* ---- A clear, by steps of one chunk, so that nobody waits for more ---- */

/* Control lock held, gate closed. Returns the clear's number (snapshot_pin.h). */
uint64_t prof_i_chunk_begin_clear(void);

/* Looks at the extent at *offset, or the next. If it is a retired chunk, and all its events are
   cleared, they are counted and given up. Then *chunk_out is a chunk whose room can be given back,
   with its number. Otherwise it is NULL. False: there are no more extents. Past the gate. */
bool prof_i_chunk_clear_next(uint64_t *offset, prof_i_head **chunk_out, uint64_t *number_out);

/* Keeps a chunk that was given up, as long as somebody reads it. False: nobody does. A reader that
   begins later does not see the chunk. Control lock held. */
bool prof_i_chunk_defer_free(prof_i_head *chunk, uint64_t number, uint64_t clear);

/* There is room again: the capture is no longer full. Control lock held. */
void prof_i_chunk_reopen_arena(void);

/* A deferred chunk that nobody reads any more. NULL: there is none. Control lock held. */
prof_i_head *prof_i_chunk_take_deferred(void);

/* The number that a chunk got last, and a new one. */
uint64_t prof_i_chunk_newest_number(void);
uint64_t prof_i_chunk_next_number(void);

/* Allocates the lists for an arena that is not in force yet. 0 or an errno. Control lock held. */
int prof_i_chunk_prepare(const prof_i_arena *fresh);

/* The prepared arena is in force now. Control lock held, level 0. */
void prof_i_chunk_begin(void);

/* ---- chunk_records.c: counted chunks ---- */

/* Cached counts of full chunks. Without them, each prof_health_get() would walk gigabytes of
   records, or read them back from a file. */

/* The counts of one chunk. They are valid while the chunk has this sequence. `live` events are live
   while clear_ticks is the capture's last clear. They are cleared if a clear is at or after
   latest_end. */
typedef struct prof_i_counted_chunk {
  uint64_t sequence; /* 0: nothing is known */
  uint64_t clear_ticks;
  uint64_t live;       /* events, none of which was cleared */
  uint64_t latest_end; /* ticks: each of them had ended by then */
} prof_i_counted_chunk;

/* Locks the table for this arena. False: another thread has it, or there is no memory. Then the
   caller walks all records. Any thread, no lock. */
bool prof_i_count_cache_acquire(uint64_t arena, uint64_t cap_bytes);
void prof_i_count_cache_release(void);

/* The entry of the chunk with this offset and size. NULL: small chunks have no entry. The caller
   holds the table. */
prof_i_counted_chunk *prof_i_count_cache_find(uint64_t offset, uint64_t bytes);

/* ---- what a chunk holds: chunk_records.c ---- */

/* Counts of a chunk. cleared: events that ended at or before the clear; live: later ones;
   unfinished: claims without a record; evicted: what the chunk held before. */
typedef struct prof_i_chunk_count {
  uint64_t cleared, live, unfinished;
  uint64_t longer; /* records of more than one slot */
  uint64_t evicted[PROF_I_EVICTED_WORDS];
} prof_i_chunk_count;

/* Walks the records. All counts are of one moment, even if others take or reuse the chunk. known:
   the result of an earlier walk, or room for this one's; NULL: none. If it is still valid, nothing
   is walked, and `longer` is 0. */
prof_i_chunk_count prof_i_chunk_count_events(const prof_i_head *chunk, uint64_t clear_ticks,
                                             prof_i_counted_chunk *known);

/* Counts the events whose records begin at byte `from` or later, and before `end`. Calls `see` with
   each event's site, unless `see` is NULL. */
uint64_t prof_i_chunk_events_between(const prof_i_head *chunk, uint64_t from, uint64_t end,
                                     void (*see)(void *to, uint32_t site), void *to);

/* ---- free_list.c ---- */

/* Room of the arena that a clear gave back, in pieces: chunks and slots are made of it again. Any
   thread. Signal-safe: no lock. */

/* Memory for what is remembered. 0 or an errno. Control lock held. */
int prof_i_free_list_prepare(void);
/* Another arena is in force: nothing of it is free. Control lock held, level 0. */
void prof_i_free_list_begin(void);

/* The piece reads as zeros, but for the head in its first page. Its size is a unit times a power
   of 4. */
void prof_i_free_list_put(uint64_t offset, uint64_t bytes);

/* Gives back the room of a chunk that was given up. Past the gate, no lock. */
void prof_i_free_list_put_chunk(prof_i_head *chunk);

/* All pieces together. */
uint64_t prof_i_free_list_bytes(void);

/* A chunk of so many bytes. NULL: there is no piece of that size; or loss_out says why. */
prof_i_head *prof_i_free_list_take(uint64_t bytes, int *loss_out);

/* A slot. NULL: there is no piece of its size, or an error. */
prof_i_head *prof_i_free_list_take_for_slot(uint64_t populate_bytes);

/* ---- helper.c ---- */

/* The helper thread: prepares chunks ahead, so that no traced thread waits for the disk. Only when
   options.helper_thread asks for it. */

struct prof_i_unmap_list;

/* control lock held; without it recording works as if it had not been asked for */
void prof_i_helper_start(void);
void prof_i_helper_stop(void); /* waits for it to end */
/* Unmaps it when it has nothing better to do. False: the caller is to do it. Control lock held, and
   no stop is under way. */
bool prof_i_helper_unmap(struct prof_i_unmap_list *all);
void prof_i_helper_forget(void); /* in a forked child: it is not there */
bool prof_i_helper_is_on(void);
/* Lets the helper look at once for something to do. Any thread. */
void prof_i_chunk_helper_wake(void);

/* The errno for which the helper could not be made, or 0. Control lock held. */
int prof_i_helper_error(void);

#endif
