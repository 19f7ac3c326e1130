/* Where a trace's bytes come from: the caller's memory, a file or a snapshot (src/live). */
#define _GNU_SOURCE
#include <prof/profiler.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../base/error.h"
#include "../base/fault.h"
#include "../base/port.h"
#include "../core/buffer/blocks.h"
#include "../format/merged.h"
#include "capture.h"
#include "internal.h"

/* ---- bytes ---- */

/* A process has at most 65530 mappings, and traces may exist for long. So this many runs of all
   traces together are mapped. Others are copied. */
enum { RUNS_MAX = 8192 };
static uint32_t runs_mapped;   /* any thread, relaxed */
static uint64_t bytes_counted; /* the same */

_Atomic uint64_t prof_i_progress_bytes;

bool prof_i_source_add_mapping(void) {
  if (__atomic_fetch_add(&runs_mapped, 1, __ATOMIC_RELAXED) < RUNS_MAX) return true;
  __atomic_fetch_sub(&runs_mapped, 1, __ATOMIC_RELAXED);
  return false;
}

bool prof_i_source_hold(uint64_t bytes) {
  if (bytes == 0) return true;
  if (bytes > PROF_I_LARGE_CAPTURE_BYTES) return false;
  if (__atomic_add_fetch(&bytes_counted, bytes, __ATOMIC_RELAXED) <= PROF_I_OPEN_SOURCES_BYTES)
    return true;
  __atomic_fetch_sub(&bytes_counted, bytes, __ATOMIC_RELAXED);
  return false;
}
void prof_i_source_let_go(uint64_t bytes) {
  __atomic_fetch_sub(&bytes_counted, bytes, __ATOMIC_RELAXED);
}

static const prof_i_cached_head *first_cached_head_from(const prof_i_source *source,
                                                        uint64_t offset) {
  uint32_t low = 0, high = source->head_count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (source->heads[middle].offset < offset)
      low = middle + 1;
    else
      high = middle;
  }
  return low < source->head_count ? &source->heads[low] : NULL;
}

/* The extent's head, in the bytes or the cached one. */
static const prof_i_head *source_head(const prof_i_source *source, uint64_t offset) {
  const prof_i_cached_head *const kept = first_cached_head_from(source, offset);
  return kept && kept->offset == offset
             ? &kept->head
             : (const prof_i_head *)(const void *)(source->bytes + offset);
}

const unsigned char *prof_i_source_chunk(const prof_i_source *source, uint64_t offset) {
  const prof_i_cached_head *const kept = first_cached_head_from(source, offset);
  return kept && kept->offset == offset ? kept->at : source->bytes + offset;
}

bool prof_i_source_is_shared(const prof_i_source *source, uint64_t offset) {
  const prof_i_cached_head *const kept = first_cached_head_from(source, offset);
  return kept && kept->offset == offset;
}

static bool chunk_is_in_place(const prof_i_source *source, const unsigned char *at) {
  return source->in_place && at >= source->in_place &&
         at < source->in_place + source->in_place_bytes;
}

uint64_t prof_i_source_offset(const prof_i_source *source, const void *at) {
  const unsigned char *const byte = at;
  return (uint64_t)(byte - (chunk_is_in_place(source, byte) ? source->in_place : source->bytes));
}

/* The chunk with a cached head that contains this offset; NULL: none. */
static const prof_i_cached_head *cached_head_before(const prof_i_source *source,
                                                    const prof_i_cached_head *next,
                                                    uint64_t offset) {
  const prof_i_cached_head *const before = next ? next : source->heads + source->head_count;
  if (before == source->heads) return NULL;
  return offset < before[-1].offset + before[-1].head.bytes ? &before[-1] : NULL;
}

const void *prof_i_source_bytes_at(const prof_i_source *source, uint64_t offset,
                                   uint64_t *count_out) {
  const prof_i_cached_head *const kept = first_cached_head_from(source, offset);
  if (kept && kept->offset == offset) {
    *count_out = sizeof kept->head;
    return &kept->head;
  }
  const prof_i_cached_head *const around = cached_head_before(source, kept, offset);
  const uint64_t end = around ? around->offset + around->head.bytes
                       : kept ? kept->offset
                              : source->count;
  *count_out = end - offset;
  return around ? around->at + (offset - around->offset) : source->bytes + offset;
}

void prof_i_source_fini(prof_i_source *source) {
  if (source->head_count) __atomic_fetch_sub(&runs_mapped, source->run_count, __ATOMIC_RELAXED);
  free(source->heads);
  unsigned char *const bytes = (unsigned char *)(uintptr_t)source->bytes;
  if (source->kind == PROF_I_SOURCE_COPY) free(bytes);
  prof_i_source_let_go(source->counted_bytes);
  if (source->kind == PROF_I_SOURCE_MAPPING && bytes)
    prof_i_port_unmap(bytes - source->lead_bytes, (size_t)(source->count + source->lead_bytes));
  if (source->snapshot_pin) source->end_snapshot_pin(source->snapshot_pin);
  free(source->runs);
  *source = (prof_i_source){.kind = PROF_I_SOURCE_BORROWED};
}

