/* yajl, the JSON parser of `prof import` and of `prof run`'s configurations. It is loaded when
   there is JSON to read. Include it only if PROF_HAVE_YAJL is defined: the build found yajl's
   header. */
#ifndef PROF_TOOLS_IMPORT_YAJL_H
#define PROF_TOOLS_IMPORT_YAJL_H

#include <stdbool.h>
#include <stddef.h>
#include <yajl/yajl_parse.h>

typedef struct import_yajl {
  __typeof__(&yajl_alloc) alloc;
  __typeof__(&yajl_config) config;
  __typeof__(&yajl_parse) parse;
  __typeof__(&yajl_complete_parse) complete;
  __typeof__(&yajl_get_error) error;
  __typeof__(&yajl_get_bytes_consumed) consumed;
  __typeof__(&yajl_free_error) free_error;
  __typeof__(&yajl_free) free;
} import_yajl;

/* yajl stays loaded. False: error has what is wrong, as a sentence. */
bool import_yajl_load(import_yajl *to, char *error, size_t room);

#endif
