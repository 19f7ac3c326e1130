/* From the bytes of a trace to its events: the file is unpacked (input.c), invalid JSON is mended
   (json_cleaner.c), and a parser finds the events (json.c). */
#ifndef PROF_IMPORT_JSON_H
#define PROF_IMPORT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "event.h"
#include "import.h"

/* ---- input.c ---- */

/* The bytes of the trace. Those of gzip are unpacked, of one member or several. */

typedef struct import_input import_input;

/* Ends the process if it cannot be opened. */
import_input *import_input_open(const char *path);
void import_input_close(import_input *input);

/* 0: the end. is_cut: it ended inside of a gzip member. */
size_t import_input_read(import_input *input, char *to, size_t room);
/* Bytes after the compressed data. 0 if they are all zeros. */
uint64_t import_input_trailing_bytes(const import_input *input);
bool import_input_is_cut(const import_input *input);
bool import_input_is_capture(const import_input *input);  /* of prof's, not compressed */
bool import_input_is_database(const import_input *input); /* SQLite's */
/* The same of the first bytes that were unpacked. */
bool import_input_begins_database(const char *bytes, size_t count);
bool import_input_is_packed(const import_input *input);

/* How much of the file has been read, in thousandths. */
unsigned import_input_share(const import_input *input);

/* Names the kind of a file that is not a trace, by its first bytes: "a zip archive; unpack it
   first". NULL: it may be JSON. */
const char *import_sniff(const char *bytes, size_t count);

/* The kinds of files that an import takes, for messages. */
extern const char import_kinds[];

/* ---- json_cleaner.c ---- */

/* Mends invalid JSON that writers of traces produce, before the parser sees it: bare NaN and
   Infinity, raw control bytes in strings. Escaped halves of surrogate pairs are no characters, and
   become U+FFFD. Bounds the memory, too: strings of more than 1 MiB are cut, numbers of more than
   64 digits become null. */

enum {
  IMPORT_WORD_BYTES = 64,
  IMPORT_ESCAPE_BYTES = 6, /* \u0041 */
  IMPORT_STRING_BYTES_MAX = 1 << 20
};

typedef struct import_json_cleaner {
  bool is_in_string, is_dropping;
  size_t string_bytes, word_bytes;
  char word[IMPORT_WORD_BYTES + 1]; /* a bare word or number that has not ended */
  unsigned escape_bytes;
  char escape[IMPORT_ESCAPE_BYTES]; /* of a string, one that has not ended */
  bool has_high;
  char high[IMPORT_ESCAPE_BYTES]; /* the first half of a pair, which waits for the other */
  uint64_t not_number_count, control_count, cut_count, surrogate_count;
} import_json_cleaner;

/* to: room for import_json_clean_room(count). Returns how many bytes it has. */
size_t import_json_clean(import_json_cleaner *cleaner, const char *from, size_t count, char *to);
static inline size_t import_json_clean_room(size_t count) {
  return 2 * count + 2 * IMPORT_WORD_BYTES;
}

/* After the last bytes: writes what was held back. */
size_t import_json_clean_end(import_json_cleaner *cleaner, char *to);

/* Is a text well-formed UTF-8? If it was cut above, it may end inside of a character. */
bool import_utf8_is(import_text text);

/* ---- json.c ---- */

/* The trace's JSON as a stream: elements of traceEvents one after another, and the members beside
   it. Knows the shape, and nothing of what events mean. The parser is yajl, opened when a trace is
   imported. */

typedef struct import_json_handlers {
  void *user;
  void (*on_event)(void *user, const import_event *event);
  /* One of stackFrames, as import_frames_add() takes it. */
  void (*on_frame)(void *user, const import_event *frame);
  void (*on_other)(void *user); /* an element that is no object */
  /* a member beside traceEvents */
  void (*on_metadata)(void *user, import_text key, const import_value *value, import_text text);
} import_json_handlers;

typedef struct import_json import_json;

/* Ends the process if there is no yajl. */
import_json *import_json_create(const import_json_handlers *handlers);
void import_json_destroy(import_json *json);

/* False: it is damaged there, or was before; no more is taken. */
bool import_json_read(import_json *json, const char *bytes, size_t count);

/* Refuses the trace: it is text in another encoding. */
void import_json_refuse(import_json *json, const char *encoding);

/* Call it after the last byte. Fills end, at and error. */
void import_json_end(import_json *json, import_result *result);

/* Bytes that are read for certain. */
uint64_t import_json_at(const import_json *json);

#endif
