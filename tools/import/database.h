/* From the rows of a database to events. A database is opened (database.c), and its rows become
   events as a JSON trace has them (event_builder.c). So kineto.c takes both. Each kind of database
   has a reader: prof's own, rocmProfileData's trace.rpd, and the results.db of rocprofv3. */
#ifndef PROF_IMPORT_DATABASE_H
#define PROF_IMPORT_DATABASE_H

#include "state.h"

/* ---- database.c ---- */

/* Reads SQLite databases, and never writes them. libsqlite3 is loaded at the first use. A file is
   not trusted: no code of its schema runs, and its structure is checked first. */

typedef struct import_database import_database;

/* The rows of one query, one after another. */
typedef struct import_rows {
  import_database *database;
  void *statement; /* NULL: the query failed, or has ended */
} import_rows;

/* folder: for a temporary copy. NULL: refused, and result->error has the reason. */
import_database *import_database_open(const char *path, const char *folder, import_result *result);
void import_database_close(import_database *database);

/* True: a query has failed. result->error has the reason. */
bool import_database_is_refused(const import_database *database);

/* True: the database has a table of that name. A view does not count. */
bool import_database_has_table(import_database *database, const char *table);
bool import_database_has_column(import_database *database, const char *table, const char *column);
/* The first column of the first row, or 0 without a row. */
int64_t import_database_count(import_database *database, const char *query);
/* True: this libsqlite3 has the functions of JSON. */
bool import_database_has_json(import_database *database);

import_rows import_rows_begin(import_database *database, const char *query);
/* False: there are no more, or reading failed. */
bool import_rows_next(import_rows *rows);
void import_rows_end(import_rows *rows);

/* False: the value is NULL, or not an integer. */
bool import_rows_i64(const import_rows *rows, int column, int64_t *out);
bool import_rows_is_null(const import_rows *rows, int column);
/* The value as text, valid until the next row. Empty for NULL. */
import_text import_rows_text(const import_rows *rows, int column);

/* ---- event_builder.c ---- */

/* Events under construction. Texts of members and arguments are copied. */

/* Begins a new event. It uses the buffer of the event before. */
void import_event_begin(import_event *event, const char *phase);
void import_event_fini(import_event *event);

void import_event_set_member(import_event *event, import_member member, import_text text);
void import_event_set_number(import_event *event, import_member member, int64_t number);

/* Sets the member from a column of integers. Any other value makes the event odd. */
void import_event_set_column(import_event *event, import_member member, const import_rows *rows,
                             int column);

/* Sets ts and dur from columns in ns. end < 0: no duration. */
void import_event_set_times(import_event *event, const import_rows *rows, int start, int end);

void import_event_add_text(import_event *event, const char *key, import_text text);
void import_event_add_i64(import_event *event, const char *key, int64_t number);
/* Writes a decimal point, so that all values of a counter have one type. */
void import_event_add_f64(import_event *event, import_text key, import_text digits);
/* Adds the column's value, an integer or a text. Adds nothing for NULL. */
void import_event_add_column(import_event *event, const char *key, const import_rows *rows,
                             int column);
/* Adds nothing for NULL and 0. */
void import_event_add_nonzero(import_event *event, const char *key, const import_rows *rows,
                              int column);
/* Adds three columns as [x,y,z]. Adds nothing if the first is NULL. */
void import_event_add_dims(import_event *event, const char *key, const import_rows *rows,
                           int column);
void import_event_add_arg(import_event *event, import_text key, import_type type, import_text text);

/* ---- database_reader.c ---- */

/* What the readers share. */

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

/* folder: of the output. result->end is IMPORT_WHOLE, or IMPORT_REFUSED with the reason. */
void import_database_read(import_state *state, const char *path, const char *folder,
                          import_result *result);

/* ---- rpd.c ---- */

bool import_rpd_is(import_database *database);
void import_rpd_convert(import_reader *reader);

/* ---- rocpd.c ---- */

/* Replaces the suffix by that of the next set of tables. False: there is none. */
bool import_rocpd_next(import_database *database, bool is_first, char suffix[IMPORT_SUFFIX_BYTES]);
void import_rocpd_convert(import_reader *reader, const char *suffix, uint32_t group);

/* ---- own_database.c ---- */

/* Whether prof wrote the database: with prof's own tables, or as trace.rpd. */
bool import_own_database_is(import_database *database);
/* Sets result->end, also if the database is refused. */
void import_own_database_convert(import_reader *reader, import_result *result);

#endif
