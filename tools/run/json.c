/* See internal.h. yajl calls back for each value. Open lists and objects are on a stack. */
#define _GNU_SOURCE
#include "internal.h"

#include <string.h>

#ifdef PROF_HAVE_YAJL

#include "../import/yajl.h"

enum { DEPTH_MAX = 64, PARSE_CONTINUE = 1, PARSE_STOP = 0 };

typedef struct json_parser {
  run_json open[DEPTH_MAX];    /* lists and objects that have not ended */
  const char *keys[DEPTH_MAX]; /* of the value that comes next in each */
  size_t depth;
  run_json *root;
  const char *refused; /* why a callback ended it, or NULL */
} json_parser;

static int parser_refuse(json_parser *p, const char *reason) {
  p->refused = reason;
  return PARSE_STOP;
}

static int parser_add(json_parser *p, run_json value) {
  if (p->depth == 0) {
    *p->root = value;
    return PARSE_CONTINUE;
  }
  run_json *const to = &p->open[p->depth - 1];
  to->items = run_grow(to->items, to->count + 1, sizeof *to->items);
  if (to->kind == RUN_JSON_OBJECT) {
    to->keys = run_grow(to->keys, to->count + 1, sizeof *to->keys);
    to->keys[to->count] = p->keys[p->depth - 1];
  }
  to->items[to->count++] = value;
  return PARSE_CONTINUE;
}

static int on_json_null(void *p) { return parser_add(p, (run_json){.kind = RUN_JSON_NULL}); }

static int on_json_bool(void *p, int is_true) {
  return parser_add(p, (run_json){.kind = RUN_JSON_BOOL, .is_true = is_true != 0});
}

static int on_json_number(void *p, const char *digits, size_t bytes) {
  return parser_add(p, (run_json){.kind = RUN_JSON_NUMBER, .text = run_copy(digits, bytes)});
}

static int on_json_text(void *p, const unsigned char *text, size_t bytes) {
  if (memchr(text, '\0', bytes)) return parser_refuse(p, "a text has a NUL character");
  return parser_add(p,
                    (run_json){.kind = RUN_JSON_TEXT, .text = run_copy((const char *)text, bytes)});
}

static int on_json_key(void *context, const unsigned char *text, size_t bytes) {
  json_parser *const p = context;
  const run_json *const in = &p->open[p->depth - 1];
  if (memchr(text, '\0', bytes)) return parser_refuse(p, "a key has a NUL character");
  const char *const key = p->keys[p->depth - 1] = run_copy((const char *)text, bytes);
  if (run_json_get(in, key))
    return parser_refuse(p, run_text("the key \"%s\" is there twice", key));
  return PARSE_CONTINUE;
}

static int parser_begin(json_parser *p, run_json_kind kind) {
  if (p->depth == DEPTH_MAX)
    return parser_refuse(p, run_text("it is nested more than %d deep", DEPTH_MAX));
  p->open[p->depth++] = (run_json){.kind = kind};
  return PARSE_CONTINUE;
}

static int on_json_object(void *p) { return parser_begin(p, RUN_JSON_OBJECT); }
static int on_json_list(void *p) { return parser_begin(p, RUN_JSON_LIST); }

static int on_json_end(void *context) {
  json_parser *const p = context;
  const run_json ended = p->open[--p->depth];
  return parser_add(p, ended);
}

static const yajl_callbacks callbacks = {.yajl_null = on_json_null,
                                         .yajl_boolean = on_json_bool,
                                         .yajl_number = on_json_number,
                                         .yajl_string = on_json_text,
                                         .yajl_start_map = on_json_object,
                                         .yajl_map_key = on_json_key,
                                         .yajl_end_map = on_json_end,
                                         .yajl_start_array = on_json_list,
                                         .yajl_end_array = on_json_end};

/* ---- yajl ---- */

/* "parse error: WHAT\n" becomes "WHAT". */
static const char *yajl_reason(const import_yajl *f, yajl_handle handle) {
  unsigned char *const text = f->error(handle, 0, NULL, 0);
  const char *reason = text ? (const char *)text : "out of memory";
  const char *const colon = strstr(reason, "error: ");
  if (colon) reason = colon + strlen("error: ");
  const char *const copy = run_copy(reason, strcspn(reason, "\n"));
  if (text) f->free_error(handle, text);
  return copy;
}

const run_json *run_json_parse(const char *text, run_json_error *error_out) {
  import_yajl f;
  char error[512];
  if (!import_yajl_load(&f, error, sizeof error)) run_fail("%s", error);
  json_parser p = {.root = run_make(1, sizeof *p.root)};
  const size_t bytes = strlen(text);
  *error_out = (run_json_error){"it is empty", 0};
  if (run_is_blank(text)) return NULL;
  yajl_handle handle = f.alloc(&callbacks, NULL, &p);
  if (!handle) run_fail("out of memory");
  yajl_status status = f.parse(handle, (const unsigned char *)text, bytes);
  const size_t consumed = f.consumed(handle); /* with the byte that is wrong */
  error_out->at = consumed > 0 ? consumed - 1 : 0;
  if (status == yajl_status_ok) {
    status = f.complete(handle);
    error_out->at = bytes;
  }
  if (status != yajl_status_ok) error_out->reason = p.refused ? p.refused : yajl_reason(&f, handle);
  f.free(handle);
  return status == yajl_status_ok ? p.root : NULL;
}

#else

const run_json *run_json_parse(const char *text, run_json_error *error_out) {
  (void)text;
  *error_out = (run_json_error){"this prof was built without yajl, which reads JSON", 0};
  return NULL;
}

#endif

const run_json *run_json_get(const run_json *value, const char *key) {
  if (!value || value->kind != RUN_JSON_OBJECT) return NULL;
  for (size_t i = 0; i < value->count; i++)
    if (strcmp(value->keys[i], key) == 0) return &value->items[i];
  return NULL;
}

const char *run_json_kind_name(run_json_kind kind) {
  switch (kind) {
    case RUN_JSON_NULL:
      return "null";
    case RUN_JSON_BOOL:
      return "true or false";
    case RUN_JSON_NUMBER:
      return "a number";
    case RUN_JSON_TEXT:
      return "a text";
    case RUN_JSON_LIST:
      return "a list";
    case RUN_JSON_OBJECT:
      return "an object";
  }
  return "?";
}
