/* The parser of a trace's JSON. See json.h. */
#include "json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef PROF_HAVE_YAJL

#include "internal.h"
#include "yajl.h"

/* Where the parser stands. */
typedef enum json_mode {
  MODE_START,
  MODE_TOP,      /* in the outermost object */
  MODE_METADATA, /* in the value of one of its members */
  MODE_EVENTS,
  MODE_EVENT,
  MODE_ARGS,
  MODE_VALUE,   /* in an argument that is an array or an object */
  MODE_SAMPLES, /* in samples, which only counts */
  MODE_FRAMES,  /* in stackFrames */
  MODE_FRAME,
  MODE_SKIP,
  MODE_OVER
} json_mode;

enum { KEY_BYTES_MAX = 256, METADATA_BYTES_MAX = 12 << 10, NO_MEMBER = -1 };

struct import_json {
  import_yajl yajl;
  yajl_handle parser;
  import_json_handlers handlers;
  import_event event;
  json_mode json_mode, behind; /* behind: what is gone back to */
  int depth;                   /* of arrays and objects inside of METADATA, VALUE, SKIP */
  int member;                  /* whose value comes */
  bool is_args, is_events, is_bare, has_events;
  char key[KEY_BYTES_MAX]; /* of a member of the outermost object */
  size_t key_bytes;
  size_t value_at; /* in the event's text: where the JSON begins that is put together */
  size_t json_max;
  bool is_cut; /* it became too long */
  uint64_t at; /* of the bytes before this piece */
  char error[sizeof((import_result *)NULL)->error];
  bool is_damaged;
  uint64_t metadata_cut_count, not_utf8_count, sample_count;
};

/* ---- texts ---- */

static uint32_t event_put_bytes(import_event *event, const char *bytes, size_t count) {
  event->text = import_make_room(event->text, &event->room, event->count + count + 1, 1);
  memcpy(event->text + event->count, bytes, count);
  const size_t at = event->count;
  event->count += count;
  return (uint32_t)at;
}

/* The capture has the text as it is. */
static void note_text(import_json *j, const char *bytes, size_t count) {
  j->not_utf8_count += !import_utf8_is((import_text){bytes, count});
}

static void event_reset(import_event *event) {
  memset(event->members, 0, sizeof event->members);
  event->arg_count = 0;
  event->count = 0;
  event->is_cut = event->is_odd = event->has_null = false;
  event->unknown[0] = '\0';
}

/* False, which ends the parser: it may not grow any more. */
static bool text_has_room(import_json *j) {
  if (j->event.count <= IMPORT_EVENT_BYTES_MAX) return true;
  snprintf(j->error, sizeof j->error,
           "one event has more than %d MiB of texts; an event has at most %d arguments of 1 MiB",
           IMPORT_EVENT_BYTES_MAX >> 20, IMPORT_ARGS_MAX);
  return false;
}

/* ---- JSON put together again ---- */

static void put_json(import_json *j, const char *bytes, size_t count) {
  if (j->event.count - j->value_at + count > j->json_max) j->is_cut = true;
  if (!j->is_cut) event_put_bytes(&j->event, bytes, count);
}

/* A comma, but behind what opens or a key. */
static void put_separator(import_json *j) {
  if (j->event.count == j->value_at) return;
  const char last = j->event.text[j->event.count - 1];
  if (last != '[' && last != '{' && last != ':') put_json(j, ",", 1);
}

static void put_quoted_text(import_json *j, const char *bytes, size_t count) {
  put_json(j, "\"", 1);
  for (size_t i = 0; i < count && !j->is_cut; i++) {
    char escaped[8] = {bytes[i]};
    size_t escaped_bytes = 1;
    if ((unsigned char)bytes[i] < 0x20)
      escaped_bytes = (size_t)snprintf(escaped, sizeof escaped, "\\u%04x", (unsigned)bytes[i]);
    else if (bytes[i] == '"' || bytes[i] == '\\')
      escaped[0] = '\\', escaped[1] = bytes[i], escaped_bytes = 2;
    put_json(j, escaped, escaped_bytes);
  }
  put_json(j, "\"", 1);
}

static bool is_copying_json(const import_json *j) {
  return j->depth > 0 && (j->json_mode == MODE_METADATA || j->json_mode == MODE_VALUE);
}

