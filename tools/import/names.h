/* Names become call sites, and keys of arguments schemas: each once in the capture, however often
   it comes. */
#ifndef PROF_IMPORT_NAMES_H
#define PROF_IMPORT_NAMES_H

#include <prof/args.h>

#include "record.h"

enum { IMPORT_SITE_MANY = 0 }; /* there are too many names: the record has to bring its own */
enum { IMPORT_CATEGORY_BYTES_MAX = 256 };

/* Where it stands in the source; no file: nobody knows. */
typedef struct import_source_location {
  import_text file, function;
  uint32_t line;
  bool is_frame; /* of a function of C: file is how it reads in a stack */
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

/* The number; 0: there are too many, and the values have to be left out. */
uint32_t import_names_schema(import_names *names, const import_schema *schema);

/* Each site's and schema's record, in the order of their numbers. late_level: of the sites of level
   0. */
void import_names_each(const import_names *names, uint32_t late_level,
                       void (*take)(void *user, import_record *record), void *user);

#endif
