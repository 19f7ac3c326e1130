/* Reads SQLite databases, and never writes them. libsqlite3 is loaded at the first use. A file is
   not trusted: no code of its schema runs, and its structure is checked first. */
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

#endif
