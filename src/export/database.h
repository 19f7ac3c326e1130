/* What the exporters of databases share: the file (sqlite_file.c), and the texts of events and the
   numbers of names (event_text.c). Called by sqlite.c, sqlite_ends.c, rpd.c and rpd_ends.c. */
#ifndef PROF_EXPORT_DATABASE_H
#define PROF_EXPORT_DATABASE_H

#include "internal.h"

/* ---- sqlite_file.c ---- */

/* Writes an SQLite database into a sink's file. libsqlite3 is loaded at run time. It writes through
   the sink's target, so the file gets its name when it is complete, and there is no journal. After
   a failure, later calls do nothing. Rows are written in one transaction. Texts must be UTF-8
   without NUL. One thread at a time. */

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

/* ---- event_text.c: texts of events ---- */

/* Arguments are a JSON object, as in Chrome JSON, and names are valid UTF-8. The parts of Chrome
   JSON before and after the events are texts too, which prof import reads back. A text is valid
   until the next call. */

struct prof_i_chrome;
struct prof_i_chrome_shared;

typedef struct prof_i_event_text {
  struct prof_i_chrome *chrome;
  prof_i_sink sink; /* in memory: the text */
  int status;       /* the first failure */
} prof_i_event_text;

/* The heads and tails of the captures of a merged file, which shares them. Begins as zeros. */
typedef struct prof_i_merged_texts {
  struct prof_i_chrome_shared *chrome;
  prof_i_sink heads, tails; /* in memory */
} prof_i_merged_texts;

/* merged: NULL if the capture is alone in the file. PROF_OK or PROF_E_NO_MEMORY, with its text.
   Call fini also after a failure. */
int prof_i_event_text_init(prof_i_event_text *texts, prof_i_export *run,
                           prof_i_merged_texts *merged);
void prof_i_event_text_fini(prof_i_event_text *texts);

/* The arguments of run->event. Changes the event. Empty: it has none. */
prof_i_text prof_i_event_text_args(prof_i_event_text *texts);
/* The text with U+FFFD in place of invalid UTF-8 and NUL. A valid text is returned as it is. */
prof_i_text prof_i_event_text_clean(prof_i_event_text *texts, prof_i_text text);
/* Members of the arguments that locate a function in the source: "file":"a.py","line":7. Empty:
   none. */
prof_i_text prof_i_event_text_place(prof_i_event_text *texts, uint32_t site, prof_i_text name);

/* The number of the event's call site, if the event has the name and category of the site; else
   0. */
uint32_t prof_i_event_text_site(const prof_trace *trace, const prof_event *event);

/* Counts of written events, for the summary in the tail. */
typedef struct prof_i_event_counts {
  uint64_t scopes, unfinished, steps, instants, counters, flow_ends;
} prof_i_event_counts;

prof_i_text prof_i_event_text_head(prof_i_event_text *texts);
prof_i_text prof_i_event_text_tail(prof_i_event_text *texts, const prof_i_event_counts *counts,
                                   const prof_i_findings *findings);

/* The time of the capture's start, in ns after the base of Chrome JSON's times. */
uint64_t prof_i_event_text_epoch_ns(const prof_i_event_text *texts);

/* ---- event_text.c: merged files ---- */

/* Add the capture's head and tail. A failure becomes the status of `texts`. */
void prof_i_merged_texts_add_head(prof_i_merged_texts *merged, prof_i_event_text *texts);
void prof_i_merged_texts_add_tail(prof_i_merged_texts *merged, prof_i_event_text *texts,
                                  const prof_i_event_counts *counts,
                                  const prof_i_findings *findings);
/* All of them. Valid until the next call. */
prof_i_text prof_i_merged_head(const prof_i_merged_texts *merged);
prof_i_text prof_i_merged_tail(const prof_i_merged_texts *merged);
void prof_i_merged_texts_fini(prof_i_merged_texts *merged);

/* ---- event_text.c: numbers of names ---- */

/* Numbers are from 1 on, and equal names get one number. The texts must stay valid as long as the
   table. One thread at a time. */

typedef struct prof_i_database_name {
  prof_i_text name, category;
  uint32_t site;
} prof_i_database_name;

typedef struct prof_i_name_ids {
  prof_i_database_name *names; /* by number less 1 */
  uint32_t *slots;             /* numbers by hash; 0: free */
  uint32_t count, name_room;
  uint32_t slot_count; /* a power of 2 */
} prof_i_name_ids;

/* The number of that name. *is_new_out: it had none before. 0: no memory. */
uint32_t prof_i_name_id(prof_i_name_ids *ids, const prof_i_database_name *name, bool *is_new_out);

void prof_i_name_ids_fini(prof_i_name_ids *ids);

#endif
