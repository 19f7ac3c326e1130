/* See merged.h. */
#include "merged.h"

#include <string.h>

#include "../base/text.h"
#include "layout.h"

/* The largest size of a part. With this limit, offsets after it cannot overflow. */
#define PART_BYTES_MAX (UINT64_C(1) << 60)

static uint32_t header_check(const prof_i_merged_header *header) {
  const uint32_t words[] = {header->version, header->part_count, header->flags};
  return prof_i_hash32(PROF_I_HASH32_SEED, (const char *)words, sizeof words);
}

static uint64_t head_check(const prof_i_part_head *head) {
  return prof_i_hash64(PROF_I_HASH64_SEED, (const char *)head, offsetof(prof_i_part_head, check));
}

prof_i_merged_header prof_i_merged_header_make(uint32_t part_count, uint32_t flags) {
  prof_i_merged_header header = {.magic = PROF_I_MAGIC,
                                 .version = PROF_I_MERGED_VERSION,
                                 .header_bytes = PROF_I_MERGED_PAGE_BYTES,
                                 .unit_bytes = PROF_I_UNIT_BYTES,
                                 .part_count = part_count,
                                 .flags = flags};
  header.check = header_check(&header);
  return header;
}

prof_i_part_head prof_i_part_head_make(uint64_t offset, uint64_t bytes, uint32_t number) {
  prof_i_part_head head = {
      .magic = PROF_I_PART_MAGIC, .offset = offset, .bytes = bytes, .number = number};
  head.check = head_check(&head);
  return head;
}

bool prof_i_is_merged(const void *page, uint64_t count) {
  prof_i_merged_header header;
  if (count < sizeof header) return false;
  memcpy(&header, page, sizeof header);
  return header.magic == PROF_I_MAGIC && header.version == PROF_I_MERGED_VERSION &&
         header.unit_bytes == PROF_I_UNIT_BYTES;
}

bool prof_i_merged_header_is_whole(const prof_i_merged_header *header) {
  return header->check == header_check(header) && header->part_count > 0 &&
         header->part_count <= PROF_I_MERGED_PARTS_MAX;
}

bool prof_i_part_head_is_whole(const prof_i_part_head *head, uint64_t offset) {
  return head->magic == PROF_I_PART_MAGIC && head->check == head_check(head) &&
         head->offset == offset && head->bytes <= PART_BYTES_MAX &&
         head->number < PROF_I_MERGED_PARTS_MAX;
}
