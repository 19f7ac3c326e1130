/* Packed captures of any bytes. The first byte of an input selects, modulo 4:

       0, 2    The rest is a capture as sparse.h has it. Packed and unpacked it is the same, and the
               reader finds the same events and damage in both. For 2 the packed file is damaged
               before it is read: 4 changes of 3 bytes come first, a place and what is flipped
               there.
       1       The rest are columns of a packed extent: number, 2 bytes of length, the bytes. The
               raw column begins with the head of a chunk. They are unpacked, whatever they hold. If
               they fit, then packing and unpacking the result gives it again.
       3       The rest is a packed file from its first extent on. */
#define _GNU_SOURCE
#include <prof/trace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/packed.h"
#include "format/packed_columns.h"
#include "format/packed_walk.h"
#include "sparse.h"

static prof_i_packer *packer;
static prof_i_unpacker *unpacker;

static void require(int holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "fuzz_packed: %s\n", what);
  abort();
}

static unsigned char *zeros(size_t count) {
  unsigned char *const bytes = calloc(1, count ? count : 1);
  require(bytes != NULL, "no memory");
  return bytes;
}

/* What is behind the cursor of a chunk is zero after unpacking. */
static void require_same(const unsigned char *plain, const unsigned char *back, uint64_t offset,
                         uint64_t bytes) {
  for (uint64_t at = 0, slots; at < bytes;) {
    const uint64_t chunk = prof_i_packed_chunk(plain + at, offset + at, bytes - at, &slots);
    require(memcmp(plain + at, back + at,
                   chunk ? PROF_I_HEAD_BYTES + slots * 16 : PROF_I_UNIT_BYTES) == 0,
            "unpacking does not give the plain bytes back");
    at += chunk ? chunk : PROF_I_UNIT_BYTES;
  }
}

/* Appends to the file if that is not NULL. */
static void pack_and_unpack(const unsigned char *plain, uint64_t offset, uint64_t bytes,
                            uint64_t plain_count, FILE *file) {
  const prof_i_packed_part part = {plain, offset, bytes, plain_count, 2};
  uint64_t packed;
  prof_i_pack_columns(packer, &part);
  const prof_i_packed_head *const head = prof_i_pack_extent(packer, &packed);
  unsigned char *const back = zeros(bytes);
  require(prof_i_packed_check(head, packed) == packed, "what was packed does not check");
  require(prof_i_unpack(unpacker, NULL, head, head + 1, back) == PROF_I_UNPACKED,
          "it cannot be unpacked");
  require_same(plain, back, offset, bytes);
  if (file) fwrite(head, 1, packed, file);
  free(back);
}

static uint64_t sum_of(const void *bytes, size_t count, uint64_t *bad_count) {
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  if (prof_trace_open_bytes(bytes, count, &trace) != PROF_OK) return UINT64_MAX;
  require(prof_trace_info_get(trace, &info) == PROF_OK, "no info");
  prof_trace_destroy(trace);
  *bad_count = info.bad_count;
  return info.event_count;
}

enum { CHANGES = 4, CHANGE_BYTES = 3 };

/* Whatever the file holds: the reader stays inside it. */
static void read_damaged(unsigned char *packed, size_t count, const uint8_t *changes) {
  uint64_t bad;
  for (int i = 0; i < CHANGES; i++, changes += CHANGE_BYTES) {
    const size_t place = (size_t)(changes[0] | changes[1] << 8) * 8 % count;
    packed[place] ^= changes[2];
  }
  sum_of(packed, count, &bad);
}

/* The header of a packed file. */
static void packed_page(unsigned char *page, const unsigned char *plain) {
  prof_i_header header;
  memcpy(page, plain, PROF_I_HEADER_BYTES);
  memcpy(&header, plain, sizeof header);
  header.version = PROF_I_PACKED_VERSION;
  memcpy(page, &header, sizeof header);
}

static void pack_capture(const uint8_t *data, size_t size, const uint8_t *changes) {
  const size_t count = sparse_bytes(data, size);
  unsigned char *const plain = zeros(count);
  sparse_expand(plain, data, size);
  char *packed = NULL;
  size_t packed_bytes = 0;
  FILE *const file = open_memstream(&packed, &packed_bytes);
  require(file != NULL, "no memory");
  unsigned char page[PROF_I_HEADER_BYTES] = {0};
  packed_page(page, plain);
  fwrite(page, 1, sizeof page, file);
  for (uint64_t at = PROF_I_FIRST_UNIT_OFFSET; at < count;) {
    const uint64_t bytes = prof_i_packed_part_bytes(plain + at, at, count - at);
    pack_and_unpack(plain + at, at, bytes, count, file);
    at += bytes;
  }
  fclose(file);
  ((prof_i_header *)(void *)plain)->version = 2; /* as the parts say */
  uint64_t plain_bad = 0, packed_bad = 0;
  const uint64_t events = sum_of(plain, count, &plain_bad);
  if (count > PROF_I_FIRST_UNIT_OFFSET) {
    const uint64_t packed_events = sum_of(packed, packed_bytes, &packed_bad);
    /* A capture is opened before it is packed, so one that is refused never is. */
    if (events != UINT64_MAX) {
      require(events == packed_events, "the packed capture has other events");
      require(plain_bad == packed_bad, "the packed capture has other damage");
    }
  }
  if (changes) read_damaged((unsigned char *)packed, packed_bytes, changes);
  free(packed);
  free(plain);
}

