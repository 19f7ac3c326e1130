/* SQLite databases, read and never written. libsqlite3 is opened when there is one to read. A
   file may come from anybody: nothing of its schema runs, and its structure is checked first. */
#ifndef PROF_IMPORT_DATABASE_H
#define PROF_IMPORT_DATABASE_H

#include "event.h"
#include "import.h"

typedef struct import_database import_database;

/* The rows of one query, one after another. */
typedef struct import_rows {
  import_database *database;
  void *statement; /* NULL: the query failed, or has ended */
} import_rows;

/* folder: where a copy may stand for a moment. NULL: refused, and result->error says why. */
import_database *import_database_open(const char *path, const char *folder, import_result *result);
void import_database_close(import_database *database);

/* Has any query failed? result->error says why. */
bool import_database_is_refused(const import_database *database);

/* Is there a table of that name? A view does not count. */
bool import_database_has_table(import_database *database, const char *table);
bool import_database_has_column(import_database *database, const char *table, const char *column);
/* The first column of the first row; 0 where there is none. */
int64_t import_database_count(import_database *database, const char *query);
/* Does this libsqlite3 have the functions of JSON? */
bool import_database_has_json(import_database *database);

import_rows import_rows_begin(import_database *database, const char *query);
/* False: there are no more, or reading failed. */
bool import_rows_next(import_rows *rows);
void import_rows_end(import_rows *rows);

/* False: it is NULL, or no integer. */
bool import_rows_i64(const import_rows *rows, int column, int64_t *out);
bool import_rows_is_null(const import_rows *rows, int column);
/* As text, until the next row. Empty: it is NULL. */
import_text import_rows_text(const import_rows *rows, int column);

#endif
