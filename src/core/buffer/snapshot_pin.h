/* Leases of readers, here called snapshot pins. A clear gives back only room of chunks that no
   reader has pinned. A pin begins before the reader's first look at the chunks, and covers all
   of them. When the reader knows which chunks it has, the pin settles, and covers no newer ones.
   A ring does not look at pins: readers copy its chunks. Control lock held for all of it. */
#ifndef PROF_CORE_BUFFER_SNAPSHOT_PIN_H
#define PROF_CORE_BUFFER_SNAPSHOT_PIN_H

#include <stdbool.h>
#include <stdint.h>

/* Sees all chunks that no finished clear has had yet, those to come too. Of the arena in force;
   never 0. */
uint64_t prof_i_snapshot_pin_begin(void);

/* It sees the chunks up to this number (chunk.h) from now on. */
void prof_i_snapshot_pin_settle(uint64_t snapshot_pin, uint64_t newest_chunk);

/* has_settled: as said by prof_i_snapshot_pin_settle(). True: what it saw may be free now. One of
   another arena, or 0: false. */
bool prof_i_snapshot_pin_end(uint64_t snapshot_pin, bool has_settled);

/* The number of its arena. */
uint64_t prof_i_snapshot_pin_arena(uint64_t snapshot_pin);

/* A clear begins. Returns its number, from 1 on. */
uint64_t prof_i_snapshot_pin_begin_clear(void);

/* A clear of this arena has given back what it could. One of another arena: nothing. */
void prof_i_snapshot_pin_end_clear(uint64_t arena);

/* The number of the clear that began last; 0: none. */
uint64_t prof_i_snapshot_pin_clear_count(void);

/* Does anybody see a chunk of this number, which that clear has had? */
bool prof_i_snapshot_pin_sees(uint64_t chunk, uint64_t clear);

/* The process was forked: the child's traces look at our chunks, and will not say when they are
   done. */
void prof_i_snapshot_pin_fork(void);

#endif