static void begin_json(import_json *j, json_mode inside, size_t most) {
  j->behind = j->json_mode;
  j->json_mode = inside;
  j->depth = 0;
  j->is_cut = false;
  j->value_at = j->event.count;
  j->json_max = most;
}

/* ---- one value ---- */

static void on_metadata(import_json *j, const import_value *value) {
  const import_text key = {j->key, j->key_bytes};
  j->handlers.on_metadata(j->handlers.user, key, value, import_text_of(&j->event, value));
  event_reset(&j->event);
}

/* Puts a complete value into the object or array that is open. */
static void place_value(import_json *j, import_value value) {
  import_event *const event = &j->event;
  switch (j->json_mode) {
    case MODE_TOP:
      on_metadata(j, &value);
      return;
    case MODE_EVENTS:
      j->handlers.on_other(j->handlers.user);
      return;
    case MODE_EVENT:
      if (j->member != NO_MEMBER)
        event->members[j->member] = value;
      else if (j->is_args)
        event->is_odd |= value.type != IMPORT_NULL;
      return;
    case MODE_ARGS:
      event->has_null |= value.type == IMPORT_NULL;
      if (event->arg_count < IMPORT_ARGS_MAX)
        event->args[event->arg_count++].value = value;
      else
        event->is_cut = true;
      return;
    case MODE_START:
      j->json_mode = MODE_OVER;
      return; /* a number alone is JSON, and no trace */
    case MODE_FRAME:
      if (j->member != NO_MEMBER) event->members[j->member] = value;
      return;
    case MODE_SAMPLES:
      j->sample_count++;
      return;
    case MODE_FRAMES:
    case MODE_METADATA:
    case MODE_VALUE:
    case MODE_SKIP:
    case MODE_OVER:
      return;
  }
}

/* A bare array has an end, and a value that is no object is no line of a trace. */
static void refuse_grown_event(import_json *j) {
  snprintf(j->error, sizeof j->error, "something follows that is no object with events");
  j->is_damaged = true;
}

/* True for unknown members, arguments beyond the last, and samples. Their text would only take
   memory. */
static bool value_is_unwanted(const import_json *j) {
  const bool has_members = j->json_mode == MODE_EVENT || j->json_mode == MODE_FRAME;
  const bool is_full = j->json_mode == MODE_ARGS && j->event.arg_count == IMPORT_ARGS_MAX;
  return (has_members && j->member == NO_MEMBER) || is_full || j->json_mode == MODE_SAMPLES;
}

static int on_scalar(import_json *j, import_type type, const char *bytes, size_t count,
                     bool is_true) {
  if (j->json_mode == MODE_SKIP) return 1;
  if (j->json_mode == MODE_OVER) {
    refuse_grown_event(j);
    return 0;
  }
  if (!text_has_room(j)) return 0;
  if (value_is_unwanted(j)) count = 0;
  if (type == IMPORT_TEXT) note_text(j, bytes, count);
  if (is_copying_json(j)) {
    put_separator(j);
    if (type == IMPORT_TEXT)
      put_quoted_text(j, bytes, count);
    else
      put_json(j, bytes, count);
    return 1;
  }
  place_value(j, (import_value){.type = type,
                                .is_true = is_true,
                                .at = event_put_bytes(&j->event, bytes, count),
                                .bytes = (uint32_t)count});
  return 1;
}

static int on_json_null(void *j) { return on_scalar(j, IMPORT_NULL, "null", 4, false); }
static int on_json_bool(void *j, int value) {
  return on_scalar(j, IMPORT_BOOL, value ? "true" : "false", value ? 4 : 5, value != 0);
}
static int on_json_number(void *j, const char *digits, size_t count) {
  return on_scalar(j, IMPORT_NUMBER, digits, count, false);
}
static int on_string(void *j, const unsigned char *bytes, size_t count) {
  return on_scalar(j, IMPORT_TEXT, (const char *)bytes, count, false);
}

/* ---- what opens and closes ---- */

static void skip_value(import_json *j) {
  j->behind = j->json_mode;
  j->json_mode = MODE_SKIP;
  j->depth = 0;
}

/* A member of the outermost object. */
static void open_in_top(import_json *j, bool is_object) {
  const import_text key = {j->key, j->key_bytes};
  if (j->is_events && !is_object) {
    j->json_mode = MODE_EVENTS;
    j->has_events = true;
  } else if (is_object && import_text_is(key, "stackFrames")) {
    j->json_mode = MODE_FRAMES;
  } else if (!is_object && import_text_is(key, "samples")) {
    j->json_mode = MODE_SAMPLES;
  } else {
    begin_json(j, MODE_METADATA, METADATA_BYTES_MAX);
  }
}

