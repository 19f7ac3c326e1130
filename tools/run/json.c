/* See json.h. */
#include "json.h"

#include <dlfcn.h>
#include <string.h>

#include "text.h"

#ifdef PROF_HAVE_YAJL

#include <yajl/yajl_tree.h>

/* yajl parses any depth. Configurations have few levels, and values below DEPTH_MAX are null. */
enum { DEPTH_MAX = 64 };

static void convert_list(yajl_val value, run_json *to, int depth);

// NOLINTNEXTLINE(misc-no-recursion): at most DEPTH_MAX deep
static void convert(yajl_val value, run_json *to, int depth) {
  switch (value->type) {
    case yajl_t_string:
      *to = (run_json){.kind = RUN_JSON_TEXT, .text = run_text("%s", value->u.string)};
      return;
    case yajl_t_number:
      *to = (run_json){.kind = RUN_JSON_NUMBER, .text = run_text("%s", value->u.number.r)};
      return;
    case yajl_t_true: *to = (run_json){.kind = RUN_JSON_BOOL, .is_true = true}; return;
    case yajl_t_false: *to = (run_json){.kind = RUN_JSON_BOOL}; return;
    case yajl_t_object:
    case yajl_t_array:
      if (depth == DEPTH_MAX) break;
      convert_list(value, to, depth + 1);
      return;
    case yajl_t_null:
    case yajl_t_any: break;
  }
  *to = (run_json){.kind = RUN_JSON_NULL};
}

// NOLINTNEXTLINE(misc-no-recursion): see convert()
static void convert_list(yajl_val value, run_json *to, int depth) {
  const bool is_object = value->type == yajl_t_object;
  const size_t count = is_object ? value->u.object.len : value->u.array.len;
  *to = (run_json){.kind = is_object ? RUN_JSON_OBJECT : RUN_JSON_LIST,
                   .items = run_make(count, sizeof *to->items),
                   .keys = is_object ? run_make(count, sizeof *to->keys) : NULL,
                   .count = count};
  for (size_t i = 0; i < count; i++) {
    if (is_object) to->keys[i] = run_text("%s", value->u.object.keys[i]);
    convert(is_object ? value->u.object.values[i] : value->u.array.values[i], &to->items[i], depth);
  }
}

const run_json *run_json_parse(const char *text, const char **error_out) {
  static const char name[] = "libyajl.so.2";
  void *const handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    run_fail("JSON is read with yajl, which cannot be opened: %s. Type: apt-get install libyajl2",
             dlerror());
  __typeof__(&yajl_tree_parse) parse;
  __typeof__(&yajl_tree_free) release;
  *(void **)&parse = dlsym(handle, "yajl_tree_parse");
  *(void **)&release = dlsym(handle, "yajl_tree_free");
  if (!parse || !release) run_fail("%s is no yajl 2", name);
  char error[1024] = "";
  run_json *json = NULL;
  yajl_val value = parse(text, error, sizeof error);
  if (value) {
    json = run_make(1, sizeof *json);
    convert(value, json, 0);
    release(value);
  } else {
    for (char *at = error; *at; at++)
      if (*at == '\n') *at = ' ';
    *error_out = run_text("%s", *error ? error : "it is empty");
  }
  dlclose(handle);
  return json;
}

#else

const run_json *run_json_parse(const char *text, const char **error_out) {
  (void)text;
  *error_out = "this prof was built without yajl, which reads JSON";
  return NULL;
}

#endif

const run_json *run_json_get(const run_json *value, const char *key) {
  if (!value || value->kind != RUN_JSON_OBJECT) return NULL;
  for (size_t i = value->count; i > 0; i--)
    if (strcmp(value->keys[i - 1], key) == 0) return &value->items[i - 1];
  return NULL;
}

const char *run_json_kind_name(run_json_kind kind) {
  switch (kind) {
    case RUN_JSON_NULL: return "null";
    case RUN_JSON_BOOL: return "true or false";
    case RUN_JSON_NUMBER: return "a number";
    case RUN_JSON_TEXT: return "a text";
    case RUN_JSON_LIST: return "a list";
    case RUN_JSON_OBJECT: return "an object";
  }
  return "?";
}
