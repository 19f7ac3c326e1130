/* Writes an SQLite database into a sink's file. libsqlite3 is loaded at run time. It writes through
   the sink's target, so the file gets its name when it is complete, and there is no journal. After
   a failure, later calls do nothing. Rows are written in one transaction. Texts must be UTF-8
   without NUL. One thread at a time. Called by sqlite.c and rpd.c. */
#ifndef PROF_EXPORT_SQLITE_FILE_H
#define PROF_EXPORT_SQLITE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "../reader/internal.h"
#include "../sink/sink.h"

typedef struct prof_i_sqlite prof_i_sqlite;

/* Inserts rows into a table, several at a time. For each row, put the values of all columns in
   order, then call prof_i_insert_row(). */
typedef struct prof_i_insert prof_i_insert;

/* Returns PROF_OK, or a status with its text. After a failure there is nothing to close. */
int prof_i_sqlite_open(prof_i_sink *sink, prof_i_sqlite **database_out);

/* Executes statements of SQL. */
void prof_i_sqlite_run(prof_i_sqlite *database, const char *sql);

/* table: with the names of columns, "x (a, b)". A database has at most PROF_I_INSERTS inserts.
   Returns NULL if the database has failed. The other calls ignore NULL. */
enum { PROF_I_INSERTS = 16, PROF_I_INSERT_COLUMNS = 12 };
prof_i_insert *prof_i_insert_begin(prof_i_sqlite *database, const char *table, int columns);

void prof_i_insert_put(prof_i_insert *insert, int64_t value);
void prof_i_insert_put_u64(prof_i_insert *insert, uint64_t value); /* the same bits */
void prof_i_insert_put_double(prof_i_insert *insert, double value);
/* The text is copied. */
void prof_i_insert_put_text(prof_i_insert *insert, prof_i_text text);
void prof_i_insert_put_null(prof_i_insert *insert);
void prof_i_insert_row(prof_i_insert *insert);

/* PROF_E_NO_MEMORY, with a text that names the file. */
int prof_i_sqlite_fail_no_memory(const char *path);

/* PROF_OK, or the first failure. Its text is set when it happens. */
int prof_i_sqlite_status(const prof_i_sqlite *database);

/* Ends the transaction and closes the database. PROF_OK, or the first failure. */
int prof_i_sqlite_commit(prof_i_sqlite *database);
/* Closes the database without a commit. NULL is ignored. */
void prof_i_sqlite_abandon(prof_i_sqlite *database);

#endif
