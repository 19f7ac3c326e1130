/* Packed captures. After the header page follow packed extents, and any extent of a plain capture
   may stand between them, at its own offset. A packed extent holds up to 1 MiB of the plain
   capture, a whole number of units. Each can be read alone.

   The records of chunks become columns (packed_columns.h): what they are, sites, gaps between
   times, numbers of payloads, and so on. Everything else stays as words of 8 bytes. zstd packs each
   column. docs/reference/file-format.md has the details. Pure functions of memory. */
#ifndef PROF_FORMAT_PACKED_H
#define PROF_FORMAT_PACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/zstd.h"
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
  uint64_t bytes;        /* of the packed extent: a multiple of 64, this head included */
  uint64_t plain_offset; /* of its bytes in the plain capture: a multiple of the unit */
  uint64_t plain_bytes;  /* a multiple of the unit, at most PROF_I_PACKED_PLAIN_MAX */
  uint64_t plain_count;  /* of the plain capture */
  uint32_t plain_version;
  uint32_t column_count;
  uint64_t spare;
  uint64_t check; /* of all other bytes of the packed extent */
} prof_i_packed_head;
_Static_assert(sizeof(prof_i_packed_head) == PROF_I_PACKED_HEAD_BYTES, "as in the file");

/* The most bytes of a packed extent. A record of 16 bytes takes at most 58: a type and its children
   (10), two gaps (18), three residuals (27) and a site (3). Other records and the heads of chunks
   take less than four times their bytes, too. The heads of all columns take less than 4096. */
static inline uint64_t prof_i_packed_bytes_max(uint64_t plain_bytes) {
  return PROF_I_PACKED_HEAD_BYTES + 4096 + 4 * plain_bytes;
}

/* Both look for a packed extent at `at`, which is 8-byte aligned and has `there` bytes. They return
   the bytes of the extent, or 0. The first one reads the head alone. The second one checks all
   bytes of the extent. */
uint64_t prof_i_packed_claimed(const void *at, uint64_t there);
uint64_t prof_i_packed_check(const void *at, uint64_t there);

/* Packs parts of a plain capture. One thread at a time. zstd may be NULL: the columns stay as they
   are. NULL: no memory. */
typedef struct prof_i_packer prof_i_packer;
prof_i_packer *prof_i_packer_create(prof_i_zstd *zstd);
void prof_i_packer_destroy(prof_i_packer *packer);

/* What is packed. plain: 8-byte aligned. */
typedef struct prof_i_packed_part {
  const void *plain;
  uint64_t plain_offset, plain_bytes, plain_count;
  uint32_t plain_version;
} prof_i_packed_part;

/* The packed extent, which is valid until the next call. */
const void *prof_i_pack(prof_i_packer *packer, const prof_i_packed_part *part, uint64_t *bytes_out);

/* Unpacks. NULL: no memory. */
typedef struct prof_i_unpacker prof_i_unpacker;
prof_i_unpacker *prof_i_unpacker_create(void);
void prof_i_unpacker_destroy(prof_i_unpacker *unpacker);

typedef enum prof_i_unpacked {
  PROF_I_UNPACKED,
  PROF_I_UNPACK_DAMAGED,
  PROF_I_UNPACK_NEEDS_ZSTD /* a column is packed, and zstd is NULL */
} prof_i_unpacked;

/* Of what prof_i_packed_check() passed, into head->plain_bytes of zeros, 8-byte aligned. If it is
   damaged, these hold anything. */
prof_i_unpacked prof_i_unpack(prof_i_unpacker *unpacker, prof_i_zstd *zstd,
                              const prof_i_packed_head *head, void *plain);

#endif
