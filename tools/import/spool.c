/* Records and events that wait in a file without a name. See spool.h. */
#define _GNU_SOURCE
#include "spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "import.h"
#include "record.h"

enum { WAITING_WORDS = 128 << 10 };

/* Where the file system knows no files without a name, one whose name goes at once. */
static int open_nameless(const char *folder) {
  const int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  char path[4096];
  if (fd >= 0 || snprintf(path, sizeof path, "%s/.prof-import-XXXXXX", folder) >= (int)sizeof path)
    return fd;
  const int named = mkostemp(path, O_CLOEXEC);
  if (named >= 0) unlink(path);
  return named;
}

void import_spool_open(import_spool *spool, const char *folder) {
  *spool = (import_spool){.fd = open_nameless(folder),
                          .waiting = import_make(WAITING_WORDS * sizeof(uint64_t))};
  if (spool->fd < 0) import_fail("cannot write into '%s': %s", folder, strerror(errno));
}

static void spool_flush(import_spool *spool) {
  const char *from = (const char *)spool->waiting;
  size_t left = (size_t)(spool->count - spool->flushed) * sizeof(uint64_t);
  while (left > 0) {
    const ssize_t written = write(spool->fd, from, left);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0)
      import_fail("cannot keep %llu bytes beside the output: %s",
                  (unsigned long long)spool->count * 8,
                  written < 0 ? strerror(errno) : "nothing was written");
    from += written;
    left -= (size_t)written;
  }
  spool->flushed = spool->count;
}

uint64_t import_spool_add(import_spool *spool, const uint64_t *words, uint32_t count,
                          uint32_t bits) {
  const uint64_t place = spool->count << 20 | (uint64_t)count << IMPORT_ENTRY_WORDS_SHIFT | bits;
  for (uint32_t done = 0, part; done < count; done += part) {
    if (spool->count - spool->flushed == WAITING_WORDS) spool_flush(spool);
    const uint64_t room = WAITING_WORDS - (spool->count - spool->flushed);
    part = count - done < room ? count - done : (uint32_t)room;
    memcpy(spool->waiting + (spool->count - spool->flushed), words + done, part * sizeof *words);
    spool->count += part;
  }
  return place;
}

void import_spool_map(import_spool *spool) {
  spool_flush(spool);
  if (spool->count == spool->mapped_count) return;
  if (spool->words) munmap(spool->words, spool->mapped_count * sizeof(uint64_t));
  const size_t bytes = spool->count * sizeof(uint64_t);
  void *const words = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, spool->fd, 0);
  if (words == MAP_FAILED) import_fail("cannot map %zu bytes: %s", bytes, strerror(errno));
  spool->words = words;
  spool->mapped_count = spool->count;
}

void import_spool_close(import_spool *spool) {
  import_spool_map(spool);
  free(spool->waiting);
  spool->waiting = NULL;
}

void import_spool_fini(import_spool *spool) {
  if (spool->words) munmap(spool->words, spool->mapped_count * sizeof(uint64_t));
  close(spool->fd);
  free(spool->waiting);
}

/* ---- events as words ---- */

/* Word 0: count of arguments, is_cut << 8, a bit for each member << 16, the line << 40. Then a word
   for each member that is there, and two for each argument. The texts follow without gaps. */
enum {
  HEAD_WORDS = 1 + IMPORT_MEMBER_COUNT + 2 * IMPORT_ARGS_MAX,
  MEMBER_BYTES_MAX = 2 * IMPORT_TEXT_BYTES_MAX,
  MEMBERS_SHIFT = 16,
  LINE_SHIFT = 40
};

_Static_assert(MEMBERS_SHIFT + IMPORT_MEMBER_COUNT <= LINE_SHIFT, "members have bits below");
_Static_assert((uint64_t)IMPORT_LINES_MAX <= UINT64_C(1) << (64 - LINE_SHIFT), "a line has room");

typedef struct event_writer {
  uint64_t words[HEAD_WORDS];
  uint32_t count;
  struct {
    const char *data;
    size_t bytes;
  } texts[IMPORT_MEMBER_COUNT + 2 * IMPORT_ARGS_MAX];
  uint32_t text_count;
} event_writer;

static uint64_t value_word(const import_value *value, size_t bytes) {
  return (uint64_t)value->type | (uint64_t)value->is_true << 8 | (uint64_t)bytes << 32;
}