static void open_in_events(import_json *j, bool is_object) {
  if (is_object) {
    j->json_mode = MODE_EVENT;
    event_reset(&j->event);
  } else {
    j->handlers.on_other(j->handlers.user);
    skip_value(j);
  }
}

static void open_in_event(import_json *j, bool is_object) {
  if (is_object && j->is_args) {
    j->json_mode = MODE_ARGS;
    return;
  }
  if (j->member == IMPORT_ID2) {
    /* {"local":"0x1"} tells ids apart as well as its number */
    begin_json(j, MODE_VALUE, KEY_BYTES_MAX);
    return;
  }
  if (j->member == IMPORT_STACK)
    j->event.members[IMPORT_STACK].type = IMPORT_JSON; /* that it is there */
  else
    j->event.is_odd |= j->member != NO_MEMBER || j->is_args;
  skip_value(j);
}

static void open_in_args(import_json *j) {
  if (j->event.arg_count < IMPORT_ARGS_MAX) {
    begin_json(j, MODE_VALUE, IMPORT_JSON_BYTES_MAX);
  } else {
    skip_value(j);
    j->event.is_cut = true;
  }
}

/* One object a line: each is a trace, and all are one. */
static void open_behind_end(import_json *j, bool is_object) {
  if (!is_object || j->is_bare) {
    refuse_grown_event(j);
    return;
  }
  j->json_mode = MODE_TOP;
  if (j->event.line < IMPORT_LINES_MAX - 1) j->event.line++;
}

static void enter_container(import_json *j, bool is_object) {
  switch (j->json_mode) {
    case MODE_START:
      j->json_mode = is_object ? MODE_TOP : MODE_EVENTS;
      j->is_bare = j->has_events = !is_object;
      return;
    case MODE_TOP:
      open_in_top(j, is_object);
      return;
    case MODE_EVENTS:
      open_in_events(j, is_object);
      return;
    case MODE_EVENT:
      open_in_event(j, is_object);
      return;
    case MODE_ARGS:
      open_in_args(j);
      return;
    case MODE_FRAMES:
      if (is_object)
        j->json_mode = MODE_FRAME;
      else
        skip_value(j);
      return;
    case MODE_FRAME:
      skip_value(j);
      return;
    case MODE_SAMPLES:
      j->sample_count++;
      skip_value(j);
      return;
    case MODE_OVER:
      open_behind_end(j, is_object);
      return;
    case MODE_METADATA:
    case MODE_VALUE:
    case MODE_SKIP:
      return;
  }
}

static int open_container(import_json *j, bool is_object) {
  const json_mode before = j->json_mode;
  enter_container(j, is_object);
  if (j->is_damaged) return 0;
  if (j->json_mode != MODE_METADATA && j->json_mode != MODE_VALUE && j->json_mode != MODE_SKIP)
    return 1;
  if (j->json_mode != MODE_SKIP && before == j->json_mode) put_separator(j);
  j->depth++;
  if (j->json_mode != MODE_SKIP) put_json(j, is_object ? "{" : "[", 1);
  return 1;
}

/* Members that no capture keeps whole. */
static bool member_is_dropped(const import_json *j) {
  const import_text key = {j->key, j->key_bytes};
  return import_text_is(key, "prof") || import_text_is(key, "stackFrames") ||
         import_text_is(key, "systemTraceEvents");
}

static void close_json(import_json *j) {
  const bool is_cut = j->is_cut;
  const bool is_metadata = j->json_mode == MODE_METADATA;
  j->metadata_cut_count += is_cut && is_metadata && !member_is_dropped(j);
  const import_value value = {.type = is_cut && !is_metadata ? IMPORT_TEXT : IMPORT_JSON,
                              .at = (uint32_t)j->value_at,
                              .bytes = (uint32_t)(j->event.count - j->value_at)};
  j->event.is_cut |= is_cut;
  j->json_mode = j->behind;
  place_value(j, value);
}

