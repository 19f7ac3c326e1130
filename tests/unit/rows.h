/* The aggregate of a built capture, and one row of it by its name. A header only, because each test
   is one file. */
#ifndef PROF_TESTS_ROWS_H
#define PROF_TESTS_ROWS_H

#include "trace_checks.h"

enum { T0 = CAPTURE_START, CHUNK = PROF_I_UNIT_BYTES };

static CAPTURE_UNUSED prof_rows *aggregate(const prof_trace *trace,
                                           const prof_aggregate_options *options) {
  prof_rows *rows = NULL;
  if (prof_trace_aggregate(trace, options, &rows) != PROF_OK)
    fail_msg("prof_trace_aggregate: %s", prof_last_error());
  return rows;
}

static const prof_row *row_named(const prof_rows *rows, const char *name) {
  for (uint64_t i = 0; i < rows->row_count; i++)
    if (strcmp(rows->rows[i].name, name) == 0) return &rows->rows[i];
  fail_msg("no row is named %s", name);
  return NULL;
}

#endif
