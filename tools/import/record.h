/* Records under construction: words as src/format/layout.h has them, but for word 0, which is made
   when they are written. With them the call sites, schemas and values that they refer to. */
#ifndef PROF_IMPORT_RECORD_H
#define PROF_IMPORT_RECORD_H

#include <prof/args.h>
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

/* ---- names.c ---- */

/* Names become call sites, and keys of arguments become schemas. Each is in the capture once,
   however often it comes. */

enum { IMPORT_SITE_MANY = 0 }; /* there are too many names: the record has to bring its own */
enum { IMPORT_CATEGORY_BYTES_MAX = 256 };

/* A place in the source. No file: it is not known. */
typedef struct import_source_location {
  import_text file, function;
  uint32_t line;
  bool is_frame; /* of a function of C: file is its text in a stack */
} import_source_location;

typedef struct import_site {
  import_text name, category;
  uint32_t level; /* 0: known when all has come */
  import_source_location place;
} import_site;

typedef struct import_schema {
  uint32_t kind, count; /* prof_args_kind */
  uint32_t types[PROF_ARGS_MAX];
  import_text keys[PROF_ARGS_MAX]; /* empty: none */
} import_schema;

typedef struct import_names import_names;

import_names *import_names_create(void);
void import_names_destroy(import_names *names);

/* The number, or IMPORT_SITE_MANY. */
uint32_t import_names_site(import_names *names, const import_site *site);

/* The number. 0: there are too many schemas, and the values must be left out. */
uint32_t import_names_schema(import_names *names, const import_schema *schema);

/* Each site's and schema's record, in the order of their numbers. late_level: of the sites of level
   0. */
void import_names_each(const import_names *names, uint32_t late_level,
                       void (*take)(void *user, import_record *record), void *user);

/* ---- args.c ---- */

/* An event's arguments as a record's values and their schema. */

typedef struct import_record_args {
  import_schema schema;
  uint64_t words[IMPORT_VALUE_WORDS_MAX];
  uint32_t count;  /* words */
  bool is_async;   /* work that goes on by itself */
  bool is_skipped; /* a jump left it */
  bool is_cut;
  uint32_t flags; /* of the record, as prof told them beside the arguments: PROF_I_FLAG_... */
} import_record_args;

/* of what ran on a device the first values are its launch, its times and its kind
   (docs/reference/file-format.md) */
enum { IMPORT_HIDDEN_VALUES = 5 };

/* Of the host's. may_be_marked: prof says "asynchronous" and "skipped" of it, as of a scope; else
   they are arguments. Numbers that only tie the file's rows to each other (External id,
   correlation, Ev Idx, Record function id) are left out: links are made of them, and exports number
   anew. Arguments that the site's place was made of are left out, too. place NULL: it has none.
   is_open: the same of "unfinished". */
void import_args_of_host(import_record_args *values, const import_event *event,
                         const import_source_location *place, bool may_be_marked, bool is_open);

/* Of a device's; hidden: the first values. */
void import_args_of_device(import_record_args *values, const import_event *event,
                           const uint64_t hidden[IMPORT_HIDDEN_VALUES]);

/* Adds a text that is no argument of the event. */
void import_args_text(import_record_args *values, const char *key, import_text text);
void import_args_begin(import_record_args *values);

/* Where a traced function is defined. src/export/chrome_args.c writes it among the arguments of
   the function's calls. Here it becomes the site's again, so that frames of stacks read as they
   did. False: the event does not say it, and place_out is empty. */
bool import_source_location_of(const import_event *event, import_text category, import_text name,
                               import_source_location *place_out);

#endif