static int close_container(import_json *j, bool is_object) {
  switch (j->json_mode) {
    case MODE_METADATA:
    case MODE_VALUE:
      put_json(j, is_object ? "}" : "]", 1);
      if (--j->depth == 0) close_json(j);
      return 1;
    case MODE_SKIP:
      if (--j->depth == 0) j->json_mode = j->behind;
      return 1;
    case MODE_ARGS:
      j->json_mode = MODE_EVENT;
      return 1;
    case MODE_EVENT:
      j->json_mode = MODE_EVENTS;
      j->handlers.on_event(j->handlers.user, &j->event);
      event_reset(&j->event);
      return 1;
    case MODE_EVENTS:
      j->json_mode = j->is_bare ? MODE_OVER : MODE_TOP;
      return 1;
    case MODE_FRAME:
      j->handlers.on_frame(j->handlers.user, &j->event);
      j->json_mode = MODE_FRAMES;
      return 1;
    case MODE_FRAMES:
    case MODE_SAMPLES:
      j->json_mode = MODE_TOP;
      event_reset(&j->event);
      return 1;
    case MODE_TOP:
      j->json_mode = MODE_OVER;
      return 1;
    case MODE_START:
    case MODE_OVER:
      return 1;
  }
  return 1;
}

static int on_begin_object(void *j) { return open_container(j, true); }
static int on_end_object(void *j) { return close_container(j, true); }
static int on_begin_array(void *j) { return open_container(j, false); }
static int on_end_array(void *j) { return close_container(j, false); }

static int event_member_of_key(import_text key) {
  static const char *const keys[] = {
#define IMPORT_KEY(name, text) text,
      IMPORT_MEMBER_LIST(IMPORT_KEY)
#undef IMPORT_KEY
  };
  for (int i = 0; i < IMPORT_MEMBER_COUNT; i++)
    if (import_text_is(key, keys[i])) return i;
  return NO_MEMBER;
}

static int frame_member_of_key(import_text key) {
  if (import_text_is(key, "name")) return IMPORT_NAME;
  if (import_text_is(key, "category")) return IMPORT_CAT;
  return import_text_is(key, "parent") ? IMPORT_SF : NO_MEMBER;
}

static void begin_frame(import_json *j, import_text number) {
  event_reset(&j->event);
  const uint32_t at = event_put_bytes(&j->event, number.data, number.bytes);
  j->event.members[IMPORT_ID] =
      (import_value){.type = IMPORT_TEXT, .at = at, .bytes = (uint32_t)number.bytes};
}

static void note_unknown(import_event *event, import_text key) {
  if (event->unknown[0] || key.bytes == 0) return;
  snprintf(event->unknown, sizeof event->unknown, "%.*s",
           (int)(key.bytes < IMPORT_UNKNOWN_BYTES ? key.bytes : IMPORT_UNKNOWN_BYTES), key.data);
}

static int on_json_key(void *user, const unsigned char *bytes, size_t count) {
  import_json *const j = user;
  const import_text key = {(const char *)bytes, count};
  if (!text_has_room(j)) return 0;
  if (is_copying_json(j)) {
    note_text(j, key.data, key.bytes);
    put_separator(j);
    put_quoted_text(j, key.data, key.bytes);
    put_json(j, ":", 1);
  } else if (j->json_mode == MODE_EVENT) {
    j->member = event_member_of_key(key);
    j->is_args = import_text_is(key, "args");
    if (j->member == NO_MEMBER && !j->is_args) note_unknown(&j->event, key);
  } else if (j->json_mode == MODE_ARGS && j->event.arg_count < IMPORT_ARGS_MAX) {
    import_arg *const arg = &j->event.args[j->event.arg_count];
    note_text(j, key.data, key.bytes);
    j->event.is_cut |= count > KEY_BYTES_MAX;
    arg->key_bytes = (uint32_t)(count < KEY_BYTES_MAX ? count : KEY_BYTES_MAX);
    arg->key_at = event_put_bytes(&j->event, key.data, arg->key_bytes);
  } else if (j->json_mode == MODE_FRAMES) {
    begin_frame(j, key);
  } else if (j->json_mode == MODE_FRAME) {
    j->member = frame_member_of_key(key);
  } else if (j->json_mode == MODE_TOP) {
    note_text(j, key.data, key.bytes);
    j->is_events = import_text_is(key, "traceEvents");
    j->key_bytes = count < KEY_BYTES_MAX ? count : KEY_BYTES_MAX;
    memcpy(j->key, bytes, j->key_bytes);
  }
  return 1;
}

/* ---- yajl ---- */

