/* Reads JSON configurations by yajl, which is loaded at the first use. */
#ifndef PROF_TOOLS_RUN_JSON_H
#define PROF_TOOLS_RUN_JSON_H

#include <stdbool.h>
#include <stddef.h>

typedef enum run_json_kind {
  RUN_JSON_NULL,
  RUN_JSON_BOOL,
  RUN_JSON_NUMBER,
  RUN_JSON_TEXT,
  RUN_JSON_LIST,
  RUN_JSON_OBJECT,
} run_json_kind;

/* Members keep the order of the text. */
typedef struct run_json {
  run_json_kind kind;
  bool is_true;
  const char *text; /* of a text; of a number its digits */
  struct run_json *items;
  const char **keys; /* of an object */
  size_t count;
} run_json;

/* Why a text could not be read, and where. */
typedef struct run_json_error {
  const char *reason; /* no sentence: "after array element, I expect ',' or ']'" */
  size_t at;          /* bytes from the text's begin */
} run_json_error;

/* NULL: *error_out has the reason. A key that is repeated and nesting deeper than 64 are errors.
   Never freed: configurations are small. */
const run_json *run_json_parse(const char *text, run_json_error *error_out);

/* The member. NULL: there is none, or value is not an object. */
const run_json *run_json_get(const run_json *value, const char *key);

/* "a list", "a text": for messages. */
const char *run_json_kind_name(run_json_kind kind);

#endif