static void add_text(event_writer *r, const import_event *event, uint32_t at, size_t bytes) {
  if (bytes == 0) return;
  r->texts[r->text_count].data = event->text + at;
  r->texts[r->text_count++].bytes = bytes;
}

/* False: it is longer than there is room for in a record. */
static bool add_value(event_writer *r, const import_event *event, const import_value *value,
                      size_t most) {
  const import_text kept = import_text_cut(import_text_of(event, value), most);
  r->words[r->count++] = value_word(value, kept.bytes);
  add_text(r, event, value->at, kept.bytes);
  return kept.bytes == value->bytes;
}

static void put_event_texts(import_spool *spool, const event_writer *r) {
  enum { PART_WORDS = 64 };
  uint64_t part[PART_WORDS];
  size_t used = 0;
  for (uint32_t i = 0; i < r->text_count; i++) {
    for (size_t done = 0, bytes; done < r->texts[i].bytes; done += bytes) {
      const size_t left = r->texts[i].bytes - done, room = sizeof part - used;
      bytes = left < room ? left : room;
      memcpy((char *)part + used, r->texts[i].data + done, bytes);
      used += bytes;
      if (used < sizeof part) continue;
      import_spool_add(spool, part, PART_WORDS, 0);
      used = 0;
    }
  }
  memset((char *)part + used, 0, sizeof part - used);
  import_spool_add(spool, part, (uint32_t)((used + 7) / 8), 0);
}

void import_spooled_event_put(import_spool *spool, const import_event *event) {
  const size_t arg_bytes_max = IMPORT_VALUE_WORDS_MAX * sizeof(uint64_t);
  uint64_t members = 0;
  bool is_cut = event->is_cut;
  event_writer r;
  r.count = 1;
  r.text_count = 0;
  for (int i = 0; i < IMPORT_MEMBER_COUNT; i++) {
    if (event->members[i].type == IMPORT_NONE) continue;
    members |= UINT64_C(1) << i;
    add_value(&r, event, &event->members[i], MEMBER_BYTES_MAX);
  }
  for (uint32_t i = 0; i < event->arg_count; i++) {
    const import_arg *const arg = &event->args[i];
    r.words[r.count++] = arg->key_bytes;
    add_text(&r, event, arg->key_at, arg->key_bytes);
    is_cut |= !add_value(&r, event, &arg->value, arg_bytes_max);
  }
  r.words[0] = event->arg_count | (uint64_t)is_cut << 8 | members << MEMBERS_SHIFT |
               (uint64_t)event->line << LINE_SHIFT;
  import_spool_add(spool, r.words, r.count, 0);
  put_event_texts(spool, &r);
}

static import_value value_of_word(uint64_t word, uint32_t *at) {
  const uint32_t bytes = (uint32_t)(word >> 32);
  const import_value value = {(import_type)(word & 0xff), (word >> 8 & 1) != 0, *at, bytes};
  *at += bytes;
  return value;
}

/* Returns behind the last member's text. */
static uint32_t read_members(uint64_t *words, import_event *event, uint32_t *word_out) {
  uint32_t at = 0, next = 1;
  const uint64_t line_bits = words[0] >> LINE_SHIFT << LINE_SHIFT;
  uint64_t members = (words[0] ^ line_bits) >> MEMBERS_SHIFT;
  const uint32_t count = (uint32_t)__builtin_popcountll(members);
  event->arg_count = 0;
  event->line = (uint32_t)(line_bits >> LINE_SHIFT);
  event->text = (char *)(words + 1 + count + 2 * (words[0] & 0xff));
  event->is_cut = (words[0] >> 8 & 1) != 0;
  for (int i = 0; i < IMPORT_MEMBER_COUNT; i++, members >>= 1)
    event->members[i] =
        members & 1 ? value_of_word(words[next++], &at) : (import_value){.type = IMPORT_NONE};
  *word_out = next;
  return at;
}

void import_spooled_event_members(uint64_t *words, import_event *event_out) {
  uint32_t next;
  read_members(words, event_out, &next);
}

void import_spooled_event_read(uint64_t *words, import_event *event_out) {
  uint32_t next, at = read_members(words, event_out, &next);
  event_out->arg_count = (uint32_t)(words[0] & 0xff);
  for (uint32_t i = 0; i < event_out->arg_count; i++) {
    import_arg *const arg = &event_out->args[i];
    arg->key_at = at;
    arg->key_bytes = (uint32_t)words[next++];
    at += arg->key_bytes;
    arg->value = value_of_word(words[next++], &at);
  }
}
