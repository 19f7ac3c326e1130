/* A table of aggregates, which table.c lays out, and the lines below it, by table_footer.c. */
#ifndef PROF_REPORT_TABLE_H
#define PROF_REPORT_TABLE_H

#include <prof/trace.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../analysis/internal.h"
#include "../base/display.h"

enum { PROF_I_TABLE_COLUMNS_MAX = 32 };

typedef struct prof_i_table {
  const prof_trace *const *traces;
  size_t trace_count;
  const struct prof_i_filter *filter; /* of the rows; NULL: none */
  const prof_rows *rows;
  uint32_t group, time_unit;
  const char *arg_key;                      /* of PROF_I_GROUP_ARG */
  bool has_fibers;                          /* one of the traces has */
  size_t width;                             /* at most so many columns of text; 0: any */
  size_t widths[PROF_I_TABLE_COLUMNS_MAX];  /* 0: not shown */
  uint32_t left_out;                        /* columns that had no room, as bits */
  uint32_t empty;                           /* columns of which each cell is empty, as bits */
  uint32_t zero;                            /* the same of columns of zeros */
  uint32_t order[PROF_I_TABLE_COLUMNS_MAX]; /* columns, from the left */
  size_t order_count;
  bool is_chosen; /* the caller has named the columns: none is left out */
  bool is_colored, has_whole_names;
  uint32_t bold; /* a column, or PROF_I_TABLE_COLUMNS_MAX */
  prof_i_text_buffer page;
  prof_i_text_buffer long_cell; /* of table_cells.c */
} prof_i_table;

/* All its calls took 0 ns, and may be calls of a library's own log, which were not measured
   (PROF_I_NO_DURATION): those are on fibers. */
bool prof_i_table_lacks_durations(const prof_i_table *t, const prof_row *row);
bool prof_i_table_find_fibers(const prof_i_table *t);

/* Any row that is shown has durations, or there is no row. */
bool prof_i_table_has_durations(const prof_i_table *t);

/* Overlapping calls of a thread may add up to more than the time that passed. Asynchronous calls
   are not a thread's own time. Neither total is part of the sum that shares refer to. */
bool prof_i_table_has_total_share(const prof_i_table *t, const prof_row *row);

prof_trace_info prof_i_table_info(const prof_trace *trace);

/* A column, to fit the table. keep: columns with the least number are left out first; 0: none
   is. */
/* Its texts are no pointers: the loader would have to relocate those. */
typedef struct prof_i_table_column {
  char word[24]; /* for a command line */
  char title[24];
  uint32_t group; /* the bits that show it; 0: always. Those of groups are texts */
  uint32_t keep;
  size_t width_max;
  uint32_t value; /* table_value_kind of table_columns.h */
} prof_i_table_column;

enum { PROF_I_TABLE_GAP = 2 };

/* The lines below the rows. Returns PROF_OK or an error. */
int prof_i_table_put_footer(prof_i_table *t);

/* ---- table.c ---- */

typedef enum prof_i_table_kind {
  PROF_I_TABLE_TEXT,
  PROF_I_TABLE_CSV,
  PROF_I_TABLE_JSON
} prof_i_table_kind;

/* What prof_aggregate_options has not. Begins as zeros. */
typedef struct prof_i_table_form {
  prof_i_table_kind kind;
  /* Columns in this order. column_count 0: those with values; of CSV and JSON all. */
  uint32_t columns[PROF_I_TABLE_COLUMNS_MAX];
  size_t column_count;
  bool is_colored;            /* for a terminal */
  bool has_whole_names;       /* however long they are; also those of threads and processes */
  prof_i_aggregate_more more; /* filter and additional groups */
  uint64_t group_count;       /* out: the groups, before the limit of rows */
  uint64_t scope_count;       /* out: scopes of the host in them, also open and skipped ones */
} prof_i_table_form;

/* The word of a column for a command line, and the bits of prof_group that it needs one of (0: it
   needs none). NULL: there are no more. */
const char *prof_i_table_column_word(uint32_t column, uint32_t *group_out);

/* table_cells.c: the title of a group's column. group: one bit of prof_group or of
   analysis/internal.h. */
const char *prof_i_table_group_title(uint32_t group, const char *arg_key);

/* As prof_traces_table(), which has the usual form. */
int prof_i_traces_table(const prof_trace *const *traces, size_t count,
                        const prof_aggregate_options *options, prof_i_table_form *form,
                        char **text_out);

#endif
