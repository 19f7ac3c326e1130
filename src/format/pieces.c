/* See pieces.h. */
#include "pieces.h"

static uint64_t priority(uint64_t address) {
  uint64_t x = address * 0x9e3779b97f4a7c15ull;
  x = (x ^ x >> 32) * 0xd6e8feb86659fd93ull;
  return x ^ x >> 29;
}

uint32_t prof_i_pieces_at(const prof_i_pieces *pieces, uint64_t address) {
  uint32_t at = pieces->root;
  while (at && pieces->nodes[at].address != address)
    at = address < pieces->nodes[at].address ? pieces->nodes[at].left : pieces->nodes[at].right;
  return at;
}

uint32_t prof_i_pieces_after(const prof_i_pieces *pieces, uint64_t address) {
  uint32_t found = 0;
  for (uint32_t at = pieces->root; at;) {
    const prof_i_piece *const node = &pieces->nodes[at];
    if (node->address > address) found = at;
    at = node->address > address ? node->left : node->right;
  }
  return found;
}

/* The last that begins at the address or before. */
static uint32_t before(const prof_i_pieces *pieces, uint64_t address) {
  uint32_t found = 0;
  for (uint32_t at = pieces->root; at;) {
    const prof_i_piece *const node = &pieces->nodes[at];
    if (node->address <= address) found = at;
    at = node->address <= address ? node->right : node->left;
  }
  return found;
}

uint32_t prof_i_pieces_overlap(const prof_i_pieces *pieces, uint64_t address, uint64_t bytes) {
  const uint32_t low = before(pieces, address);
  if (low && address - pieces->nodes[low].address < pieces->nodes[low].bytes) return low;
  const uint32_t high = prof_i_pieces_after(pieces, address);
  return high && pieces->nodes[high].address - address < bytes ? high : 0;
}

static uint32_t take_place(prof_i_pieces *pieces) {
  const uint32_t place = pieces->free;
  if (!place) {
    if (pieces->used == 0) pieces->used = 1;
    return pieces->used++;
  }
  pieces->free = pieces->nodes[place].left;
  return place;
}

uint32_t prof_i_pieces_put(prof_i_pieces *pieces, uint64_t address, uint64_t bytes,
                           uint64_t value) {
  prof_i_piece *const nodes = pieces->nodes;
  const uint32_t fresh = take_place(pieces);
  const uint64_t own = priority(address);
  uint32_t *link = &pieces->root;
  while (*link && priority(nodes[*link].address) >= own)
    link = address < nodes[*link].address ? &nodes[*link].left : &nodes[*link].right;
  uint32_t below = *link;
  *link = fresh;
  nodes[fresh] = (prof_i_piece){.address = address, .bytes = bytes, .value = value};
  /* what stood there is cut in two at the address */
  uint32_t *lower = &nodes[fresh].left, *higher = &nodes[fresh].right;
  while (below) {
    if (nodes[below].address < address) {
      *lower = below;
      lower = &nodes[below].right;
      below = *lower;
    } else {
      *higher = below;
      higher = &nodes[below].left;
      below = *higher;
    }
  }
  *lower = *higher = 0;
  pieces->count++;
  return fresh;
}

void prof_i_pieces_take(prof_i_pieces *pieces, uint64_t address) {
  prof_i_piece *const nodes = pieces->nodes;
  uint32_t *link = &pieces->root;
  while (nodes[*link].address != address)
    link = address < nodes[*link].address ? &nodes[*link].left : &nodes[*link].right;
  const uint32_t gone = *link;
  uint32_t left = nodes[gone].left, right = nodes[gone].right;
  while (left && right) {
    if (priority(nodes[left].address) >= priority(nodes[right].address)) {
      *link = left;
      link = &nodes[left].right;
      left = *link;
    } else {
      *link = right;
      link = &nodes[right].left;
      right = *link;
    }
  }
  *link = left ? left : right;
  nodes[gone] = (prof_i_piece){.left = pieces->free};
  pieces->free = gone;
  pieces->count--;
}
