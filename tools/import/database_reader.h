/* Databases: prof's own (own_database.c), rocmProfileData's trace.rpd (rpd.c) and the results.db of
   rocprofv3 (rocpd.c). Their rows become events as kineto.c takes them. */
#ifndef PROF_IMPORT_TABLES_H
#define PROF_IMPORT_TABLES_H

#include "database.h"
#include "event_builder.h"
#include "state.h"

enum { IMPORT_QUERY_BYTES = 8192, IMPORT_SUFFIX_BYTES = 64 };

/* A GPU as one process uses it: that process launched its work. */
typedef struct import_gpu {
  struct {
    int64_t owner, number; /* owner INT64_MIN: not known */
  } key;
  UT_hash_handle hh;
  int64_t row; /* the process number that its events get */
} import_gpu;

/* A number, and the value that it was first seen with. */
typedef struct import_numbered_id {
  int64_t number;
  UT_hash_handle hh;
  uint32_t value;
} import_numbered_id;

typedef struct import_reader {
  import_database *database;
  import_state *state;
  import_event *event; /* under construction */
  import_gpu *gpus;
  import_numbered_id *processes, *machines;
  uint64_t side_query_count; /* taken rows of side tables */
} import_reader;

/* A side table: its rows belong to rows of another table by the first column. Both are sorted by
   it. */
typedef struct import_side_query {
  import_rows rows;
  bool is_at_row;
  int64_t key;
} import_side_query;

/* query NULL: there are no rows. */
import_side_query import_side_query_begin(const import_reader *reader, const char *query);
/* True: the current row has that key. Keys must not decrease between calls. */
bool import_side_query_find(import_side_query *side, int64_t key);
/* Moves to the next row, of the same key or another. */
void import_side_query_next(import_side_query *side);
void import_side_query_end(import_side_query *side);

/* Takes the event, which is complete. */
void import_reader_convert_event(import_reader *reader);

/* The process number for a GPU's events. owner: the process that launched the work, or INT64_MIN
   if that is not known. */
int64_t import_reader_gpu(import_reader *reader, int64_t owner, int64_t number);

/* The group that the process's number was first seen in: this one, or an earlier one. */
uint32_t import_reader_owner(import_reader *reader, int64_t pid, uint32_t group);
/* Numbers machines from 0, in the order of their first use. */
uint32_t import_reader_machine(import_reader *reader, int64_t number, bool *is_first_out);

/* Counts the rows of all unread tables with that suffix. tables: those that are read, or hold no
   events. */
void import_reader_check_schema(import_reader *reader, const char *const *tables, size_t count,
                                const char *suffix);

/* Counts the rows of these side tables that were not taken. */
void import_reader_note_missing(import_reader *reader, const char *const *tables, size_t count,
                                const char *suffix);

bool import_rpd_is(import_database *database);
void import_rpd_convert(import_reader *reader);

/* Replaces the suffix by that of the next set of tables. False: there is none. */
bool import_rocpd_next(import_database *database, bool is_first, char suffix[IMPORT_SUFFIX_BYTES]);
void import_rocpd_convert(import_reader *reader, const char *suffix, uint32_t group);

/* Whether prof wrote the database: with prof's own tables, or as trace.rpd. */
bool import_own_database_is(import_database *database);
/* Sets result->end, also if the database is refused. */
void import_own_database_convert(import_reader *reader, import_result *result);

/* folder: of the output. result->end is IMPORT_WHOLE, or IMPORT_REFUSED with the reason. */
void import_database_read(import_state *state, const char *path, const char *folder,
                          import_result *result);

#endif
