/* One element of traceEvents as it is in the file, and the numbers in its texts. Texts and numbers
   are in one buffer, which the next event reuses. */
#ifndef PROF_IMPORT_EVENT_H
#define PROF_IMPORT_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef enum import_type {
  IMPORT_NONE,
  IMPORT_NULL,
  IMPORT_BOOL,
  IMPORT_NUMBER, /* its digits */
  IMPORT_TEXT,
  IMPORT_JSON /* an array or an object, as text without blanks */
} import_type;

typedef struct import_value {
  import_type type;
  bool is_true;
  uint32_t at, bytes; /* in the event's buffer */
} import_value;

#define IMPORT_MEMBER_LIST(X) \
  X(PH, "ph")                 \
  X(CAT, "cat")               \
  X(NAME, "name")             \
  X(PID, "pid")               \
  X(TID, "tid")               \
  X(TS, "ts")                 \
  X(DUR, "dur")               \
  X(ID, "id")                 \
  X(ID2, "id2")               \
  X(SCOPE, "scope")           \
  X(BP, "bp")                 \
  X(SF, "sf")                 \
  X(STACK, "stack")           \
  X(BIND_ID, "bind_id")       \
  X(FLOW_IN, "flow_in")       \
  X(FLOW_OUT, "flow_out")     \
  X(S, "s")

typedef enum import_member {
#define IMPORT_ENUM(name, key) IMPORT_##name,
  IMPORT_MEMBER_LIST(IMPORT_ENUM)
#undef IMPORT_ENUM
      IMPORT_MEMBER_COUNT
} import_member;

typedef struct import_arg {
  uint32_t key_at, key_bytes;
  import_value value;
} import_arg;

enum {
  IMPORT_ARGS_MAX = 64,
  IMPORT_JSON_BYTES_MAX = 1 << 20,
  IMPORT_UNKNOWN_BYTES = 32,
  IMPORT_LINES_MAX = 1 << 24, /* further ones have the last number */
  /* all that a sane one has, args of 1 MiB each, is a quarter of it; places in its buffer have 32
     bits */
  IMPORT_EVENT_BYTES_MAX = 256 << 20
};

typedef struct import_event {
  import_value members[IMPORT_MEMBER_COUNT];
  import_arg args[IMPORT_ARGS_MAX];
  uint32_t arg_count;
  uint32_t line; /* which of several objects with events, one behind another, has it */
  bool is_cut;   /* an argument did not fit */
  bool has_null; /* an argument is null */
  bool is_odd;   /* a member has a value of a type that it cannot have */
  char unknown[IMPORT_UNKNOWN_BYTES]; /* the first member that no one knows; empty: none */
  char *text;
  size_t count, room;
} import_event;

typedef struct import_text {
  const char *data;
  size_t bytes;
} import_text;

static inline import_text import_text_of(const import_event *event, const import_value *value) {
  return (import_text){event->text + value->at, value->bytes};
}

/* The text or the digits of a member; empty: it has neither. */
static inline import_text import_member_text(const import_event *event, import_member member) {
  const import_value *const value = &event->members[member];
  const bool is_told = value->type == IMPORT_TEXT || value->type == IMPORT_NUMBER;
  return is_told ? import_text_of(event, value) : (import_text){"", 0};
}

/* Its argument of that key, or NULL. */
const import_value *import_event_arg(const import_event *event, const char *key);

/* Inline, and by the first character first: each event is compared with some fifty words. */
static inline bool import_text_is(import_text text, const char *word) {
  if (text.bytes == 0) return word[0] == '\0';
  if (text.data[0] != word[0]) return false;
  return strlen(word) == text.bytes && memcmp(word, text.data, text.bytes) == 0;
}

static inline bool import_text_begins(import_text text, const char *word) {
  return text.bytes >= strlen(word) && memcmp(text.data, word, strlen(word)) == 0;
}

/* ---- numbers ---- */

/* Numbers are read from their digits, as integers: a double of microseconds since 1970 has a grid
   of 250 ns. */

/* False: the text is no such number, or one that does not fit. */
bool import_number_i64(import_text text, int64_t *out);
bool import_number_u64(import_text text, uint64_t *out);
bool import_number_double(import_text text, double *out);

/* An integer, or a float that is one: 7, 7.0, 7e0. */
bool import_number_whole(import_text text, int64_t *out);

/* Microseconds with a fraction as ns; digits behind the third are rounded. */
bool import_number_us(import_text text, int64_t *ns_out);

/* False: there is no such argument, or it is not an integer. A text of digits and 7.0 are
   integers. */
bool import_read_arg(const import_event *event, const char *key, int64_t *out);

/* By which prof's exports mark a scope that had not ended. A user's argument of that name gets
   another one there. */
#define IMPORT_OPEN_KEY "unfinished"
bool import_event_is_open(const import_event *event);

#endif
