/* Live pieces of memory by address: no two overlap. A treap in one array, whose priorities are made
   of the addresses, so that it is the same tree whatever the order, and no chance is needed.
   Caller's memory, one thread at a time; insertion, removal and search take some 2 ln(n) steps.
   Knows nothing of pools. */
#ifndef PROF_FORMAT_PIECES_H
#define PROF_FORMAT_PIECES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct prof_i_piece {
  uint64_t address;
  uint64_t bytes; /* not 0; 0: a free node */
  uint64_t value; /* the owner's */
  /* places in the array; 0: none. Of a free node, left is the next free one */
  uint32_t left, right;
} prof_i_piece;

typedef struct prof_i_pieces {
  prof_i_piece *nodes; /* place 0 is not used */
  uint32_t room;       /* places in nodes */
  uint32_t used;       /* places that were ever taken, place 0 with them */
  uint32_t root, free;
  uint32_t count; /* live */
} prof_i_pieces;

/* Is there a place for one more? If not, the caller makes nodes larger: place by place, what is
   behind `used` may hold anything. */
static inline bool prof_i_pieces_have_room(const prof_i_pieces *pieces) {
  return pieces->free || (pieces->used ? pieces->used : 1) < pieces->room;
}

/* Places, or 0. at: begins at the address. overlap: the first one that shares a byte with these.
   after: the first that begins behind the address. */
uint32_t prof_i_pieces_at(const prof_i_pieces *pieces, uint64_t address);
uint32_t prof_i_pieces_overlap(const prof_i_pieces *pieces, uint64_t address, uint64_t bytes);
uint32_t prof_i_pieces_after(const prof_i_pieces *pieces, uint64_t address);

/* Of what overlaps nothing, with room for it. Returns its place, which holds until it is taken
   out. */
uint32_t prof_i_pieces_put(prof_i_pieces *pieces, uint64_t address, uint64_t bytes, uint64_t value);
/* The piece that begins there, which is there. */
void prof_i_pieces_take(prof_i_pieces *pieces, uint64_t address);

#endif
