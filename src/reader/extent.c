/* Checks the header and the extents of a capture. Code after these checks does not read outside the
   bytes. */
#include <prof/profiler.h>
#include <string.h>

#include "../base/fault.h"
#include "../base/log.h"
#include "capture.h"

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
  if (header_out->version > PROF_I_FORMAT_VERSION)
    return prof_i_fail(PROF_E_VERSION,
                       "the capture has format version %u; this library (%s) knows up to %d: use "
                       "the prof that comes with the program that wrote it",
                       header_out->version, prof_version(), PROF_I_FORMAT_VERSION);
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
    const prof_i_head *const head = prof_i_source_head(source, at);
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
