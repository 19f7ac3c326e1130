/* Values of a table of aggregates, and their texts. No part of a name reaches the terminal as a
   control code. See table_columns.h. */
#include <stdio.h>
#include <string.h>

#include "../base/display.h"
#include "../format/layout.h"
#include "table_columns.h"

enum { CELL_BYTES = PROF_I_TABLE_CELL_BYTES, PLACE_BYTES = PROF_I_TABLE_PLACE_BYTES };

const prof_i_table_column prof_i_table_columns[COLUMN_COUNT] = {
#define COLUMN(word, title, kind, value, group, width, keep) \
  {word, title, group, keep, width, TABLE_VALUE_##value},
    PROF_I_TABLE_COLUMN_LIST(COLUMN)
#undef COLUMN
};

table_column prof_i_table_group_column(uint32_t group) {
  table_column column = COLUMN_NAME;
  while (column < COLUMN_STACK && !(prof_i_table_columns[column].group & group)) column++;
  return column;
}

const char *prof_i_table_group_title(uint32_t group, const char *arg_key) {
  const table_column column = prof_i_table_group_column(group);
  return column == COLUMN_ARG ? arg_key : prof_i_table_columns[column].title;
}

prof_row_more prof_i_table_row_more(const prof_i_table *t, const prof_row *row) {
  prof_row_more more = {.size = sizeof more};
  prof_rows_more(t->rows, (uint64_t)(row - t->rows->rows), &more);
  return more;
}

/* ---- values ---- */

static void put_text(table_value *to, const char *text) {
  to->kind = TABLE_VALUE_TEXT;
  to->text = text;
}

static void put_number(table_value *to, table_value_kind kind, uint64_t number) {
  to->kind = kind;
  to->number = number;
}

static void put_share(table_value *to, uint64_t part, uint64_t whole) {
  put_number(to, TABLE_VALUE_SHARE, part);
  to->whole = whole;
}

static void put_bytes(table_value *to, int64_t bytes) {
  to->kind = TABLE_VALUE_BYTES;
  to->bytes = bytes;
}

/* Threads are numbered through all traces. Calls without durations are read from what a process
   prints: then the fiber is that process, and its name says all. */
static void put_thread(const prof_i_table *t, const prof_row *row, table_value *to) {
  uint32_t index = row->thread;
  prof_trace_thread thread = {.size = sizeof thread};
  size_t i = 0;
  for (; i < t->trace_count; i++) {
    const uint32_t here = prof_i_table_info(t->traces[i]).thread_count;
    if (index < here) break;
    index -= here;
  }
  if (i == t->trace_count || prof_trace_thread_get(t->traces[i], index, &thread) != PROF_OK) return;
  put_text(to, to->room);
  const uint64_t number = thread.is_fiber ? thread.tid - PROF_I_TID_OF_FIBERS : thread.tid;
  if (thread.is_fiber && prof_i_table_lacks_durations(t, row))
    snprintf(to->room, sizeof to->room, "%s", thread.name);
  else
    snprintf(to->room, sizeof to->room, "%s (%s%llu)", thread.name, thread.is_fiber ? "fiber " : "",
             (unsigned long long)number);
}

/* Empty: not known, or the process is no rank. */
static void put_rank(int32_t rank, table_value *to) {
  if (rank < 0) return;
  to->kind = TABLE_VALUE_COUNT;
  to->number = (uint32_t)rank;
}

/* "rank 0, python (4711)", the rank if it is known; "process 4711" without a name; only the name if
   the import made the number. */
static void put_process(const prof_i_table *t, const prof_row *row, table_value *to) {
  const prof_row_more more = prof_i_table_row_more(t, row);
  const bool has_name = more.process_name[0] != '\0', has_number = more.process_pid >= 0;
  char rank[32] = "";
  if (more.process_rank >= 0) snprintf(rank, sizeof rank, "rank %d, ", more.process_rank);
  if (!has_number) {
    put_text(to, has_name ? more.process_name : "unnamed process");
    return;
  }
  put_text(to, to->room);
  snprintf(to->room, sizeof to->room, has_name ? "%s%.100s (%lld)" : "%s%.100sprocess %lld", rank,
           more.process_name, (long long)more.process_pid);
}

/* To the nearest ns. 0 of none. */
static uint64_t rounded_mean(uint64_t ns, uint64_t count) {
  if (count == 0) return 0;
  return ns / count + (ns % count > (count - 1) / 2);
}

/* Device work that belongs to no host scope: how often it ran there, as torch.profiler counts
   kernels. */
static uint64_t row_calls(const prof_row *row) {
  return row->calls_count ? row->calls_count : row->device_count;
}

bool prof_i_table_net_differs(uint64_t ns, uint64_t net_ns) {
  return (double)net_ns < 0.98 * (double)ns;
}

/* Of columns that need prof_row_more. */
static void put_more(const prof_i_table *t, const prof_row *row, table_column which,
                     table_value *to) {
  const prof_row_more more = prof_i_table_row_more(t, row);
  if (which == COLUMN_SELF_NET) {
    put_number(to, TABLE_VALUE_TIME, more.self_net_ns);
  } else if (which == COLUMN_TOTAL_NET) {
    put_number(to, TABLE_VALUE_TIME, more.total_net_ns);
  } else if (which == COLUMN_MEAN) {
    put_number(to, TABLE_VALUE_TIME, rounded_mean(more.calls_ns, row->calls_count));
  } else if (which == COLUMN_DEVICE_MEAN) {
    put_number(to, TABLE_VALUE_TIME, rounded_mean(more.calls_device_ns, row_calls(row)));
  } else if (which == COLUMN_SKIPPED) {
    put_number(to, TABLE_VALUE_COUNT, more.skipped_count);
  } else if (which == COLUMN_OPEN) {
    put_number(to, TABLE_VALUE_COUNT, more.open_count);
  } else if (which == COLUMN_OPEN_TIME) {
    if (more.open_count) put_number(to, TABLE_VALUE_TIME, more.open_ns);
  } else if (*more.file) {
    put_number(to, TABLE_VALUE_PLACE, more.line);
    to->text = more.file;
  }
}

void prof_i_table_value(const prof_i_table *t, const prof_row *row, table_column which,
                        table_value *to) {
  to->kind = TABLE_VALUE_NONE;
  if (prof_i_table_column_is_duration(which) && prof_i_table_lacks_durations(t, row)) {
    to->kind = TABLE_VALUE_UNKNOWN;
    return;
  }
  switch (which) {
    case COLUMN_NAME:
      put_text(to, row->name);
      break;
    case COLUMN_CATEGORY:
      put_text(to, row->category);
      break;
    case COLUMN_ARG:
      put_text(to, prof_i_rows_arg(t->rows, (uint64_t)(row - t->rows->rows)));
      break;
    case COLUMN_SHAPE:
      put_text(to, row->shape);
      break;
    case COLUMN_STACK:
      put_text(to, row->stack);
      break;
    case COLUMN_PROCESS:
      put_process(t, row, to);
      break;
    case COLUMN_RANK:
      put_rank(prof_i_table_row_more(t, row).process_rank, to);
      break;
    case COLUMN_THREAD:
      put_thread(t, row, to);
      break;
    case COLUMN_DEVICE:
      put_text(to, to->room);
      prof_i_put_device(to->room, sizeof to->room, row->device);
      break;
    case COLUMN_SELF_SHARE:
      put_share(to, row->self_ns, t->rows->all_self_ns);
      break;
    case COLUMN_SELF:
      put_number(to, TABLE_VALUE_TIME, row->self_ns);
      break;
    case COLUMN_TOTAL_SHARE:
      if (prof_i_table_has_total_share(t, row)) put_share(to, row->total_ns, t->rows->all_self_ns);
      break;
    case COLUMN_TOTAL:
      put_number(to, TABLE_VALUE_TIME, row->total_ns);
      break;
    case COLUMN_MEDIAN:
      put_number(to, TABLE_VALUE_TIME, row->median_ns);
      break;
    case COLUMN_P99:
      put_number(to, TABLE_VALUE_TIME, row->p99_ns);
      break;
    case COLUMN_MAX:
      put_number(to, TABLE_VALUE_TIME, row->max_ns);
      break;
    case COLUMN_SELF_DEVICE_TIME:
      put_number(to, TABLE_VALUE_TIME, row->self_device_ns);
      break;
    case COLUMN_SELF_DEVICE_SHARE:
      put_share(to, row->self_device_ns, t->rows->total_self_device_ns);
      break;
    case COLUMN_DEVICE_TIME:
      put_number(to, TABLE_VALUE_TIME, row->device_total_ns);
      break;
    case COLUMN_MEMORY:
      put_bytes(to, row->memory_bytes);
      break;
    case COLUMN_SELF_MEMORY:
      put_bytes(to, row->self_memory_bytes);
      break;
    case COLUMN_DEVICE_MEMORY:
      put_bytes(to, row->device_memory_bytes);
      break;
    case COLUMN_SELF_DEVICE_MEMORY:
      put_bytes(to, row->self_device_memory_bytes);
      break;
    case COLUMN_CALLS:
      put_number(to, TABLE_VALUE_COUNT, row_calls(row));
      break;
    case COLUMN_SELF_NET:
    case COLUMN_TOTAL_NET:
    case COLUMN_MEAN:
    case COLUMN_DEVICE_MEAN:
    case COLUMN_OPEN:
    case COLUMN_OPEN_TIME:
    case COLUMN_SKIPPED:
    case COLUMN_PLACE:
      put_more(t, row, which, to);
      break;
    case COLUMN_COUNT:
      break;
  }
}

/* ---- texts ---- */

/* The last folders of a long path identify it better than the first. */
static size_t put_place(char to[CELL_BYTES], const prof_row_more *more) {
  char tail[32], text[PLACE_BYTES + 1];
  const char *from = more->file, *slash;
  const int bytes =
      snprintf(tail, sizeof tail, ":%u%s", more->line, more->has_more_places ? ", ..." : "");
  const size_t most = PLACE_BYTES - (size_t)bytes, whole = strlen(from);
  if (whole > most) {
    while (strlen(from) > most - 3 && (slash = strchr(from + 1, '/')) != NULL) from = slash;
    if (strlen(from) > most - 3) from += strlen(from) - (most - 3);
    while (((unsigned char)*from & 0xc0) == 0x80) from++; /* no half character */
  }
  snprintf(text, sizeof text, "%s%s%s", from == more->file ? "" : "...", from, tail);
  return prof_i_sanitize_name(to, text);
}

/* Cells of these columns are empty rather than 0, and a net time rather than equal to the previous
   column. */
static bool cell_is_empty(const prof_row *row, table_column which, const table_value *value) {
  if (which == COLUMN_OPEN || which == COLUMN_SKIPPED) return value->number == 0;
  if (value->kind != TABLE_VALUE_TIME) return false;
  return (which == COLUMN_SELF_NET && !prof_i_table_net_differs(row->self_ns, value->number)) ||
         (which == COLUMN_TOTAL_NET && !prof_i_table_net_differs(row->total_ns, value->number));
}

size_t prof_i_table_cell(const prof_i_table *t, const prof_row *row, table_column which,
                         char to[CELL_BYTES]) {
  table_value value;
  int count = 0;
  to[0] = '\0';
  prof_i_table_value(t, row, which, &value);
  if (cell_is_empty(row, which, &value)) return 0;
  switch (value.kind) {
    case TABLE_VALUE_NONE:
      break;
    case TABLE_VALUE_UNKNOWN:
      count = snprintf(to, CELL_BYTES, "--");
      break;
    case TABLE_VALUE_TEXT:
      return prof_i_sanitize_name(to,
                                  which == COLUMN_NAME && !*value.text ? "(unnamed)" : value.text);
    case TABLE_VALUE_PLACE: {
      const prof_row_more more = prof_i_table_row_more(t, row);
      return put_place(to, &more);
    }
    case TABLE_VALUE_SHARE:
      count = prof_i_put_share(to, CELL_BYTES, value.number, value.whole);
      break;
    case TABLE_VALUE_TIME:
      count = prof_i_put_time(to, CELL_BYTES, value.number, t->time_unit);
      break;
    case TABLE_VALUE_BYTES:
      count = prof_i_put_bytes(to, CELL_BYTES, value.bytes);
      break;
    case TABLE_VALUE_COUNT:
      count = snprintf(to, CELL_BYTES, "%llu", (unsigned long long)value.number);
      break;
  }
  return count > 0 ? (size_t)count : 0;
}