static const prof_i_mapped_run *mapped_run_at(const prof_i_source *source, uint64_t offset) {
  uint32_t low = 0, high = source->run_count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    const prof_i_mapped_run *const run = &source->runs[middle];
    if (offset < run->offset)
      high = middle;
    else if (offset >= run->offset + run->bytes)
      low = middle + 1;
    else
      return run;
  }
  return NULL;
}

void prof_i_source_release_pages(const prof_i_source *source, const void *from, uint64_t bytes) {
  prof_i_progress_add(bytes);
  enum { PAGE_BYTES = 4096 };
  if (source->run_count == 0 || source->count < PROF_I_LARGE_CAPTURE_BYTES ||
      chunk_is_in_place(source, from))
    return;
  const uint64_t offset = (uint64_t)((const unsigned char *)from - source->bytes),
                 end = (offset + bytes) & ~(uint64_t)(PAGE_BYTES - 1);
  uint64_t first = (offset + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);
  const prof_i_mapped_run *run = mapped_run_at(source, first);
  if (!run)
    run = mapped_run_at(source, first += PAGE_BYTES); /* a chunk's first page is the trace's own */
  if (!run) return;
  const uint64_t last = end < run->offset + run->bytes ? end : run->offset + run->bytes;
  if (last > first)
    madvise((void *)(uintptr_t)(source->bytes + first), (size_t)(last - first), MADV_DONTNEED);
}

/* Memory of another process (/proc/PID/map_files, or a copy of it) lacks its private blocks. It is
   recognised by the first block, which is shared: these bytes are zero in a file. */
static bool lacks_private_blocks(const unsigned char *first_unit) {
  const unsigned char *const states = first_unit + PROF_I_HEADER_BYTES;
  return states[0] == PROF_I_BLOCK_SHARED &&
         memchr(states, PROF_I_BLOCK_PRIVATE, PROF_I_BLOCK_COUNT_MAX) != NULL;
}

int prof_i_source_check_memory(const unsigned char *first_unit, const char *what) {
  if (!lacks_private_blocks(first_unit)) return PROF_OK;
  prof_i_header header;
  memcpy(&header, first_unit, sizeof header);
  return prof_i_fail(PROF_E_NOT_CAPTURE,
                     "%s is a part of the memory of process %u, which records without a file; only "
                     "that process has the rest: let it call prof_dump(), or record to a file",
                     what, header.pid);
}

int prof_i_source_bytes(prof_i_source *source, const void *bytes, size_t count) {
  const int status = count >= PROF_I_FIRST_UNIT_OFFSET
                         ? prof_i_source_check_memory(bytes, "what was given")
                         : PROF_OK;
  if (status) return status;
  *source = (prof_i_source){.bytes = bytes, .count = count, .kind = PROF_I_SOURCE_BORROWED};
  if ((uintptr_t)bytes % sizeof(uint64_t) == 0) return PROF_OK;
  unsigned char *const copy = malloc(count ? count : 1); /* records are read by words */
  if (!copy)
    return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a copy of %zu bytes that are not aligned",
                       count);
  memcpy(copy, bytes, count);
  *source = (prof_i_source){.bytes = copy, .count = count, .kind = PROF_I_SOURCE_COPY};
  return PROF_OK;
}

/* ---- extents ---- */

/* Checks the header and the extents of a capture. Code after these checks does not read outside
   the bytes. */

static int refuse_byte_order(void) {
  return prof_i_fail(PROF_E_NOT_CAPTURE,
                     "the capture was written in the other byte order (big-endian); read it on a "
                     "machine of that order");
}

/* The files that are most often mistaken for a capture. */
static const struct {
  const char *begin;
  size_t bytes;
  const char *text;
} foreign_magics[] = {
    {"{", 1, "it begins as JSON does; give the .prof file, not the trace made from it"},
    {"[", 1, "it begins as JSON does; give the .prof file, not the trace made from it"},
    {"\x1f\x8b", 2,
     "it is compressed (gzip); unpack it, and give the .prof file, not the trace made from it"},
    {"\x28\xb5\x2f\xfd", 4, "it is compressed (zstd); unpack it first"},
    {"\xfd"
     "7zXZ",
     5, "it is compressed (xz); unpack it first"},
    {"PK\x03\x04", 4, "it is compressed (zip); unpack it first"}};

