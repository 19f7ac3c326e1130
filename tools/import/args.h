/* An event's arguments as a record's values and their schema. */
#ifndef PROF_IMPORT_ARGS_H
#define PROF_IMPORT_ARGS_H

#include "source_location.h"

typedef struct import_record_args {
  import_schema schema;
  uint64_t words[IMPORT_VALUE_WORDS_MAX];
  uint32_t count;  /* words */
  bool is_async;   /* work that goes on by itself */
  bool is_skipped; /* a jump left it */
  bool is_cut;
  uint32_t flags; /* of the record, as prof told them beside the arguments: PROF_I_FLAG_... */
} import_record_args;

/* of what ran on a device the first values are its launch, its times and its kind
   (docs/reference/file-format.md) */
enum { IMPORT_HIDDEN_VALUES = 5 };

/* Of the host's. may_be_marked: prof says "asynchronous" and "skipped" of it, as of a scope; else
   they are arguments. Numbers that only tie the file's rows to each other (External id,
   correlation, Ev Idx, Record function id) are left out: ties are made of them, and exports number
   anew. So is what the site's place was made of; NULL: it has none. */
void import_args_of_host(import_record_args *values, const import_event *event,
                         const import_source_location *place, bool may_be_marked);

/* Of a device's; hidden: the first values. */
void import_args_of_device(import_record_args *values, const import_event *event,
                           const uint64_t hidden[IMPORT_HIDDEN_VALUES]);

/* One that was not in args: a text. */
void import_args_text(import_record_args *values, const char *key, import_text text);
void import_args_begin(import_record_args *values);

#endif