import_json *import_json_create(const import_json_handlers *handlers) {
  static const yajl_callbacks callbacks = {.yajl_null = on_json_null,
                                           .yajl_boolean = on_json_bool,
                                           .yajl_number = on_json_number,
                                           .yajl_string = on_string,
                                           .yajl_start_map = on_begin_object,
                                           .yajl_map_key = on_json_key,
                                           .yajl_end_map = on_end_object,
                                           .yajl_start_array = on_begin_array,
                                           .yajl_end_array = on_end_array};
  import_json *const json = import_make(sizeof *json);
  json->handlers = *handlers;
  char error[512];
  if (!import_yajl_load(&json->yajl, error, sizeof error)) import_fail("%s", error);
  json->parser = json->yajl.alloc(&callbacks, NULL, json);
  if (!json->parser) import_fail("no memory");
  json->yajl.config(json->parser, yajl_allow_multiple_values, 1); /* one object a line */
  /* names may hold any bytes: exports put them right */
  json->yajl.config(json->parser, yajl_dont_validate_strings, 1);
  return json;
}

void import_json_destroy(import_json *json) {
  json->yajl.free(json->parser);
  free(json->event.text);
  free(json);
}

/* Its first line, without "parse error: ". */
static void keep_error(import_json *json, const char *bytes, size_t count) {
  static const char begin[] = "parse error: ";
  unsigned char *const text =
      json->yajl.error(json->parser, 0, (const unsigned char *)bytes, count);
  const char *const from = strncmp((char *)text, begin, sizeof begin - 1) == 0
                               ? (char *)text + sizeof begin - 1
                               : (char *)text;
  snprintf(json->error, sizeof json->error, "%.*s", (int)strcspn(from, "\n"), from);
  json->yajl.free_error(json->parser, text);
}

bool import_json_read(import_json *json, const char *bytes, size_t count) {
  if (json->is_damaged) return false;
  const yajl_status status = json->yajl.parse(json->parser, (const unsigned char *)bytes, count);
  json->at += json->yajl.consumed(json->parser);
  if (status == yajl_status_ok) return true;
  /* else it was said where it was found */
  if (status == yajl_status_error) keep_error(json, bytes, count);
  json->is_damaged = true;
  return false;
}

void import_json_refuse(import_json *json, const char *encoding) {
  snprintf(json->error, sizeof json->error,
           "it is %s, and JSON is read as UTF-8: iconv -f %s -t UTF-8 makes that of it", encoding,
           encoding);
  json->is_damaged = true;
}

void import_json_end(import_json *json, import_result *result) {
  if (!json->is_damaged && (json->json_mode == MODE_START || json->json_mode == MODE_OVER))
    json->yajl.complete(json->parser); /* a number ends with the file */
  result->at = json->at;
  result->counts.changed[IMPORT_CHANGE_CUT] += json->metadata_cut_count;
  result->counts.missed[IMPORT_MISS_SAMPLES] += json->sample_count;
  result->counts.changed[IMPORT_CHANGE_NOT_UTF8] += json->not_utf8_count;
  memcpy(result->error, json->error, sizeof json->error);
  if (!json->has_events)
    result->end = json->is_damaged               ? IMPORT_DAMAGED
                  : json->json_mode == MODE_OVER ? IMPORT_NO_TRACE
                                                 : IMPORT_CUT_SHORT;
  else if (json->is_damaged)
    result->end = IMPORT_DAMAGED;
  else if (json->json_mode == MODE_OVER)
    result->end = IMPORT_WHOLE;
  else
    result->end =
        json->is_bare && json->json_mode == MODE_EVENTS ? IMPORT_OPEN_ARRAY : IMPORT_CUT_SHORT;
}

uint64_t import_json_at(const import_json *json) { return json->at; }

#else

import_json *import_json_create(const import_json_handlers *handlers) {
  (void)handlers;
  import_fail(
      "this build of prof reads no traces: yajl was missing when it was built. Type: apt-get "
      "install libyajl-dev, and build it again");
}
void import_json_destroy(import_json *json) { (void)json; }
bool import_json_read(import_json *json, const char *bytes, size_t count) {
  (void)json, (void)bytes, (void)count;
  return false;
}
void import_json_refuse(import_json *json, const char *encoding) { (void)json, (void)encoding; }
void import_json_end(import_json *json, import_result *result) { (void)json, (void)result; }
uint64_t import_json_at(const import_json *json) {
  (void)json;
  return 0;
}

#endif
