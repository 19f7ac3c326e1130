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

/* ---- texts of values ---- */

static void put_text(table_value *to, const char *text) {
  to->kind = TABLE_VALUE_TEXT;
  to->text = text;
}

void prof_i_thread_text(const prof_trace_thread *thread, char to[PROF_I_PLACE_TEXT_BYTES]) {
  const uint64_t number = thread->is_fiber ? thread->tid - PROF_I_TID_OF_FIBERS : thread->tid;
  snprintf(to, PROF_I_PLACE_TEXT_BYTES, "%s (%s%llu)", thread->name,
           thread->is_fiber ? "fiber " : "", (unsigned long long)number);
}

void prof_i_process_text(const char *name, int64_t pid, int32_t rank_number,
                         char to[PROF_I_PLACE_TEXT_BYTES]) {
  char rank[32] = "";
  if (rank_number >= 0) snprintf(rank, sizeof rank, "rank %d, ", (int)rank_number);
  if (pid < 0)
    snprintf(to, PROF_I_PLACE_TEXT_BYTES, "%s", *name ? name : "unnamed process");
  else
    snprintf(to, PROF_I_PLACE_TEXT_BYTES, *name ? "%s%.100s (%lld)" : "%s%.100sprocess %lld", rank,
             name, (long long)pid);
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
  if (thread.is_fiber && prof_i_table_lacks_durations(t, row))
    snprintf(to->room, sizeof to->room, "%s", thread.name);
  else
    prof_i_thread_text(&thread, to->room);
}

static void put_process(const prof_i_table *t, const prof_row *row, table_value *to) {
  const prof_row_more more = prof_i_table_row_more(t, row);
  if (more.process_pid < 0 && more.process_name[0] != '\0') { /* of any length */
    put_text(to, more.process_name);
    return;
  }
  put_text(to, to->room);
  prof_i_process_text(more.process_name, more.process_pid, more.process_rank, to->room);
}

static void put_device(const prof_row *row, table_value *to) {
  put_text(to, to->room);
  prof_i_put_device(to->room, sizeof to->room, row->device);
}

static void put_source_place(const prof_i_table *t, const prof_row *row, table_value *to) {
  const prof_row_more more = prof_i_table_row_more(t, row);
  if (!*more.file) return;
  to->kind = TABLE_VALUE_PLACE;
  to->text = more.file;
  to->number = more.line;
}

static void put_row_text(const prof_i_table *t, const prof_row *row, table_column which,
                         table_value *to) {
  if (which == COLUMN_NAME) put_text(to, row->name);
  if (which == COLUMN_CATEGORY) put_text(to, row->category);
  if (which == COLUMN_ARG) put_text(to, prof_i_rows_arg(t->rows, (uint64_t)(row - t->rows->rows)));
  if (which == COLUMN_SHAPE) put_text(to, row->shape);
  if (which == COLUMN_STACK) put_text(to, row->stack);
  if (which == COLUMN_PROCESS) put_process(t, row, to);
  if (which == COLUMN_THREAD) put_thread(t, row, to);
  if (which == COLUMN_DEVICE) put_device(row, to);
  if (which == COLUMN_PLACE) put_source_place(t, row, to);
}

/* ---- numbers of values ---- */

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

static uint64_t row_time_ns(const prof_i_table *t, const prof_row *row, table_column which) {
  if (which == COLUMN_SELF) return row->self_ns;
  if (which == COLUMN_TOTAL) return row->total_ns;
  if (which == COLUMN_MEDIAN) return row->median_ns;
  if (which == COLUMN_P99) return row->p99_ns;
  if (which == COLUMN_MAX) return row->max_ns;
  if (which == COLUMN_SELF_DEVICE_TIME) return row->self_device_ns;
  if (which == COLUMN_DEVICE_TIME) return row->device_total_ns;
  const prof_row_more more = prof_i_table_row_more(t, row);
  if (which == COLUMN_SELF_NET) return more.self_net_ns;
  if (which == COLUMN_TOTAL_NET) return more.total_net_ns;
  if (which == COLUMN_MEAN) return rounded_mean(more.calls_ns, row->calls_count);
  if (which == COLUMN_DEVICE_MEAN) return rounded_mean(more.calls_device_ns, row_calls(row));
  return more.open_ns; /* COLUMN_OPEN_TIME */
}

