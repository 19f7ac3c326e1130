/* Chunks: how a thread gets room, what becomes of full ones, rings, take-over, clear. The slow path
   of recording: once in some thousand scopes. Lock-free: a handler may come through while its
   victim is here. */
#ifndef PROF_CORE_BUFFER_CHUNK_H
#define PROF_CORE_BUFFER_CHUNK_H

#include "arena.h"
#include "count_cache.h"
#include "thread.h"

/* Gives the thread a chunk with room for need_bytes and retires its old one. True: claim again
   (perhaps from one that a handler brought meanwhile); false: there is none, and loss_out says why
   (prof_loss). */
bool prof_i_chunk_change(prof_i_thread *thread, uint64_t need_bytes, int *loss_out);

/* A thread ends: its part-filled chunk is left to the next one; what it lost is written behind its
   records. */
void prof_i_chunk_thread_exit(prof_i_thread *thread);

/* A part-filled chunk that nobody claims from any more is left to the next thread. */
void prof_i_chunk_leave_partial(prof_i_head *chunk);

/* The thread's reserve, for scopes that were open when the arena became full. NULL when it is used
   up. */
prof_i_head *prof_i_chunk_reserve(prof_i_thread *thread);

/* If the arena is used up: room for a thread's slot out of what a clear gave back, or a ring's
   oldest chunk. NULL: there is none. */
prof_i_head *prof_i_chunk_take_for_slot(uint64_t populate_bytes);

/* ---- A clear, by steps: each takes one chunk, so that nobody waits for more ---- */

/* Control lock held, gate closed. Returns the clear's number (snapshot_pin.h). */
uint64_t prof_i_chunk_begin_clear(void);

/* Looks at the extent at *offset, or the next. If it is a retired chunk of which all is cleared,
   what it holds is counted and given up. *chunk_out: one whose room can be given back, with its
   number, or NULL. False: there are no more extents. Past the gate. */
bool prof_i_chunk_clear_next(uint64_t *offset, prof_i_head **chunk_out, uint64_t *number_out);

/* Keeps a chunk that was given up for as long as somebody reads it. False: nobody does. After it
   was given up: who begins to read later does not see it any more. Control lock held. */
bool prof_i_chunk_defer_free(prof_i_head *chunk, uint64_t number, uint64_t clear);

/* There is room again: the capture is full no more. Control lock held. */
void prof_i_chunk_reopen_arena(void);

/* One that was set aside and nobody reads any more; NULL: there is none. Control lock held. */
prof_i_head *prof_i_chunk_take_deferred(void);

/* Gives the room of a chunk back that was given up. Past the gate, no lock. */
void prof_i_chunk_free(prof_i_head *chunk);

/* The number that was last given to a chunk. */
uint64_t prof_i_chunk_newest_number(void);
uint64_t prof_i_chunk_next_number(void);

/* The chunk's state is TAKEN: what it holds counts as overwritten. It is then the caller's, and
   holds nothing. False: a claim is unfinished, and the chunk is retired again. */
bool prof_i_chunk_overwrite(prof_i_head *chunk);

/* Memory for what is remembered of an arena that is not in force yet. 0 or an errno. Control lock
   held. */
int prof_i_chunk_prepare(const prof_i_arena *fresh);

/* That arena is in force now. Control lock held, level 0. */
void prof_i_chunk_begin(void);

/* Puts a chunk for the helper thread's stock, and asks for work. */
void prof_i_chunk_use_helper(bool on);
bool prof_i_chunk_make_prepared(void); /* helper: makes one chunk ready; false when enough are */
/* Helper, at its end: what the stock took of memory or of the disk is free again. */
void prof_i_chunk_drop_prepared(void);
/* helper: drops one retired chunk's pages; false when none waits */
bool prof_i_chunk_trim_one(void);
uint32_t prof_i_chunk_helper_word(void); /* another one when there is more to do */
/* helper: until the word is another one, or so long */
void prof_i_chunk_helper_sleep(uint32_t seen, uint64_t ns);
void prof_i_chunk_helper_wake(void);

/* Events in the chunk whose records ended at or before clear_ticks, and after; unfinished claims;
   what it held before. */
typedef struct prof_i_chunk_count {
  uint64_t cleared, live, unfinished;
  uint64_t longer; /* records of more than one slot */
  uint64_t evicted[PROF_I_EVICTED_WORDS];
} prof_i_chunk_count;

/* Walks the records. All of one moment, while others take the chunk, or make it anew. known: what a
   walk found, or will; where it still holds, nothing is walked, and `longer` is 0. May be NULL. */
prof_i_chunk_count prof_i_chunk_count_events(const prof_i_head *chunk, uint64_t clear_ticks,
                                             prof_i_counted_chunk *known);

/* Counts the events whose records begin from this byte on and before `end`, and shows each one's
   site to `see`, unless NULL. */
uint64_t prof_i_chunk_events_between(const prof_i_head *chunk, uint64_t from, uint64_t end,
                                     void (*see)(void *to, uint32_t site), void *to);

typedef struct prof_i_chunk_times {
  uint64_t count, median_ns, p99_ns, max_ns;
} prof_i_chunk_times;
prof_i_chunk_times prof_i_chunk_change_times(void);

#endif
