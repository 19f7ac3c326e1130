/* Leases: who reads chunks of the arena where they stand (prof_get()), so that a clear gives back no room that somebody still looks at, and all
   that nobody does. Control lock held, for all of it. */
#ifndef PROF_CORE_LEASE_H
#define PROF_CORE_LEASE_H

#include <stdbool.h>
#include <stdint.h>

/* Sees the chunks up to this number (chunk.h) that no clear has had yet. Of the arena in force; never 0. */
uint64_t prof_i_lease_begin(uint64_t newest_chunk);

/* True: what it saw may be free now. One of another arena, or 0: false. */
bool prof_i_lease_end(uint64_t lease);

/* The number of the clear that begins now, from 1 on. */
uint64_t prof_i_lease_clear(void);

/* Does anybody see a chunk of this number, which that clear has had? */
bool prof_i_lease_sees(uint64_t chunk, uint64_t clear);

/* The process was forked: the child's traces look at our chunks, and will not say when they are done. */
void prof_i_lease_fork(void);

#endif
