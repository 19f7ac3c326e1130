/* Packed captures. Packed extents follow the header page. Plain extents may be between them, at the
   same offset as in the plain capture. A packed extent holds up to 1 MiB of the plain capture, in
   whole units, and can be read without the others.

   Records of chunks are stored in columns (packed_columns.h): kinds, sites, time differences,
   numbers of payloads and others. All other bytes are stored as words of 8 bytes. zstd compresses
   each column. docs/reference/file-format.md has the details. Pure functions on memory. */
#ifndef PROF_FORMAT_PACKED_H
#define PROF_FORMAT_PACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/library.h"
#include "layout.h"

enum {
  PROF_I_PACKED_FIRST_OFFSET = PROF_I_HEADER_BYTES,
  PROF_I_PACKED_ALIGNMENT = 64,
  PROF_I_PACKED_HEAD_BYTES = 64,
  PROF_I_PACKED_PLAIN_MAX = PROF_I_CHUNK_BYTES_MAX
};
#define PROF_I_PACKED_MAGIC 0x6b636170666f7270ull /* "profpack" in memory */

/* The first 64 bytes of a packed extent. */
typedef struct prof_i_packed_head {
  uint64_t magic;
  uint64_t bytes;        /* size of the packed extent: a multiple of 64, this head included */
  uint64_t plain_offset; /* offset of its content in the plain capture: a multiple of the unit */
  uint64_t plain_bytes;  /* size of its content there, at most PROF_I_PACKED_PLAIN_MAX */
  uint64_t plain_count;  /* size of the whole plain capture */
  uint32_t plain_version;
  uint32_t column_count;
  uint64_t spare;
  uint64_t check; /* checksum of all other bytes of the packed extent */
} prof_i_packed_head;
_Static_assert(sizeof(prof_i_packed_head) == PROF_I_PACKED_HEAD_BYTES, "as in the file");

/* The most bytes of a packed extent. A record of 16 bytes takes at most 58: a type and its children
   (10), two gaps (18), three residuals (27) and a site (3). Other records and the heads of chunks
   take less than four times their bytes, too. The heads of all columns take less than 4096. */
static inline uint64_t prof_i_packed_bytes_max(uint64_t plain_bytes) {
  return PROF_I_PACKED_HEAD_BYTES + 4096 + 4 * plain_bytes;
}

/* Both test for a packed extent at `at`, which is 8-byte aligned; `there` bytes are readable. They
   return the size of the extent, or 0. prof_i_packed_claimed() reads only the head.
   prof_i_packed_check() verifies all bytes. */
uint64_t prof_i_packed_claimed(const void *at, uint64_t there);
uint64_t prof_i_packed_check(const void *at, uint64_t there);

/* Packs parts of a plain capture. One thread at a time. If zstd is NULL, columns are not
   compressed. Only prof_i_pack_extent() uses zstd. Returns NULL if there is no memory. */
typedef struct prof_i_packer prof_i_packer;
prof_i_packer *prof_i_packer_create(prof_i_zstd *zstd);
void prof_i_packer_destroy(prof_i_packer *packer);

/* The input of prof_i_pack_columns(). plain: 8-byte aligned. */
typedef struct prof_i_packed_part {
  const void *plain;
  uint64_t plain_offset, plain_bytes, plain_count;
  uint32_t plain_version;
} prof_i_packed_part;

/* Packs a part in two steps, which different threads may take one after the other. The first fills
   the packer's columns, and reads `plain`. The second compresses them, and reads no plain bytes. It
   returns the packed extent, which is valid until the next part. */
void prof_i_pack_columns(prof_i_packer *packer, const prof_i_packed_part *part);
const void *prof_i_pack_extent(prof_i_packer *packer, uint64_t *bytes_out);

/* Unpacks extents. NULL: no memory. */
typedef struct prof_i_unpacker prof_i_unpacker;
prof_i_unpacker *prof_i_unpacker_create(void);
void prof_i_unpacker_destroy(prof_i_unpacker *unpacker);

typedef enum prof_i_unpacked {
  PROF_I_UNPACKED,
  PROF_I_UNPACK_DAMAGED,
  PROF_I_UNPACK_NEEDS_ZSTD /* a column is compressed, and zstd is NULL */
} prof_i_unpacked;

/* Unpacks an extent that has passed both checks. If another process may change it, the caller has
   checked a copy of its head, and passes that. The columns are what follows the head. At plain
   there are head->plain_bytes zeros, 8-byte aligned. If the extent is damaged, what is written
   there is undefined. */
prof_i_unpacked prof_i_unpack(prof_i_unpacker *unpacker, prof_i_zstd *zstd,
                              const prof_i_packed_head *head, const void *columns, void *plain);

#endif
