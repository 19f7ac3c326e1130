/* A ring's chunks: a list of all of them, with their ages. It grows up to its share of the cap.
   Then the oldest chunk is evicted. A thread that needs little room gets a part of it, so that many
   threads do not empty the ring. The calls may come from a signal handler: no lock. */
#ifndef PROF_CORE_BUFFER_RING_H
#define PROF_CORE_BUFFER_RING_H

#include "arena.h"

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

/* How much the ring has: its chunks together. */
uint64_t prof_i_ring_bytes(void);

/* Did the kernel refuse room since the arena began, or since prof_i_ring_may_grow()? */
bool prof_i_ring_is_refused(void);
void prof_i_ring_may_grow(void);

#endif