static int refuse_magic(const unsigned char *bytes, uint64_t count) {
  const uint64_t magic = PROF_I_MAGIC, swapped = __builtin_bswap64(magic);
  if (count >= sizeof swapped && memcmp(bytes, &swapped, sizeof swapped) == 0)
    return refuse_byte_order();
  const uint64_t seen = count < sizeof magic ? count : sizeof magic;
  if (seen < sizeof magic && memcmp(bytes, &magic, (size_t)seen) == 0)
    return prof_i_fail(
        PROF_E_TRUNCATED,
        "the capture has %llu bytes; its first page alone has %d, so nothing in it can be read",
        (unsigned long long)count, PROF_I_HEADER_BYTES);
  if (seen >= 4 && memcmp(bytes, &magic, 4) == 0)
    return prof_i_fail(PROF_E_NOT_CAPTURE,
                       "the first bytes are a capture's, but were changed: copied as text? copy it "
                       "anew, as binary");
  for (size_t i = 0; i < sizeof foreign_magics / sizeof *foreign_magics; i++)
    if (count >= foreign_magics[i].bytes &&
        memcmp(bytes, foreign_magics[i].begin, foreign_magics[i].bytes) == 0)
      return prof_i_fail(PROF_E_NOT_CAPTURE, "the first 8 bytes are not a capture's: %s",
                         foreign_magics[i].text);
  const uint64_t no_magic = 0; /* a recorder stores the magic last */
  if (memcmp(bytes, &no_magic, (size_t)seen) == 0)
    return prof_i_fail(PROF_E_NOT_CAPTURE,
                       "the first 8 bytes are zeros: a process that records into this file is "
                       "starting, try again; or it ended while it started");
  return prof_i_fail(
      PROF_E_NOT_CAPTURE,
      "the first 8 bytes are not a capture's; give the .prof file that stands beside the output");
}

int prof_i_header_detect(const unsigned char *bytes, uint64_t count, prof_i_header *header_out) {
  const uint64_t magic = PROF_I_MAGIC;
  if (count < sizeof magic || memcmp(bytes, &magic, sizeof magic) != 0)
    return refuse_magic(bytes, count);
  if (count < PROF_I_HEADER_BYTES)
    return prof_i_fail(
        PROF_E_TRUNCATED,
        "the capture has %llu bytes; its first page alone has %d, so nothing in it can be read",
        (unsigned long long)count, PROF_I_HEADER_BYTES);
  memcpy(header_out, bytes, sizeof *header_out);
  /* with the magic as a text */
  if (header_out->unit_bytes == __builtin_bswap32(PROF_I_UNIT_BYTES)) return refuse_byte_order();
  if (header_out->version == PROF_I_MERGED_VERSION)
    return prof_i_fail(PROF_E_INVALID,
                       "the capture is merged from several (prof merge), and only one can be read "
                       "here: open the file by prof_trace_open(), or by a command of prof");
  if (header_out->version > PROF_I_MERGED_VERSION)
    return prof_i_fail(PROF_E_VERSION,
                       "the capture has format version %u; this library (%s) knows up to %d: use "
                       "the prof that comes with the program that wrote it",
                       header_out->version, prof_version(), PROF_I_MERGED_VERSION);
  return PROF_OK;
}

int prof_i_header_check(prof_trace *trace) {
  const prof_i_header *const header = &trace->header;
  const int status = prof_i_header_detect(trace->source.bytes, trace->source.count, &trace->header);
  if (status) return status;
  if (header->version == 0 || header->unit_bytes != PROF_I_UNIT_BYTES ||
      header->header_bytes < sizeof *header || header->header_bytes > PROF_I_HEADER_BYTES)
    trace->bad_count++;
  return PROF_OK;
}

uint64_t prof_i_head_bytes(const prof_i_head *head, uint64_t offset) {
  if (head->magic != PROF_I_EXTENT_MAGIC || head->kind < PROF_I_EXTENT_SLOT ||
      head->kind > PROF_I_EXTENT_META || head->bytes % PROF_I_UNIT_BYTES != 0)
    return 0;
  return prof_i_head_bytes_of(offset, head->bytes, head->kind, head->check);
}

bool prof_i_extent_next(const prof_i_source *source, uint64_t *offset, prof_i_extent *extent_out,
                        uint64_t *bad_count) {
  bool was_bad = false; /* neighbouring damaged units count once */
  uint64_t at = *offset < PROF_I_FIRST_UNIT_OFFSET ? PROF_I_FIRST_UNIT_OFFSET : *offset;
  for (; at < source->count && source->count - at >= PROF_I_HEAD_BYTES; at += PROF_I_UNIT_BYTES) {
    const prof_i_head *const head = source_head(source, at);
    const uint64_t bytes = prof_i_head_bytes(head, at);
    if (!bytes) {
      /* No magic: taken and not initialised yet, or freed. */
      if (head->magic != 0 && !was_bad) ++*bad_count;
      was_bad = head->magic != 0;
      continue;
    }
    const uint64_t there = PROF_I_FAULT(NO_END) ? bytes : source->count - at;
    if (bytes > there) ++*bad_count; /* cut off; the part that exists is readable */
    *extent_out = (prof_i_extent){head, at, bytes < there ? bytes : there};
    *offset = at + (bytes < there ? bytes : there);
    return true;
  }
  *offset = at;
  return false;
}

uint64_t prof_i_extent_claimed(const prof_i_extent *extent) {
  const prof_i_head *const head = extent->head;
  if (head->generation == 0 || head->generation > PROF_I_GENERATION_MASK ||
      head->cursor < PROF_I_HEAD_BYTES)
    return 0;
  const uint64_t end = head->cursor < extent->bytes ? head->cursor : extent->bytes;
  return (end - PROF_I_HEAD_BYTES) / 16;
}
