/* What the user has at the top of Chrome JSON: keys, and values that are JSON already. Looked at
   before the first byte is written, so that a wrong one costs no file. */
#ifndef PROF_EXPORT_METADATA_H
#define PROF_EXPORT_METADATA_H

#include <prof/profiler.h>
#include <stdbool.h>
#include <stddef.h>

#include "../sink/sink.h"

typedef struct prof_i_metadata {
  const prof_metadata *items;
  uint32_t count;
} prof_i_metadata;

/* PROF_OK, or PROF_E_INVALID with the key and what is wrong. */
int prof_i_metadata_check(const prof_i_metadata *metadata);

bool prof_i_metadata_has_key(const prof_i_metadata *metadata, const char *key);

/* "key": value, a line each. Of a key that comes twice the last counts. */
void prof_i_metadata_put(const prof_i_metadata *metadata, prof_i_sink *sink);

/* Is it one JSON value (RFC 8259), strict, in UTF-8, at most 64 deep? at_out: the byte where it is
   not. */
bool prof_i_json_is_value(const char *text, size_t *at_out);

/* Such a value, on one line, and nothing in it that could open or end a <script>. */
void prof_i_json_put(prof_i_sink *sink, const char *json);

#endif
