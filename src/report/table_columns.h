/* The columns of a table of aggregates, once for texts, CSV and JSON. See table.h. */
#ifndef PROF_REPORT_TABLE_COLUMNS_H
#define PROF_REPORT_TABLE_COLUMNS_H

#include "../base/display.h"
#include "internal.h"
#include "table.h"

enum { PROF_I_TABLE_PLACE_BYTES = 40, PROF_I_TABLE_CELL_BYTES = PROF_I_SANITIZED_NAME_BYTES };

/* word, title, kind, value, group bit that shows it (0: always), most columns wide, and keep. Where
   a terminal has no room, columns with the least `keep` are left out first. 0: it is kept. */
/* clang-format off */
#define PROF_I_TABLE_COLUMN_LIST(X) \
  X("name", "Name", NAME, TEXT, PROF_GROUP_NAME, 55, 0) \
  X("category", "Category", CATEGORY, TEXT, PROF_GROUP_CATEGORY, 24, 0) \
  X("device", "Device", DEVICE, TEXT, PROF_GROUP_DEVICE, 24, 0) \
  X("rank", "Rank", RANK, COUNT, PROF_I_GROUP_RANK, 12, 0) \
  X("process", "Process", PROCESS, TEXT, PROF_GROUP_PROCESS, 48, 0) \
  X("thread", "Thread", THREAD, TEXT, PROF_GROUP_THREAD, 32, 0) \
  X("arg", "Argument", ARG, TEXT, PROF_I_GROUP_ARG, 40, 0) \
  X("self-percent", "Self %", SELF_SHARE, SHARE, 0, 12, 14) \
  X("self", "Self", SELF, TIME, 0, 24, 0) \
  X("self-net", "Self Net", SELF_NET, TIME, 0, 24, 10) \
  X("total-percent", "Total %", TOTAL_SHARE, SHARE, 0, 12, 4) \
  X("total", "Total", TOTAL, TIME, 0, 24, 0) \
  X("total-net", "Total Net", TOTAL_NET, TIME, 0, 24, 11) \
  X("mean", "Mean", MEAN, TIME, 0, 24, 8) \
  X("median", "Median", MEDIAN, TIME, 0, 24, 2) \
  X("p99", "p99", P99, TIME, 0, 24, 1) \
  X("max", "Max", MAX, TIME, 0, 24, 3) \
  X("self-device", "Self Device", SELF_DEVICE_TIME, TIME, 0, 24, 17) \
  X("self-device-percent", "Self Device %", SELF_DEVICE_SHARE, SHARE, 0, 14, 6) \
  X("device-total", "Device Total", DEVICE_TIME, TIME, 0, 24, 18) \
  X("device-mean", "Device Mean", DEVICE_MEAN, TIME, 0, 24, 7) \
  X("cpu-mem", "CPU Mem", MEMORY, BYTES, 0, 24, 15) \
  X("self-cpu-mem", "Self CPU Mem", SELF_MEMORY, BYTES, 0, 24, 9) \
  X("device-mem", "Device Mem", DEVICE_MEMORY, BYTES, 0, 24, 16) \
  X("self-device-mem", "Self Device Mem", SELF_DEVICE_MEMORY, BYTES, 0, 24, 13) \
  X("calls", "Calls", CALLS, COUNT, 0, 24, 0) \
  X("open", "Open", OPEN, COUNT, 0, 24, 20) \
  X("open-for", "Open for", OPEN_TIME, TIME, 0, 24, 19) \
  X("skipped", "Skipped", SKIPPED, COUNT, 0, 24, 12) \
  X("location", "Location", PLACE, TEXT, PROF_GROUP_NAME | PROF_I_GROUP_LINE, \
    PROF_I_TABLE_PLACE_BYTES, 5) \
  X("shape", "Input Shapes", SHAPE, TEXT, PROF_GROUP_SHAPE, 80, 0) \
  X("stack", "Source Location", STACK, TEXT, PROF_GROUP_STACK | PROF_GROUP_SCOPES, 75, 0)
/* The last: rows go on below it. */
/* clang-format on */

typedef enum table_column {
#define PROF_I_TABLE_KIND(word, title, kind, value, group, width, keep) COLUMN_##kind,
  PROF_I_TABLE_COLUMN_LIST(PROF_I_TABLE_KIND)
#undef PROF_I_TABLE_KIND
      COLUMN_COUNT
} table_column;

_Static_assert((int)COLUMN_COUNT <= (int)PROF_I_TABLE_COLUMNS_MAX,
               "widths has room for each column");

extern const prof_i_table_column prof_i_table_columns[COLUMN_COUNT];

static inline bool prof_i_table_column_is_duration(table_column which) {
  return which >= COLUMN_SELF_SHARE && which <= COLUMN_MAX;
}

/* ---- table_cells.c ---- */

typedef enum table_value_kind {
  TABLE_VALUE_NONE,
  TABLE_VALUE_UNKNOWN, /* calls without durations */
  TABLE_VALUE_TEXT,
  TABLE_VALUE_PLACE, /* text: the file; number: the line */
  TABLE_VALUE_SHARE, /* number of whole */
  TABLE_VALUE_TIME,  /* ns */
  TABLE_VALUE_BYTES,
  TABLE_VALUE_COUNT
} table_value_kind;

typedef struct table_value {
  table_value_kind kind;
  uint64_t number, whole;
  int64_t bytes;
  const char *text; /* in room, or of the rows */
  char room[PROF_I_PLACE_TEXT_BYTES];
} table_value;

void prof_i_table_value(const prof_i_table *t, const prof_row *row, table_column which,
                        table_value *to);

/* The column of a group: of one bit of prof_group or of analysis/internal.h. */
table_column prof_i_table_group_column(uint32_t group);

prof_row_more prof_i_table_row_more(const prof_i_table *t, const prof_row *row);

/* More than 2 % of it is the cost of scopes inside. */
bool prof_i_table_net_differs(uint64_t ns, uint64_t net_ns);

/* The value as text for a cell: in `to`, or of a long name in t->long_cell, until the next call. */
prof_i_text prof_i_table_cell(prof_i_table *t, const prof_row *row, table_column which,
                              char to[PROF_I_TABLE_CELL_BYTES]);

/* ---- table_data.c ---- */

/* The rows as CSV (RFC 4180), or as JSON. PROF_OK or an error. The caller frees the text. */
int prof_i_table_csv(const prof_i_table *t, char **text_out);
int prof_i_table_json(const prof_i_table *t, char **text_out);

#endif
