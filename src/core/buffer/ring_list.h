/* The list of a ring's chunks: age, size and offset of each, in one word. The age is the number at
   which the chunk was last given to a thread, so the least value is the oldest chunk. Used by
   ring.c alone. Any thread. Signal-safe. */
#ifndef PROF_CORE_BUFFER_RING_LIST_H
#define PROF_CORE_BUFFER_RING_LIST_H

#include "arena.h"

enum {
  PROF_I_RING_UNIT_BITS = 26, /* of a value: the largest arena in units */
  PROF_I_RING_SIZE_BITS = 2,  /* above: 16 KiB << 2 * size */
  PROF_I_RING_AGE_SHIFT = PROF_I_RING_UNIT_BITS + PROF_I_RING_SIZE_BITS,
  PROF_I_RING_AGE_EMPTY = 1 /* the chunk holds nothing: it is the first to be taken */
};

static inline uint64_t prof_i_ring_age_of(uint64_t value) { return value >> PROF_I_RING_AGE_SHIFT; }
static inline uint64_t prof_i_ring_bytes_of(uint64_t value) {
  const uint64_t size = value >> PROF_I_RING_UNIT_BITS & ((1u << PROF_I_RING_SIZE_BITS) - 1);
  return (uint64_t)PROF_I_UNIT_BYTES << 2 * size;
}
static inline uint64_t prof_i_ring_offset_of(uint64_t value) {
  return (value & ((1u << PROF_I_RING_UNIT_BITS) - 1)) * PROF_I_UNIT_BYTES;
}
static inline prof_i_head *prof_i_ring_chunk_of(uint64_t value) {
  return (prof_i_head *)(prof_i_the_arena.base + prof_i_ring_offset_of(value));
}

/* The values: 0 is no chunk, or a slot by now. */
uint64_t prof_i_ring_entry_count(void);
uint64_t prof_i_ring_load_entry(uint64_t index);

/* Is there a place for one more? */
bool prof_i_ring_has_entry_left(void);
void prof_i_ring_add(const prof_i_head *chunk, uint64_t age);
void prof_i_ring_remove(const prof_i_head *chunk);

/* What is looked for. */
typedef struct prof_i_ring_request {
  uint64_t bytes, least_bytes;
  bool is_for_slot;    /* not in private memory: a slot stays readable when its arena is replaced */
  bool keeps_pieces;   /* small chunks that hold nothing are left to threads that need little */
  bool has_unfinished; /* one was passed over, and may serve at any time */
} prof_i_ring_request;

/* UINT64_MAX: the chunk does not serve. The least key is taken first. */
uint64_t prof_i_ring_key_of(uint64_t value, const prof_i_ring_request *request);
uint64_t prof_i_ring_value_of_key(uint64_t key);
/* The least key above that floor: the next oldest, and its place. UINT64_MAX: there is none. */
uint64_t prof_i_ring_find_oldest(const prof_i_ring_request *request, uint64_t count, uint64_t floor,
                                 uint64_t *index_out);
/* Takes it. What it held counts as overwritten. NULL: there is none. */
prof_i_head *prof_i_ring_take_oldest(prof_i_ring_request *request);
/* Takes the chunk of this place, if it is retired. */
bool prof_i_ring_take_at(uint64_t index);

bool prof_i_ring_is_retired(const prof_i_head *chunk);

/* The chunk is the caller's and holds nothing. It keeps its head, which counts what has gone from
   there, and the first quarter. The others are chunks of their own. */
void prof_i_ring_split(prof_i_head *chunk);

/* How many bytes hold nothing and have no owner. */
uint64_t prof_i_ring_empty_bytes(void);

/* How often a chunk was retired. Whoever found none keeps that count + 1: until it changes, nobody
   looks again. */
uint64_t prof_i_ring_retired_count(void);
bool prof_i_ring_is_none(const uint64_t *none_at);
void prof_i_ring_note_none(uint64_t *none_at, uint64_t retired);

int prof_i_ring_prepare_list(const prof_i_arena *fresh);
void prof_i_ring_begin_list(void);

#endif
