/* A table of aggregates, which table.c lays out, and the lines below it, by table_below.c. */
#ifndef PROF_TRACE_TABLE_H
#define PROF_TRACE_TABLE_H

#include <prof/trace.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "page.h"

enum { PROF_I_TABLE_COLUMNS_MAX = 32 };

typedef struct prof_i_table {
  const prof_trace *const *traces;
  size_t trace_count;
  const prof_rows *rows;
  uint32_t group, time_unit;
  size_t widths[PROF_I_TABLE_COLUMNS_MAX]; /* 0: not shown */
  prof_i_page page;
} prof_i_table;

/* All its calls took 0 ns: they were not measured (PROF_I_NO_DURATION). */
bool prof_i_table_lacks_durations(const prof_row *row);

/* Any row that is shown has durations, or there is no row. */
bool prof_i_table_has_durations(const prof_i_table *t);

/* Overlapping calls of a thread may add up to more than the time that passed. Asynchronous calls
   are not a thread's own time. Neither total is part of the sum that shares refer to. */
bool prof_i_table_has_total_share(const prof_i_table *t, const prof_row *row);

prof_trace_info prof_i_table_info(const prof_trace *trace);

/* The lines below the rows. Returns PROF_OK or an error. */
int prof_i_table_put_sums(prof_i_table *t);

#endif
