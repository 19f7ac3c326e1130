/* Records under construction: words as src/format/layout.h has them, but for word 0, which is made
   when they are written. */
#ifndef PROF_IMPORT_RECORD_H
#define PROF_IMPORT_RECORD_H

#include <string.h>

#include "../../src/format/layout.h"
#include "event.h"

enum {
  IMPORT_RECORD_WORDS = 4096,
  IMPORT_TEXT_BYTES_MAX = 4096,
  IMPORT_VALUE_WORDS_MAX = (PROF_I_PAYLOAD_BYTES_MAX - 2 * IMPORT_TEXT_BYTES_MAX) / 8
};

typedef struct import_record {
  uint64_t words[IMPORT_RECORD_WORDS];
  uint32_t count; /* words, of which the first three are for the head */
} import_record;

static inline void import_record_begin(import_record *record) { record->count = 3; }
static inline void import_record_word(import_record *record, uint64_t word) {
  record->words[record->count++] = word;
}

/* Words that a text takes. */
static inline uint32_t import_text_words(size_t bytes) { return 1 + (uint32_t)((bytes + 7) / 8); }

static inline uint32_t import_put_text(uint64_t *to, import_text text) {
  const uint32_t words = import_text_words(text.bytes);
  to[0] = text.bytes;
  if (words > 1) to[words - 1] = 0;
  if (text.bytes) memcpy(to + 1, text.data, text.bytes);
  return words;
}
static inline void import_record_text(import_record *record, import_text text) {
  record->count += import_put_text(record->words + record->count, text);
}

/* Words 1 and 2; the record is whole then. */
static inline void import_record_end(import_record *record, prof_i_kind kind, uint32_t flags,
                                     uint32_t schema, uint32_t site, uint64_t duration) {
  record->words[1] = duration << PROF_I_DURATION_SHIFT | (uint64_t)site << 4 | 1;
  record->words[2] = (record->count + 1) / 2 | (uint64_t)kind << 16 | (uint64_t)flags << 24 |
                     (uint64_t)schema << 32;
  if (record->count % 2) record->words[record->count] = 0;
}

/* Of a plain scope, which has no such word: 0. */
static inline uint32_t import_record_kind(const uint64_t *words) {
  return (words[1] & 15) == 1 ? words[2] >> 16 & 0xff : 0;
}
static inline uint32_t import_record_flags(const uint64_t *words) { return words[2] >> 24 & 0xff; }

/* As src/format/parse.h has it: is it no thread's own time? */
static inline bool import_record_is_async(const uint64_t *words) {
  const uint32_t kind = import_record_kind(words);
  return kind == PROF_I_KIND_ASYNC ||
         (kind && import_record_flags(words) & PROF_I_FLAG_OTHER_THREAD);
}

/* Of a scope on a stream: its launch, five values as docs/reference/file-format.md has them. words:
   from word 1 on. */
static inline uint64_t *import_record_launch(uint64_t *words) {
  const uint32_t flags = words[1] >> 24 & 0xff;
  uint64_t *at = words + 4;
  if (flags & PROF_I_FLAG_LONG) at++;
  if (flags & PROF_I_FLAG_NAME) at += import_text_words(*at);
  return at;
}

/* No longer than a text may be, and no character cut in two. */
static inline import_text import_text_cut(import_text text, size_t most) {
  if (text.bytes <= most) return text;
  size_t bytes = most;
  for (size_t i = 0; i < 3 && bytes > 0 && ((unsigned char)text.data[bytes] & 0xc0) == 0x80; i++)
    bytes--;
  return (import_text){text.data, bytes};
}

#endif
