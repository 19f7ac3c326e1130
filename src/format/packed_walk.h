/* Finds the records in a part of a capture. The packer and the unpacker both use it. */
#ifndef PROF_FORMAT_PACKED_WALK_H
#define PROF_FORMAT_PACKED_WALK_H

#include "packed.h"

/* If a chunk with records begins at these words, which are at this offset of the capture: returns
   its size, at most `left`, and sets *slots_out to its claimed slots. Otherwise returns 0. */
static inline uint64_t prof_i_packed_chunk(const void *words, uint64_t offset, uint64_t left,
                                           uint64_t *slots_out) {
  const prof_i_head *const head = words;
  if (head->magic != PROF_I_EXTENT_MAGIC || head->kind != PROF_I_EXTENT_CHUNK ||
      head->bytes % PROF_I_UNIT_BYTES != 0 || head->generation == 0 ||
      head->generation > PROF_I_GENERATION_MASK || head->cursor < PROF_I_HEAD_BYTES)
    return 0;
  const uint64_t whole = prof_i_head_bytes_of(offset, head->bytes, head->kind, head->check);
  if (!whole || whole % PROF_I_UNIT_BYTES != 0) return 0;
  const uint64_t bytes = whole < left ? whole : left;
  const uint64_t end = head->cursor < bytes ? head->cursor : bytes;
  *slots_out = (end - PROF_I_HEAD_BYTES) / 16;
  return bytes;
}

/* The number of bytes from this offset that one packed extent holds. It never divides a chunk.
   there: readable bytes, a multiple of the unit. There are at least PROF_I_PACKED_PLAIN_MAX, unless
   they reach the end of the capture. */
static inline uint64_t prof_i_packed_part_bytes(const unsigned char *plain, uint64_t offset,
                                                uint64_t there) {
  const uint64_t most = there < PROF_I_PACKED_PLAIN_MAX ? there : PROF_I_PACKED_PLAIN_MAX;
  uint64_t at = 0, slots;
  while (at < most) {
    const uint64_t chunk = prof_i_packed_chunk(plain + at, offset + at, UINT64_MAX, &slots);
    const uint64_t bytes = chunk ? chunk : PROF_I_UNIT_BYTES;
    if (bytes > most - at) return at ? at : most;
    at += bytes;
  }
  return at;
}

#endif