static void read_as_packed(const uint8_t *data, size_t size) {
  const prof_i_header header = {.magic = PROF_I_MAGIC,
                                .version = PROF_I_PACKED_VERSION,
                                .header_bytes = PROF_I_HEADER_BYTES,
                                .unit_bytes = PROF_I_UNIT_BYTES};
  unsigned char *const file = zeros(PROF_I_HEADER_BYTES + size);
  uint64_t bad;
  memcpy(file, &header, sizeof header);
  memcpy(file + PROF_I_HEADER_BYTES, data, size);
  sum_of(file, PROF_I_HEADER_BYTES + size, &bad);
  free(file);
}

enum { PLAIN_OFFSET = PROF_I_FIRST_UNIT_OFFSET, EXTENT_MOST = 1 << 20 };

static size_t put_column(unsigned char *to, uint8_t column, const void *start, size_t start_bytes,
                         const uint8_t *rest, size_t rest_bytes) {
  const prof_i_column_head head = {.column = column,
                                   .method = PROF_I_COLUMN_STORED,
                                   .count = (uint32_t)(start_bytes + rest_bytes),
                                   .stored = (uint32_t)(start_bytes + rest_bytes)};
  memcpy(to, &head, sizeof head);
  if (start_bytes) memcpy(to + sizeof head, start, start_bytes);
  memcpy(to + sizeof head + start_bytes, rest, rest_bytes);
  return sizeof head + start_bytes + rest_bytes;
}

static prof_i_head chunk_head(uint8_t units, uint8_t generation, uint16_t slots) {
  const uint64_t bytes = units * (uint64_t)PROF_I_UNIT_BYTES;
  return (prof_i_head){.cursor = PROF_I_HEAD_BYTES + slots * 16ull,
                       .generation = generation,
                       .magic = PROF_I_EXTENT_MAGIC,
                       .kind = PROF_I_EXTENT_CHUNK,
                       .bytes = bytes,
                       .check = prof_i_head_check_of(PLAIN_OFFSET, bytes, PROF_I_EXTENT_CHUNK)};
}

static void unpack_columns(const uint8_t *data, size_t size) {
  if (size < 4) return;
  const uint8_t units = 1 + data[0] % 4;
  const prof_i_head chunk = chunk_head(units, 1 + data[1] % 15, (uint16_t)(data[2] | data[3] << 8));
  unsigned char *const extent = zeros(EXTENT_MOST), *const plain = zeros(chunk.bytes);
  prof_i_packed_head *const head = (prof_i_packed_head *)(void *)extent;
  size_t at = 4, used = sizeof *head;
  while (size - at >= 3 && used < EXTENT_MOST - 70000) {
    const uint8_t column = data[at] % (PROF_I_COLUMN_COUNT + 1);
    size_t count = (size_t)(data[at + 1] | data[at + 2] << 8);
    at += 3;
    if (count > size - at) count = size - at;
    used += put_column(extent + used, column, &chunk,
                       column == PROF_I_COLUMN_RAW ? sizeof chunk : 0, data + at, count);
    head->column_count++;
    at += count;
  }
  head->bytes = used;
  head->plain_offset = PLAIN_OFFSET;
  head->plain_bytes = chunk.bytes;
  if (prof_i_unpack(unpacker, NULL, head, head + 1, plain) == PROF_I_UNPACKED)
    pack_and_unpack(plain, PLAIN_OFFSET, chunk.bytes, PLAIN_OFFSET + chunk.bytes, NULL);
  free(extent);
  free(plain);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (!packer) packer = prof_i_packer_create(NULL);
  if (!unpacker) unpacker = prof_i_unpacker_create();
  require(packer && unpacker, "no memory");
  if (size < 2 || (data[0] % 4 == 2 && size < 2 + CHANGES * CHANGE_BYTES)) return 0;
  switch (data[0] % 4) {
    case 0:
      pack_capture(data + 1, size - 1, NULL);
      break;
    case 1:
      unpack_columns(data + 1, size - 1);
      break;
    case 2:
      pack_capture(data + 1 + CHANGES * CHANGE_BYTES, size - 1 - CHANGES * CHANGE_BYTES, data + 1);
      break;
    default:
      read_as_packed(data + 1, size - 1);
  }
  return 0;
}
