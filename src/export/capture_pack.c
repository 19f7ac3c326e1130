/* Writes a packed capture: a copy of a capture, compressed. */
#include <stdlib.h>
#include <string.h>

#include "../base/log.h"
#include "../format/packed.h"
#include "../format/packed_walk.h"
#include "capture_header.h"
#include "exporter.h"

/* A window of 1 MiB over the bytes of the capture. */
typedef struct plain_bytes {
  const prof_trace *trace;
  unsigned char *memory;
  uint64_t offset; /* of the first byte in memory */
  uint64_t count;  /* bytes in memory */
  bool is_end;
} plain_bytes;

/* Drops the first `drop` bytes and refills the window. After the capture's end, zeros fill up the
   last unit. */
static void read_on(plain_bytes *plain, uint64_t drop) {
  memmove(plain->memory, plain->memory + drop, plain->count - drop);
  plain->offset += drop;
  plain->count -= drop;
  while (!plain->is_end && plain->count < PROF_I_PACKED_PLAIN_MAX) {
    uint64_t count = 0;
    const void *const from =
        prof_i_trace_bytes_at(plain->trace, plain->offset + plain->count, &count);
    const uint64_t room = PROF_I_PACKED_PLAIN_MAX - plain->count;
    const uint64_t taken = count < room ? count : room;
    if (taken) memcpy(plain->memory + plain->count, from, taken);
    plain->is_end = !taken;
    plain->count += taken;
  }
  const uint64_t over = plain->count % PROF_I_UNIT_BYTES;
  if (!over) return;
  memset(plain->memory + plain->count, 0, PROF_I_UNIT_BYTES - over);
  plain->count += PROF_I_UNIT_BYTES - over;
}

static uint64_t count_bytes(const prof_trace *trace) {
  uint64_t at = 0, count = 0;
  while (prof_i_trace_bytes_at(trace, at, &count) && count) at += count;
  return at;
}

static int pack_all(const prof_trace *trace, uint32_t version, prof_i_packer *packer,
                    unsigned char *memory, prof_i_sink *sink) {
  plain_bytes plain = {.trace = trace, .memory = memory, .offset = PROF_I_FIRST_UNIT_OFFSET};
  const uint64_t whole = count_bytes(trace);
  if (whole <= PROF_I_FIRST_UNIT_OFFSET) return sink->status;
  read_on(&plain, 0);
  while (plain.count > 0 && sink->status == PROF_OK) {
    const prof_i_packed_part part = {
        .plain = plain.memory,
        .plain_offset = plain.offset,
        .plain_bytes = prof_i_packed_part_bytes(plain.memory, plain.offset, plain.count),
        .plain_count = whole,
        .plain_version = version};
    uint64_t bytes;
    const void *const extent = prof_i_pack(packer, &part, &bytes);
    prof_i_sink_bytes(sink, extent, bytes);
    read_on(&plain, part.plain_bytes);
  }
  return sink->status;
}

static int pack_capture(const prof_trace *trace, prof_i_sink *sink) {
  union {
    prof_i_header header;
    unsigned char bytes[PROF_I_HEADER_BYTES];
  } page = {.bytes = {0}};
  prof_i_zstd *zstd = NULL;
  int status = prof_i_zstd_create("a packed capture is compressed by zstd", &zstd);
  if (status != PROF_OK) return status;
  prof_i_packer *const packer = prof_i_packer_create(zstd);
  unsigned char *const memory = malloc(PROF_I_PACKED_PLAIN_MAX);
  if (packer && memory) {
    prof_i_capture_header(trace, &page.header);
    const uint32_t version = page.header.version;
    page.header.version = PROF_I_PACKED_VERSION;
    prof_i_sink_bytes(sink, &page, sizeof page);
    status = pack_all(trace, version, packer, memory, sink);
  } else {
    status = prof_i_fail(PROF_E_NO_MEMORY, "no memory to pack a capture");
  }
  free(memory);
  prof_i_packer_destroy(packer);
  prof_i_zstd_destroy(zstd);
  return status;
}

const prof_i_exporter prof_i_packed_exporter = {
    .name = "packed", .format = PROF_FORMAT_PACKED, .is_private = true, .copy = pack_capture};
