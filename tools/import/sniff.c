/* See internal.h. */
#define _GNU_SOURCE
#include "internal.h"

#include <stdbool.h>
#include <string.h>

const char import_kinds[] =
    "prof import takes JSON traces (torch.profiler, Chrome, Perfetto; also .json.gz), "
    "trace.rpd of rocmProfileData, *_results.db of rocprofv3, and databases of prof dump";

typedef struct file_kind {
  const char *magic;
  size_t bytes;
  const char *what;
} file_kind;

#define KIND(magic, what) \
  { magic, sizeof(magic) - 1, what }

static const file_kind file_kinds[] = {
    KIND("\x7f"
         "ELF",
         "a program or a library"),
    KIND("PK\x03\x04", "a zip archive; unpack it first"),
    KIND("PERFILE2", "data of perf, which `perf script` prints"),
    KIND("\xfd"
         "7zXZ",
         "compressed by xz; unpack it first"),
    KIND("BZh", "compressed by bzip2; unpack it first"),
    KIND("\x28\xb5\x2f\xfd", "compressed by zstd; unpack it first"),
    KIND("<", "XML or HTML"),
    KIND("/*", "text that begins with a comment, which JSON does not have; remove the comment"),
    KIND("//", "text that begins with a comment, which JSON does not have; remove the comment"),
};

static bool bytes_begin_with(const char *bytes, size_t count, const char *text) {
  const size_t of = strlen(text);
  return count >= of && memcmp(bytes, text, of) == 0;
}

/* JSON may be any value: an object, an array, a text, a number, true, false or null. */
static bool may_be_json(const char *bytes, size_t count) {
  static const char mark[] = "\xef\xbb\xbf";
  if (bytes_begin_with(bytes, count, mark)) bytes += sizeof mark - 1, count -= sizeof mark - 1;
  while (count > 0 && memchr(" \t\r\n", *bytes, 4)) bytes++, count--;
  if (count == 0 || memchr("{[\"-0123456789", *bytes, 14)) return true;
  return bytes_begin_with(bytes, count, "true") || bytes_begin_with(bytes, count, "false") ||
         bytes_begin_with(bytes, count, "null");
}

static bool bytes_are_text(const char *bytes, size_t count) {
  for (size_t i = 0; i < count; i++)
    if ((unsigned char)bytes[i] < 0x20 && !memchr("\t\r\n\f\x1b", bytes[i], 5)) return false;
  return true;
}

static bool bytes_are_table(const char *bytes, size_t count) {
  const char *const end = memchr(bytes, '\n', count);
  const size_t line = end ? (size_t)(end - bytes) : count;
  return memchr(bytes, ',', line) != NULL;
}

const char *import_sniff(const char *bytes, size_t count) {
  enum { SNIFFED_BYTES = 512 };
  if (count > SNIFFED_BYTES) count = SNIFFED_BYTES;
  if (may_be_json(bytes, count)) return NULL;
  for (size_t i = 0; i < sizeof file_kinds / sizeof *file_kinds; i++)
    if (count >= file_kinds[i].bytes &&
        memcmp(bytes, file_kinds[i].magic, file_kinds[i].bytes) == 0)
      return file_kinds[i].what;
  if (bytes_are_text(bytes, count))
    return bytes_are_table(bytes, count) ? "a table (CSV)" : "plain text";
  /* field 1 of a message Trace: packets */
  if (bytes[0] == '\n') return "a trace of Perfetto's own format (.pftrace), which is not read";
  return "binary data of an unknown kind";
}
