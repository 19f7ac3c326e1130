/* Captures are mostly zeros, which a fuzzer should not have to carry. An input is a list of pieces
   that are laid into zeros:

       Byte 0       Units of 16 KiB, 1 to 16. Bit 7: the heads' check words are made right again,
                    so that the fuzzer reaches what a check word guards.
       Pieces       2 bytes: place in units of 16 bytes; 2 bytes: count; then the bytes.

   The fuzz target and seeds/make_seeds.c use it. */
#ifndef PROF_TESTS_SPARSE_H
#define PROF_TESTS_SPARSE_H

#include <stdint.h>
#include <string.h>

#include "../../src/format/layout.h"

enum { SPARSE_UNITS_MAX = 16, SPARSE_REPAIR = 0x80, SPARSE_PLACE_BYTES = 16 };

static inline size_t sparse_bytes(const uint8_t *input, size_t count) {
  return count == 0 ? 0 : (size_t)(1 + (input[0] & 0x7f) % SPARSE_UNITS_MAX) * PROF_I_UNIT_BYTES;
}

/* Lays the input into `to`, which has room for sparse_bytes() and is zero; returns them. */
static inline size_t sparse_expand(unsigned char *to, const uint8_t *input, size_t count) {
  if (count == 0) return 0;
  const size_t bytes = sparse_bytes(input, count);
  size_t at = 1;
  while (count - at >= 4) {
    const size_t place = (size_t)(input[at] | input[at + 1] << 8) * SPARSE_PLACE_BYTES;
    size_t length = (size_t)(input[at + 2] | input[at + 3] << 8);
    at += 4;
    if (length > count - at) length = count - at;
    if (place < bytes)
      memcpy(to + place, input + at, length < bytes - place ? length : bytes - place);
    at += length;
  }
  for (size_t offset = PROF_I_FIRST_UNIT_OFFSET; (input[0] & SPARSE_REPAIR) && offset < bytes;
       offset += PROF_I_UNIT_BYTES) {
    prof_i_head *const head = (prof_i_head *)(void *)(to + offset);
    if (head->magic == PROF_I_EXTENT_MAGIC)
      head->check = offset ^ head->bytes ^ (uint64_t)head->kind ^ PROF_I_MAGIC;
  }
  return bytes;
}

#endif
