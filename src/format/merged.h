/* Merged captures: one file with several complete captures, its parts. After the header page, each
   part has a page with its head, then the bytes of its capture, then zeros up to the next page. A
   part may be packed. It keeps its own header and clock.

   A reader goes from head to head. So a truncated file loses the end of one part, and all later
   parts. Pure functions on memory. Called by src/live, which opens parts, and by prof merge. */
#ifndef PROF_FORMAT_MERGED_H
#define PROF_FORMAT_MERGED_H

#include <string.h>

#include "../base/text.h"
#include "layout.h"

enum {
  PROF_I_MERGED_VERSION = 4, /* at the offset of a capture's version */
  PROF_I_MERGED_PAGE_BYTES = PROF_I_HEADER_BYTES,
  PROF_I_MERGED_PARTS_MAX = 4096,
  PROF_I_MERGED_UNALIGNED = 1 /* a flag: the hosts start together (prof merge --unaligned) */
};
#define PROF_I_PART_MAGIC 0x74726170666f7270ull /* "profpart" in memory */

/* The first bytes of the file. The rest of the page is 0. */
typedef struct prof_i_merged_header {
  uint64_t magic;   /* PROF_I_MAGIC */
  uint32_t version; /* PROF_I_MERGED_VERSION */
  uint32_t header_bytes;
  uint64_t zeros[3];
  uint32_t unit_bytes; /* at the offset of prof_i_header.unit_bytes, which shows the byte order */
  uint32_t part_count;
  uint32_t flags;
  uint32_t check; /* of part_count and flags */
} prof_i_merged_header;
_Static_assert(offsetof(prof_i_merged_header, unit_bytes) == offsetof(prof_i_header, unit_bytes),
               "readers test the byte order by it");

/* The head of a part, at the begin of the page before the capture. */
typedef struct prof_i_part_head {
  uint64_t magic;
  uint64_t offset; /* of this head */
  uint64_t bytes;  /* of the capture, which begins at offset + PROF_I_MERGED_PAGE_BYTES */
  uint32_t number; /* from 0 */
  uint32_t spare;
  uint64_t check; /* of the words before it */
} prof_i_part_head;

/* The largest size of a part. With this limit, offsets after it cannot overflow. */
#define PROF_I_PART_BYTES_MAX (UINT64_C(1) << 60)

static inline uint32_t prof_i_merged_check(const prof_i_merged_header *header) {
  const uint32_t words[] = {header->version, header->part_count, header->flags};
  return prof_i_hash32(PROF_I_HASH32_SEED, (const char *)words, sizeof words);
}

static inline uint64_t prof_i_part_check(const prof_i_part_head *head) {
  return prof_i_hash64(PROF_I_HASH64_SEED, (const char *)head, offsetof(prof_i_part_head, check));
}

static inline prof_i_merged_header prof_i_merged_header_make(uint32_t part_count, uint32_t flags) {
  prof_i_merged_header header = {.magic = PROF_I_MAGIC,
                                 .version = PROF_I_MERGED_VERSION,
                                 .header_bytes = PROF_I_MERGED_PAGE_BYTES,
                                 .unit_bytes = PROF_I_UNIT_BYTES,
                                 .part_count = part_count,
                                 .flags = flags};
  header.check = prof_i_merged_check(&header);
  return header;
}

static inline prof_i_part_head prof_i_part_head_make(uint64_t offset, uint64_t bytes,
                                                     uint32_t number) {
  prof_i_part_head head = {
      .magic = PROF_I_PART_MAGIC, .offset = offset, .bytes = bytes, .number = number};
  head.check = prof_i_part_check(&head);
  return head;
}

/* Whether the page is the header of a merged capture. Its fields may be damaged. */
static inline bool prof_i_is_merged(const void *page, uint64_t count) {
  prof_i_merged_header header;
  if (count < sizeof header) return false;
  memcpy(&header, page, sizeof header);
  return header.magic == PROF_I_MAGIC && header.version == PROF_I_MERGED_VERSION &&
         header.unit_bytes == PROF_I_UNIT_BYTES;
}

/* Whether part_count and flags match their check, and are in range. */
static inline bool prof_i_merged_header_is_whole(const prof_i_merged_header *header) {
  return header->check == prof_i_merged_check(header) && header->part_count > 0 &&
         header->part_count <= PROF_I_MERGED_PARTS_MAX;
}

/* Whether this is an undamaged head at this offset. */
static inline bool prof_i_part_head_is_whole(const prof_i_part_head *head, uint64_t offset) {
  return head->magic == PROF_I_PART_MAGIC && head->check == prof_i_part_check(head) &&
         head->offset == offset && head->bytes <= PROF_I_PART_BYTES_MAX &&
         head->number < PROF_I_MERGED_PARTS_MAX;
}

/* The offset of the head after a capture with this offset and size. */
static inline uint64_t prof_i_part_end(uint64_t offset, uint64_t bytes) {
  const uint64_t page = PROF_I_MERGED_PAGE_BYTES;
  return offset + (bytes + page - 1) / page * page;
}

#endif
