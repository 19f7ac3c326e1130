/* Copies of a capture: as it is, and packed. The plain copy is whole and uncompressed, because a
   capture is opened by mapping it. The packed copy is compressed. A worker compresses the columns
   of one part while the caller fills those of the next one and writes the extent before it. So
   there are two packers, and memory does not grow with the capture. */
#include <stdlib.h>
#include <string.h>

#include "../base/error.h"
#include "../base/worker.h"
#include "../format/header.h"
#include "../format/packed.h"
#include "../format/packed_walk.h"
#include "exporter.h"

/* A copy of what is being recorded says so, or it would be taken for what a process left that
   died. */
static void make_header(const prof_trace *trace, prof_i_header *header_out) {
  uint64_t count = 0;
  prof_trace_info info = {.size = sizeof info};
  prof_trace_info_get(trace, &info);
  memcpy(header_out, prof_i_trace_bytes_at(trace, 0, &count), sizeof *header_out);
  if (!info.is_live || info.was_clean) return;
  header_out->state = PROF_I_STATE_COPIED;
  prof_i_trace_opened_at(trace, &header_out->copied_ticks, &header_out->copied_ns);
}

/* ---- as it is ---- */

static int copy_capture(const prof_trace *trace, prof_i_sink *sink) {
  uint64_t count = 0, done = sizeof(prof_i_header);
  const void *bytes;
  prof_i_header header;
  make_header(trace, &header);
  prof_i_sink_bytes(sink, &header, sizeof header);
  for (; (bytes = prof_i_trace_bytes_at(trace, done, &count)) != NULL && count; done += count)
    prof_i_sink_bytes(sink, bytes, count);
  return sink->status;
}

const prof_i_exporter prof_i_capture_exporter = {.name = "capture",
                                                 .format = PROF_FORMAT_CAPTURE,
                                                 .suffixes = {".prof"},
                                                 .is_private = true,
                                                 .copy = copy_capture};

/* ---- packed: the plain bytes ---- */

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

/* ---- packed: the parts ---- */

/* A part between its plain bytes and the file. */
typedef struct pack_step {
  prof_i_packer *packer;
  const void *extent;
  uint64_t bytes; /* of the extent */
} pack_step;

typedef struct pack_run {
  plain_bytes plain;
  uint32_t version;
  prof_i_zstd *zstd;
  prof_i_worker *worker;
  pack_step steps[2]; /* part i is in steps[i % 2] */
} pack_run;

static void compress_step(void *argument) {
  pack_step *const step = argument;
  step->extent = prof_i_pack_extent(step->packer, &step->bytes);
}

static int fail_in_child(void) {
  return prof_i_fail(PROF_E_BUSY,
                     "the process forked while it packed a capture; the child cannot continue, "
                     "the parent does");
}

static int pack_all(pack_run *run, prof_i_sink *sink) {
  plain_bytes *const plain = &run->plain;
  const uint64_t whole = count_bytes(plain->trace);
  const pack_step *compressed = NULL;
  if (whole <= PROF_I_FIRST_UNIT_OFFSET) return sink->status;
  read_on(plain, 0);
  for (uint32_t i = 0; sink->status == PROF_OK; i++) {
    pack_step *const step = &run->steps[i % 2];
    const bool has_part = plain->count > 0;
    if (has_part) {
      const prof_i_packed_part part = {
          .plain = plain->memory,
          .plain_offset = plain->offset,
          .plain_bytes = prof_i_packed_part_bytes(plain->memory, plain->offset, plain->count),
          .plain_count = whole,
          .plain_version = run->version};
      prof_i_pack_columns(step->packer, &part);
      read_on(plain, part.plain_bytes);
    }
    if (!prof_i_worker_wait(run->worker)) return fail_in_child();
    if (has_part) prof_i_worker_begin(run->worker, compress_step, step);
    if (compressed) prof_i_sink_bytes(sink, compressed->extent, compressed->bytes);
    if (!has_part) break;
    compressed = step;
  }
  return sink->status;
}

static int pack_run_init(pack_run *run) {
  int status = prof_i_zstd_create("a packed capture is compressed by zstd", &run->zstd);
  if (status != PROF_OK) return status;
  run->plain.memory = malloc(PROF_I_PACKED_PLAIN_MAX);
  run->worker = prof_i_worker_create("prof-packer");
  bool has_memory = run->plain.memory && run->worker;
  for (int i = 0; i < 2; i++) {
    run->steps[i].packer = prof_i_packer_create(run->zstd);
    has_memory = has_memory && run->steps[i].packer;
  }
  return has_memory ? PROF_OK : prof_i_fail(PROF_E_NO_MEMORY, "no memory to pack a capture");
}

static void pack_run_fini(pack_run *run) {
  if (!prof_i_worker_destroy(run->worker)) return; /* first: it uses the others */
  for (int i = 0; i < 2; i++) prof_i_packer_destroy(run->steps[i].packer);
  free(run->plain.memory);
  prof_i_zstd_destroy(run->zstd);
}

/* Not on the stack: the caller's may be small. NULL: no memory. The caller frees it. */
static prof_i_header *make_packed_page(const prof_trace *trace) {
  prof_i_header *const page = calloc(1, PROF_I_HEADER_BYTES);
  if (page) make_header(trace, page);
  return page;
}

static int pack_capture(const prof_trace *trace, prof_i_sink *sink) {
  prof_i_header *const page = make_packed_page(trace);
  if (!page) return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a capture's header");
  pack_run run = {.plain = {.trace = trace, .offset = PROF_I_FIRST_UNIT_OFFSET},
                  .version = page->version};
  page->version = PROF_I_PACKED_VERSION;
  int status = pack_run_init(&run);
  if (status == PROF_OK) {
    prof_i_sink_bytes(sink, page, PROF_I_HEADER_BYTES);
    status = pack_all(&run, sink);
  }
  pack_run_fini(&run);
  free(page);
  return status;
}

const prof_i_exporter prof_i_packed_exporter = {
    .name = "packed", .format = PROF_FORMAT_PACKED, .is_private = true, .copy = pack_capture};
