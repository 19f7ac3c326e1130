/* The trace's JSON as a stream: elements of traceEvents one after another, and the members beside
   it. Knows the shape, and nothing of what events mean. The parser is yajl, opened when a trace is
   imported. */
#ifndef PROF_IMPORT_JSON_H
#define PROF_IMPORT_JSON_H

#include "event.h"
#include "import.h"

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

/* Ends the process where there is no yajl. */
import_json *import_json_create(const import_json_handlers *handlers);
void import_json_destroy(import_json *json);

/* False: it is damaged there, or was before; no more is taken. */
bool import_json_read(import_json *json, const char *bytes, size_t count);

/* It is no JSON, for it is text in another encoding. */
void import_json_refuse(import_json *json, const char *encoding);

/* Behind the last byte. Fills end, at and error. */
void import_json_end(import_json *json, import_result *result);

/* Bytes that are read for certain. */
uint64_t import_json_at(const import_json *json);

#endif
