/* What of a part of a capture is records. The packer and the unpacker ask the same. */
#ifndef PROF_FORMAT_PACKED_WALK_H
#define PROF_FORMAT_PACKED_WALK_H

#include "packed.h"

/* The unit at this offset of the capture begins with these words. Of a chunk with records, its
   bytes, at most `left`, and the slots that are claimed in it; else 0. */
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

/* How many bytes of a capture from this offset on go into one packed extent. It divides no chunk.
   there: bytes that can be read, a multiple of the unit. They are PROF_I_PACKED_PLAIN_MAX or more,
   or reach the end of the capture. */
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