static uint64_t row_count(const prof_i_table *t, const prof_row *row, table_column which) {
  if (which == COLUMN_CALLS) return row_calls(row);
  const prof_row_more more = prof_i_table_row_more(t, row);
  if (which == COLUMN_RANK) return (uint32_t)more.process_rank;
  return which == COLUMN_OPEN ? more.open_count : more.skipped_count;
}

static int64_t row_bytes(const prof_row *row, table_column which) {
  if (which == COLUMN_MEMORY) return row->memory_bytes;
  if (which == COLUMN_SELF_MEMORY) return row->self_memory_bytes;
  if (which == COLUMN_DEVICE_MEMORY) return row->device_memory_bytes;
  return row->self_device_memory_bytes; /* COLUMN_SELF_DEVICE_MEMORY */
}

static uint64_t row_share_part(const prof_row *row, table_column which) {
  if (which == COLUMN_SELF_DEVICE_SHARE) return row->self_device_ns;
  return which == COLUMN_SELF_SHARE ? row->self_ns : row->total_ns;
}

/* ---- values ---- */

/* False: a number that does not exist, or is not known. */
static bool row_has_number(const prof_i_table *t, const prof_row *row, table_column which) {
  if (which == COLUMN_TOTAL_SHARE) return prof_i_table_has_total_share(t, row);
  if (which == COLUMN_RANK) return prof_i_table_row_more(t, row).process_rank >= 0;
  if (which == COLUMN_OPEN_TIME) return prof_i_table_row_more(t, row).open_count > 0;
  return true;
}

void prof_i_table_value(const prof_i_table *t, const prof_row *row, table_column which,
                        table_value *to) {
  const table_value_kind kind = prof_i_table_columns[which].value;
  to->kind = TABLE_VALUE_NONE;
  if (kind == TABLE_VALUE_TEXT) {
    put_row_text(t, row, which, to);
    return;
  }
  if (prof_i_table_column_is_duration(which) && prof_i_table_lacks_durations(t, row)) {
    to->kind = TABLE_VALUE_UNKNOWN;
    return;
  }
  if (!row_has_number(t, row, which)) return;
  to->kind = kind;
  if (kind == TABLE_VALUE_TIME) to->number = row_time_ns(t, row, which);
  if (kind == TABLE_VALUE_COUNT) to->number = row_count(t, row, which);
  if (kind == TABLE_VALUE_BYTES) to->bytes = row_bytes(row, which);
  if (kind == TABLE_VALUE_SHARE) {
    to->number = row_share_part(row, which);
    to->whole =
        which == COLUMN_SELF_DEVICE_SHARE ? t->rows->total_self_device_ns : t->rows->all_self_ns;
  }
}

/* ---- texts of cells ---- */

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

/* A text of any length. */
static prof_i_text put_name(prof_i_table *t, const char *text, char to[CELL_BYTES]) {
  const size_t bytes = strlen(text);
  if (bytes < CELL_BYTES / 8) return (prof_i_text){to, prof_i_sanitize_name(to, text)};
  t->long_cell.count = 0;
  prof_i_text_buffer_append_plain(&t->long_cell, text, bytes);
  t->page.is_out_of_memory |= t->long_cell.is_out_of_memory;
  return (prof_i_text){t->long_cell.text ? t->long_cell.text : "", t->long_cell.count};
}

prof_i_text prof_i_table_cell(prof_i_table *t, const prof_row *row, table_column which,
                              char to[CELL_BYTES]) {
  table_value value;
  int count = 0;
  to[0] = '\0';
  prof_i_table_value(t, row, which, &value);
  if (cell_is_empty(row, which, &value)) return (prof_i_text){to, 0};
  switch (value.kind) {
    case TABLE_VALUE_NONE:
      break;
    case TABLE_VALUE_UNKNOWN:
      count = snprintf(to, CELL_BYTES, "--");
      break;
    case TABLE_VALUE_TEXT:
      return put_name(t, which == COLUMN_NAME && !*value.text ? "(unnamed)" : value.text, to);
    case TABLE_VALUE_PLACE: {
      const prof_row_more more = prof_i_table_row_more(t, row);
      return (prof_i_text){to, put_place(to, &more)};
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
  return (prof_i_text){to, count > 0 ? (size_t)count : 0};
}
