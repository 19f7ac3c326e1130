/* The file of a trace: its bytes, and its kind. zlib is opened when there is something to unpack,
   as the library does to pack. See json.h. */
#define _GNU_SOURCE
#include "json.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/format/layout.h"
#include "../../src/reader/internal.h"

#ifdef PROF_HAVE_ZLIB
#define ZLIB_CONST
#include <zlib.h>
#endif

enum { PACKED_BYTES = 256 << 10 };

static const char database_magic[16] = "SQLite format 3"; /* with its 0 */

struct import_input {
  int fd;
  const char *path;
  uint64_t bytes, read_bytes, trailing_bytes;
  bool is_packed, is_capture, is_database, is_over, is_cut;
  size_t at, count; /* in packed */
  unsigned char packed[PACKED_BYTES];
#ifdef PROF_HAVE_ZLIB
  void *handle;
  __typeof__(&inflateInit2_) init;
  __typeof__(&inflateReset) reset;
  __typeof__(&inflate) run;
  __typeof__(&inflateEnd) end;
  z_stream stream;
#endif
};

static size_t read_file_bytes(import_input *input, void *to, size_t room) {
  for (;;) {
    const ssize_t count = read(input->fd, to, room);
    if (count >= 0) {
      input->read_bytes += (uint64_t)count;
      prof_i_progress_add((uint64_t)count * PROF_I_PROGRESS_IMPORT_WEIGHT);
      return (size_t)count;
    }
    if (errno != EINTR) import_fail("cannot read '%s': %s", input->path, strerror(errno));
  }
}

/* ---- gzip ---- */

#ifdef PROF_HAVE_ZLIB

static void open_zlib(import_input *input) {
  static const char name[] = "libz.so.1";
  input->handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!input->handle)
    import_fail(
        "'%s' is compressed, and zlib cannot be opened: %s. Type: apt-get install zlib1g, or "
        "gunzip it first",
        input->path, dlerror());
  *(void **)&input->init = dlsym(input->handle, "inflateInit2_");
  *(void **)&input->reset = dlsym(input->handle, "inflateReset");
  *(void **)&input->run = dlsym(input->handle, "inflate");
  *(void **)&input->end = dlsym(input->handle, "inflateEnd");
  if (!input->init || !input->reset || !input->run || !input->end)
    import_fail("%s has no inflate, so '%s' cannot be unpacked", name, input->path);
  if (input->init(&input->stream, 15 + 16, ZLIB_VERSION, (int)sizeof input->stream) != Z_OK)
    import_fail("zlib does not begin to unpack '%s'", input->path);
}

static void close_zlib(import_input *input) {
  input->end(&input->stream);
  dlclose(input->handle);
}

static bool input_refill(import_input *input) {
  if (input->at == input->count) {
    input->count = read_file_bytes(input, input->packed, sizeof input->packed);
    input->at = 0;
  }
  return input->count > 0;
}

/* As gzip has it, zeros may pad the file. */
static void count_trailing_bytes(import_input *input) {
  uint64_t count = 0;
  bool has_any = false;
  while (input_refill(input)) {
    count++;
    has_any |= input->packed[input->at++] != 0;
  }
  input->trailing_bytes = has_any ? count : 0;
}

/* Between members: another one, or, as gzip itself has it, zeros and whatever else is no member are
   left. */
static bool begins_gzip_member(import_input *input) {
  if (input_refill(input) && input->packed[input->at] == 0x1f) return true;
  count_trailing_bytes(input);
  return false;
}

static size_t input_unpack(import_input *input, char *to, size_t room) {
  z_stream *const stream = &input->stream;
  stream->next_out = (unsigned char *)to;
  stream->avail_out = (uInt)room;
  while (stream->avail_out > 0 && !input->is_over) {
    if (!input_refill(input)) {
      input->is_over = input->is_cut = true;
      break;
    }
    stream->next_in = input->packed + input->at;
    stream->avail_in = (uInt)(input->count - input->at);
    const int result = input->run(stream, Z_NO_FLUSH);
    input->at = input->count - stream->avail_in;
    if (result == Z_STREAM_END)
      input->is_over = !begins_gzip_member(input) || input->reset(stream) != Z_OK;
    else if (result != Z_OK && result != Z_BUF_ERROR)
      input->is_over = input->is_cut = true;
  }
  return room - stream->avail_out;
}

#else

static void open_zlib(import_input *input) {
  import_fail("'%s' is compressed, and this build of prof has no zlib; gunzip it first",
              input->path);
}
static void close_zlib(import_input *input) { (void)input; }
static size_t input_unpack(import_input *input, char *to, size_t room) {
  (void)input, (void)to, (void)room;
  return 0;
}

#endif

/* ---- what a file is that is no trace ---- */

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

/* ---- the input ---- */

bool import_input_begins_database(const char *bytes, size_t count) {
  return count >= sizeof database_magic &&
         memcmp(bytes, database_magic, sizeof database_magic) == 0;
}

import_input *import_input_open(const char *path) {
  const uint64_t magic = PROF_I_MAGIC;
  import_input *const input = import_make(sizeof *input);
  struct stat about;
  input->path = path;
  input->fd = open(path, O_RDONLY | O_CLOEXEC);
  if (input->fd < 0 || fstat(input->fd, &about) != 0)
    import_fail("cannot open '%s': %s", path, strerror(errno));
  if (S_ISDIR(about.st_mode))
    import_fail("cannot read '%s': it is a directory; name one trace in it", path);
  input->bytes = S_ISREG(about.st_mode) ? (uint64_t)about.st_size : 0;
  while (input->count < sizeof database_magic) {
    const size_t count =
        read_file_bytes(input, input->packed + input->count, sizeof input->packed - input->count);
    if (count == 0) break;
    input->count += count;
  }
  input->is_database = import_input_begins_database((const char *)input->packed, input->count);
  input->is_capture =
      input->count >= sizeof magic && memcmp(input->packed, &magic, sizeof magic) == 0;
  input->is_packed = input->count >= 2 && input->packed[0] == 0x1f && input->packed[1] == 0x8b;
  if (input->is_packed) open_zlib(input);
  return input;
}

void import_input_close(import_input *input) {
  if (input->is_packed) close_zlib(input);
  close(input->fd);
  free(input);
}

size_t import_input_read(import_input *input, char *to, size_t room) {
  if (input->is_packed) return input_unpack(input, to, room);
  const size_t left = input->count - input->at, first = left < room ? left : room;
  if (first == 0) return read_file_bytes(input, to, room);
  memcpy(to, input->packed + input->at, first);
  input->at += first;
  return first;
}

bool import_input_is_capture(const import_input *input) { return input->is_capture; }
bool import_input_is_database(const import_input *input) { return input->is_database; }
uint64_t import_input_trailing_bytes(const import_input *input) { return input->trailing_bytes; }
bool import_input_is_cut(const import_input *input) { return input->is_cut; }
bool import_input_is_packed(const import_input *input) { return input->is_packed; }

unsigned import_input_share(const import_input *input) {
  return input->bytes ? (unsigned)(input->read_bytes * 1000 / input->bytes) : 0;
}
