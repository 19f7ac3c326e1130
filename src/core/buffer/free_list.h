/* Room of the arena that a clear gave back, in pieces: chunks and slots are made of it again. Any
   thread. Signal-safe: no lock. */
#ifndef PROF_CORE_BUFFER_FREE_LIST_H
#define PROF_CORE_BUFFER_FREE_LIST_H

#include "arena.h"

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

#endif
