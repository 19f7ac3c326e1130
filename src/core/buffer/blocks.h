/* Blocks: where a capture in memory has private memory, and where its memfd. See blocks.c.

   Nothing here takes a lock or calls malloc(). What is marked so needs the control lock. */
#ifndef PROF_CORE_BUFFER_BLOCKS_H
#define PROF_CORE_BUFFER_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "arena.h"

enum {
  PROF_I_BLOCK_BYTES = 2 << 20,
  /* One byte each, behind the header. */
  PROF_I_BLOCK_COUNT_MAX = PROF_I_FIRST_UNIT_OFFSET - PROF_I_HEADER_BYTES
};

typedef enum prof_i_block_state {
  PROF_I_BLOCK_CLOSED,
  PROF_I_BLOCK_SHARED,
  PROF_I_BLOCK_PRIVATE
} prof_i_block_state;

static inline uint8_t *prof_i_block_states(const void *arena) {
  return (uint8_t *)(uintptr_t)arena + PROF_I_HEADER_BYTES;
}

static inline prof_i_block_state prof_i_block_state_at(const void *arena, uint64_t offset) {
  const uint8_t *const states = prof_i_block_states(arena);
  return (prof_i_block_state)__atomic_load_n(&states[offset / PROF_I_BLOCK_BYTES],
                                             __ATOMIC_ACQUIRE);
}

/* Where a reader finds the byte at this offset. bytes: the arena's second mapping. in_place: the
   arena itself, or NULL if it has no blocks. */
static inline const void *prof_i_block_find(const void *bytes, const void *in_place,
                                            uint64_t offset) {
  const bool is_private = in_place && prof_i_block_state_at(bytes, offset) == PROF_I_BLOCK_PRIVATE;
  return (const char *)(is_private ? in_place : bytes) + offset;
}

/* Of the arena in force. */
static inline bool prof_i_block_is_private(uint64_t offset) {
  const prof_i_arena *const arena = &prof_i_the_arena;
  return arena->has_blocks && prof_i_block_state_at(arena->base, offset) == PROF_I_BLOCK_PRIVATE;
}

/* Is a capture in memory of this cap taken in blocks? */
bool prof_i_blocks_fit(uint64_t cap_bytes);

/* Maps a memfd, or memory (fd -1), at a multiple of a block, and its mirror. NULL: errno says
   why. */
char *prof_i_blocks_map(int fd, uint64_t cap_bytes, char **mirror_out);

/* Opens the first block of an arena that is being made. 0 or an errno. */
int prof_i_blocks_open_first(const prof_i_arena *fresh);

/* The arena in force is another one. Control lock held, gate closed. */
void prof_i_blocks_begin(void);

/* Takes that many bytes of the arena in force. False: loss_out says why. Any thread.
   Signal-safe. */
bool prof_i_blocks_claim(prof_i_extent_kind kind, uint64_t bytes, uint64_t *offset_out,
                         int *loss_out);

/* A private block becomes one of the memfd, which has room for slots. All of its chunks are the
   caller's and hold nothing. They keep their heads. False: it stays private. Any thread.
   Signal-safe. */
bool prof_i_blocks_make_shared(uint64_t offset);

/* Bytes that are open and not taken yet. */
uint64_t prof_i_blocks_free_bytes(void);

/* A piece of a private block is free. It reads as zeros from now on. */
void prof_i_blocks_punch(void *chunk, uint64_t bytes, uint64_t kept_bytes);

/* A child that inherits a trace reads these chunks, too. Give neighbours at once: to mark a part of
   a huge page makes 512 small ones of it, and a fork takes ten times as long. Any thread. */
void prof_i_blocks_keep_on_fork(const void *chunks, uint64_t bytes);

/* ---- readers ---- */

/* A reader looks at private blocks in place: they stay mapped, whatever replaces the arena, until
   it is done. Control lock held. */
void prof_i_blocks_pin(void);

/* Its copy is done. keeps: it holds a trace of private blocks, until prof_i_blocks_release(). Both
   return what is to be unmapped by prof_i_blocks_unmap(), without the lock, or NULL. Control lock
   held. */
struct prof_i_retained_blocks *prof_i_blocks_unpin(uint64_t arena, bool keeps);
struct prof_i_retained_blocks *prof_i_blocks_release(uint64_t arena);
void prof_i_blocks_unmap(struct prof_i_retained_blocks *held);

/* A thread needs this slot or chunk of a replaced arena no more. True: the caller unmaps it. False:
   the last reader of that arena does. Any thread. Signal-safe. */
bool prof_i_blocks_release_extent(void *extent);

/* The current arena is given up. Its addresses stay mapped and read as zeros, except for what a
   reader still uses. Control lock held, gate closed. */
void prof_i_blocks_cover(void);

/* It is in force no more: what is left of it is unmapped, or held for its readers. Control lock
   held, gate closed. */
void prof_i_blocks_retire(const prof_i_arena *old);

/* This is a forked child: the parent's memfd is covered. Private blocks are its own copies, empty
   but for what its traces show. */
void prof_i_blocks_forget(void);

#endif
