/* Aggregates as a text table, in the layout of torch.profiler. Texts are left-aligned, numbers
   right-aligned. Shares are of the sum of all self times, also of groups without a row. Every cell
   is made twice, first to be measured. No part of a name reaches the terminal as a control code. */
#include <prof/profiler.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../analysis/internal.h"
#include "../base/log.h"
#include "../base/port.h"
#include "../base/reentry.h"
#include "../base/sanitize.h"
#include "../base/text_buffer.h"
#include "../base/this_thread.h"
#include "../base/units.h"
#include "../format/layout.h"
#include "../reader/walk.h"
#include "table.h"

enum { PLACE_BYTES = 40 };

/* title, kind, group bit that shows it (0: always), most columns wide, and keep: where a terminal
   has no room, columns of the least number are left out first; 0: never */
/* clang-format off */
#define COLUMN_LIST(X) \
  X("Name", NAME, PROF_GROUP_NAME, 55, 0) \
  X("Category", CATEGORY, PROF_GROUP_CATEGORY, 24, 0) \
  X("Device", DEVICE, PROF_GROUP_DEVICE, 24, 0) \
  X("Process", PROCESS, PROF_GROUP_PROCESS, 48, 0) \
  X("Thread", THREAD, PROF_GROUP_THREAD, 32, 0) \
  X("Self %", SELF_SHARE, 0, 12, 14) \
  X("Self", SELF, 0, 24, 0) \
  X("Self Net", SELF_NET, 0, 24, 10) \
  X("Total %", TOTAL_SHARE, 0, 12, 4) \
  X("Total", TOTAL, 0, 24, 0) \
  X("Total Net", TOTAL_NET, 0, 24, 11) \
  X("Mean", MEAN, 0, 24, 8) \
  X("Median", MEDIAN, 0, 24, 2) \
  X("p99", P99, 0, 24, 1) \
  X("Max", MAX, 0, 24, 3) \
  X("Self Device", SELF_DEVICE_TIME, 0, 24, 17) \
  X("Self Device %", SELF_DEVICE_SHARE, 0, 14, 6) \
  X("Device Total", DEVICE_TIME, 0, 24, 18) \
  X("Device Mean", DEVICE_MEAN, 0, 24, 7) \
  X("CPU Mem", MEMORY, 0, 24, 15) \
  X("Self CPU Mem", SELF_MEMORY, 0, 24, 9) \
  X("Device Mem", DEVICE_MEMORY, 0, 24, 16) \
  X("Self Device Mem", SELF_DEVICE_MEMORY, 0, 24, 13) \
  X("Calls", CALLS, 0, 24, 0) \
  X("Open", OPEN, 0, 24, 20) \
  X("Open for", OPEN_TIME, 0, 24, 19) \
  X("Skipped", SKIPPED, 0, 24, 12) \
  X("Location", PLACE, PROF_GROUP_NAME, PLACE_BYTES, 5) \
  X("Input Shapes", SHAPE, PROF_GROUP_SHAPE, 80, 0) \
  X("Source Location", STACK, PROF_GROUP_STACK | PROF_GROUP_SCOPES, 75, 0)
/* The last: rows go on below it. */
/* clang-format on */

typedef enum table_column {
#define KIND(title, kind, group, width, keep) COLUMN_##kind,
  COLUMN_LIST(KIND)
#undef KIND
      COLUMN_COUNT
} table_column;

static const prof_i_table_column columns[COLUMN_COUNT] = {
#define COLUMN(title, kind, group, width, keep) {title, group, keep, width},
    COLUMN_LIST(COLUMN)
#undef COLUMN
};

/* FRAME_BYTES: how much of a text prof_i_sanitize_name() reads. */
enum {
  CELL_BYTES = PROF_I_SANITIZED_NAME_BYTES,
  GAP = PROF_I_TABLE_GAP,
  FRAME_BYTES = CELL_BYTES / 8 - 1
};

typedef prof_i_table table;
_Static_assert((int)COLUMN_COUNT <= (int)PROF_I_TABLE_COLUMNS_MAX,
               "widths has room for each column");

/* ---- cells ---- */

/* Threads are numbered through all traces. Calls without durations are read from what a process
   prints: then the fiber is that process, and its name says all. */
static size_t cell_put_thread(const table *t, char *to, const prof_row *row) {
  uint32_t index = row->thread;
  prof_trace_thread thread = {.size = sizeof thread};
  char text[96];
  size_t i = 0;
  for (; i < t->trace_count; i++) {
    const uint32_t here = prof_i_table_info(t->traces[i]).thread_count;
    if (index < here) break;
    index -= here;
  }
  if (i == t->trace_count || prof_trace_thread_get(t->traces[i], index, &thread) != PROF_OK)
    return 0;
  if (thread.is_fiber && prof_i_table_lacks_durations(t, row))
    return prof_i_sanitize_name(to, thread.name);
  const uint64_t number = thread.is_fiber ? thread.tid - PROF_I_TID_OF_FIBERS : thread.tid;
  snprintf(text, sizeof text, "%s (%s%llu)", thread.name, thread.is_fiber ? "fiber " : "",
           (unsigned long long)number);
  return prof_i_sanitize_name(to, text);
}

/* Device work that belongs to no host scope: how often it ran there, as torch.profiler counts
   kernels. */
static uint64_t row_calls(const prof_row *row) {
  return row->calls_count ? row->calls_count : row->device_count;
}

static prof_row_more row_more(const table *t, const prof_row *row) {
  prof_row_more more = {.size = sizeof more};
  prof_rows_more(t->rows, (uint64_t)(row - t->rows->rows), &more);
  return more;
}

/* "rank 0, python (4711)", the rank if it is known; "process 4711" without a name; only the name if
   the import made the number. */
static size_t cell_put_process(const table *t, const prof_row *row, char *to) {
  const prof_row_more more = row_more(t, row);
  const bool has_name = more.process_name[0] != '\0', has_number = more.process_pid >= 0;
  char text[CELL_BYTES], rank[32] = "";
  if (more.process_rank >= 0) snprintf(rank, sizeof rank, "rank %d, ", more.process_rank);
  if (!has_number)
    return prof_i_sanitize_name(to, has_name ? more.process_name : "unnamed process");
  snprintf(text, sizeof text, has_name ? "%s%.100s (%lld)" : "%s%.100sprocess %lld", rank,
           more.process_name, (long long)more.process_pid);
  return prof_i_sanitize_name(to, text);
}

/* To the nearest ns. 0 of none. */
static uint64_t rounded_mean(uint64_t ns, uint64_t count) {
  if (count == 0) return 0;
  return ns / count + (ns % count > (count - 1) / 2);
}

/* The last folders of a long path identify it better than the first. */
static size_t cell_put_place(char to[CELL_BYTES], const prof_row_more *more) {
  char tail[32], text[PLACE_BYTES + 1];
  const char *from = more->file, *slash;
  if (!*from) return 0;
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

/* More than 2 % of it is the cost of scopes inside. */
static bool net_differs(uint64_t ns, uint64_t net_ns) { return (double)net_ns < 0.98 * (double)ns; }

/* Empty if it is equal to the previous column. */
static int cell_put_net(const table *t, const prof_row *row, table_column which, char *to) {
  const prof_row_more more = row_more(t, row);
  const uint64_t ns = which == COLUMN_SELF_NET ? row->self_ns : row->total_ns;
  const uint64_t net_ns = which == COLUMN_SELF_NET ? more.self_net_ns : more.total_net_ns;
  return net_differs(ns, net_ns) ? prof_i_put_time(to, CELL_BYTES, net_ns, t->time_unit) : 0;
}

static int cell_put_count(char *to, size_t room, uint64_t count) {
  return snprintf(to, room, "%llu", (unsigned long long)count);
}

static bool column_is_duration(table_column which) {
  return which >= COLUMN_SELF_SHARE && which <= COLUMN_MAX;
}

static size_t make_cell(const table *t, const prof_row *row, table_column which,
                        char to[CELL_BYTES]) {
  int count = 0;
  if (column_is_duration(which) && prof_i_table_lacks_durations(t, row))
    return (size_t)snprintf(to, CELL_BYTES, "--");
  switch (which) {
    case COLUMN_NAME:
      return prof_i_sanitize_name(to, row->name[0] ? row->name : "(unnamed)");
    case COLUMN_CATEGORY:
      return prof_i_sanitize_name(to, row->category);
    case COLUMN_SHAPE:
      return prof_i_sanitize_name(to, row->shape);
    case COLUMN_STACK:
      break; /* table_put_frame() */
    case COLUMN_PROCESS:
      return cell_put_process(t, row, to);
    case COLUMN_THREAD:
      return cell_put_thread(t, to, row);
    case COLUMN_DEVICE:
      count = prof_i_put_device(to, CELL_BYTES, row->device);
      break;
    case COLUMN_SELF_SHARE:
      count = prof_i_put_share(to, CELL_BYTES, row->self_ns, t->rows->all_self_ns);
      break;
    case COLUMN_SELF:
      count = prof_i_put_time(to, CELL_BYTES, row->self_ns, t->time_unit);
      break;
    case COLUMN_SELF_NET:
    case COLUMN_TOTAL_NET:
      count = cell_put_net(t, row, which, to);
      break;
    case COLUMN_TOTAL_SHARE:
      if (prof_i_table_has_total_share(t, row))
        count = prof_i_put_share(to, CELL_BYTES, row->total_ns, t->rows->all_self_ns);
      break;
    case COLUMN_TOTAL:
      count = prof_i_put_time(to, CELL_BYTES, row->total_ns, t->time_unit);
      break;
    case COLUMN_MEAN:
      count = prof_i_put_time(
          to, CELL_BYTES, rounded_mean(row_more(t, row).calls_ns, row->calls_count), t->time_unit);
      break;
    case COLUMN_MEDIAN:
      count = prof_i_put_time(to, CELL_BYTES, row->median_ns, t->time_unit);
      break;
    case COLUMN_P99:
      count = prof_i_put_time(to, CELL_BYTES, row->p99_ns, t->time_unit);
      break;
    case COLUMN_MAX:
      count = prof_i_put_time(to, CELL_BYTES, row->max_ns, t->time_unit);
      break;
    case COLUMN_SELF_DEVICE_TIME:
      count = prof_i_put_time(to, CELL_BYTES, row->self_device_ns, t->time_unit);
      break;
    case COLUMN_SELF_DEVICE_SHARE:
      count = prof_i_put_share(to, CELL_BYTES, row->self_device_ns, t->rows->total_self_device_ns);
      break;
    case COLUMN_DEVICE_TIME:
      count = prof_i_put_time(to, CELL_BYTES, row->device_total_ns, t->time_unit);
      break;
    case COLUMN_DEVICE_MEAN:
      count = prof_i_put_time(to, CELL_BYTES,
                              rounded_mean(row_more(t, row).calls_device_ns, row_calls(row)),
                              t->time_unit);
      break;
    case COLUMN_MEMORY:
      count = prof_i_put_bytes(to, CELL_BYTES, row->memory_bytes);
      break;
    case COLUMN_SELF_MEMORY:
      count = prof_i_put_bytes(to, CELL_BYTES, row->self_memory_bytes);
      break;
    case COLUMN_DEVICE_MEMORY:
      count = prof_i_put_bytes(to, CELL_BYTES, row->device_memory_bytes);
      break;
    case COLUMN_SELF_DEVICE_MEMORY:
      count = prof_i_put_bytes(to, CELL_BYTES, row->self_device_memory_bytes);
      break;
    case COLUMN_CALLS:
      count = cell_put_count(to, CELL_BYTES, row_calls(row));
      break;
    case COLUMN_OPEN:
    case COLUMN_OPEN_TIME:
    case COLUMN_SKIPPED:
    case COLUMN_PLACE: {
      const prof_row_more more = row_more(t, row);
      if (which == COLUMN_PLACE) return cell_put_place(to, &more);
      if (which == COLUMN_SKIPPED) {
        if (more.skipped_count) count = cell_put_count(to, CELL_BYTES, more.skipped_count);
        break;
      }
      if (!more.open_count) break;
      if (which == COLUMN_OPEN)
        count = cell_put_count(to, CELL_BYTES, more.open_count);
      else
        count = prof_i_put_time(to, CELL_BYTES, more.open_ns, t->time_unit);
      break;
    }
    case COLUMN_COUNT:
      break;
  }
  return count > 0 ? (size_t)count : 0;
}

/* ---- stacks ---- */

/* Takes the frame at *at, and moves *at behind it. The end of a long path is kept. */
static size_t next_frame(const char **at, char to[CELL_BYTES]) {
  const char *const end = *at + strcspn(*at, ";");
  const char *from = *at;
  char frame[FRAME_BYTES + 1] = "...";
  const size_t dots = end - from > FRAME_BYTES ? 3 : 0;
  *at = *end ? end + 1 : end;
  if (dots) {
    from = end - (FRAME_BYTES - dots);
    while (from < end && ((unsigned char)*from & 0xc0) == 0x80) from++; /* no half character */
  }
  memcpy(frame + dots, from, (size_t)(end - from));
  frame[dots + (size_t)(end - from)] = '\0';
  return prof_i_sanitize_name(to, frame);
}

static size_t frame_width(const char *stack) {
  char cell[CELL_BYTES];
  size_t most = 0;
  while (*stack) {
    const size_t width = prof_i_display_width(cell, next_frame(&stack, cell));
    if (width > most) most = width;
  }
  return most;
}

/* ---- the table ---- */

static bool table_has_places(const table *t) {
  bool has_any = false;
  for (uint64_t i = 0; i < t->rows->row_count; i++)
    has_any |= *row_more(t, &t->rows->rows[i]).file != '\0';
  return has_any;
}

static bool column_has_net(const table *t, table_column c) {
  for (uint64_t i = 0; i < t->rows->row_count; i++) {
    const prof_row *const row = &t->rows->rows[i];
    const prof_row_more more = row_more(t, row);
    const bool is_self = c == COLUMN_SELF_NET;
    if (net_differs(is_self ? row->self_ns : row->total_ns,
                    is_self ? more.self_net_ns : more.total_net_ns))
      return true;
  }
  return false;
}

/* A pair of columns is left out if all its rows are 0 B: the pools' calls were outside of
   scopes. */
static bool column_is_shown(const table *t, table_column c) {
  const prof_rows *const rows = t->rows;
  if (c == COLUMN_OPEN || c == COLUMN_OPEN_TIME) return rows->open_count != 0;
  if (c == COLUMN_SKIPPED) return rows->skipped_count != 0;
  if (c == COLUMN_PLACE) return table_has_places(t);
  if (c == COLUMN_SELF_NET || c == COLUMN_TOTAL_NET) return column_has_net(t, c);
  if (column_is_duration(c)) return prof_i_table_has_durations(t);
  if (c >= COLUMN_SELF_DEVICE_TIME && c <= COLUMN_DEVICE_MEAN)
    return rows->total_self_device_ns != 0;
  const bool is_host = c == COLUMN_MEMORY || c == COLUMN_SELF_MEMORY,
             is_device = c == COLUMN_DEVICE_MEMORY || c == COLUMN_SELF_DEVICE_MEMORY;
  if (!is_host && !is_device) return true;
  for (uint64_t i = 0; i < rows->row_count; i++) {
    const prof_row *const row = &rows->rows[i];
    if (is_host ? row->memory_bytes || row->self_memory_bytes
                : row->device_memory_bytes || row->self_device_memory_bytes)
      return true;
  }
  return false;
}

static const char *column_title(const table *t, table_column c) {
  return c == COLUMN_STACK && t->group & PROF_GROUP_SCOPES ? "Called From" : columns[c].title;
}

static void measure_columns(table *t) {
  char cell[CELL_BYTES];
  for (table_column c = 0; c < COLUMN_COUNT; c++) {
    if (columns[c].group && !(columns[c].group & t->group)) continue;
    if (!column_is_shown(t, c)) continue;
    t->widths[c] = strlen(column_title(t, c));
    for (uint64_t i = 0; i < t->rows->row_count; i++) {
      const prof_row *const row = &t->rows->rows[i];
      const size_t width = c == COLUMN_STACK
                               ? frame_width(row->stack)
                               : prof_i_display_width(cell, make_cell(t, row, c, cell));
      if (width > t->widths[c]) t->widths[c] = width;
    }
    if (t->widths[c] > columns[c].width_max) t->widths[c] = columns[c].width_max;
  }
}

/* The bytes of a cell's end that take at most so many columns. */
static size_t cell_tail_bytes(const char *cell, size_t count, size_t width, size_t most) {
  size_t from = prof_i_display_cut(cell, count, width - most);
  while (prof_i_display_width(cell + from, count - from) > most) /* a wide one is across */
    from += prof_i_display_cut(cell + from, count - from, 2);
  return count - from;
}

/* One cell, cut with "..." when it is too wide: on a terminal in the middle, because the ends of
   long names differ. Groups are texts: to the left. */
static void table_put_cell(table *t, table_column c, const char *cell, size_t count,
                           bool *is_first) {
  size_t width = prof_i_display_width(cell, count), end = 0;
  const char *const behind = cell + count, *dots = "";
  if (width > t->widths[c]) {
    const size_t room = t->widths[c] - 3;
    if (t->width) end = cell_tail_bytes(cell, count, width, room / 2);
    const size_t end_width = prof_i_display_width(behind - end, end);
    count = prof_i_display_cut(cell, count, room - end_width);
    width = prof_i_display_width(cell, count) + 3 + end_width;
    dots = "...";
  }
  if (!*is_first) prof_i_text_buffer_repeat(&t->page, ' ', GAP);
  *is_first = false;
  const size_t blanks = t->widths[c] - width;
  const bool is_text = columns[c].group != 0;
  if (!is_text) prof_i_text_buffer_repeat(&t->page, ' ', blanks);
  prof_i_text_buffer_append(&t->page, cell, count);
  prof_i_text_buffer_append_text(&t->page, dots);
  prof_i_text_buffer_append(&t->page, behind - end, end);
  if (is_text) prof_i_text_buffer_repeat(&t->page, ' ', blanks);
}

/* The innermost frame left, cut at its front if it is too wide. */
static void table_put_frame(table *t, const char **stack, bool *is_first) {
  char cell[CELL_BYTES];
  const size_t count = next_frame(stack, cell), width = prof_i_display_width(cell, count),
               most = t->widths[COLUMN_STACK];
  if (width <= most) {
    table_put_cell(t, COLUMN_STACK, cell, count, is_first);
    return;
  }
  size_t left_out = width - (most - 3), from = prof_i_display_cut(cell, count, left_out);
  /* one of two columns stands across */
  while (prof_i_display_width(cell + from, count - from) > most - 3)
    from = prof_i_display_cut(cell, count, ++left_out);
  char shown[CELL_BYTES + 3] = "...";
  memcpy(shown + 3, cell + from, count - from);
  table_put_cell(t, COLUMN_STACK, shown, 3 + count - from, is_first);
}

static void table_put_rule(table *t) {
  bool is_first = true;
  for (table_column c = 0; c < COLUMN_COUNT; c++) {
    if (!t->widths[c]) continue;
    if (!is_first) prof_i_text_buffer_repeat(&t->page, ' ', GAP);
    is_first = false;
    prof_i_text_buffer_repeat(&t->page, '-', t->widths[c]);
  }
  prof_i_text_buffer_end_line(&t->page);
}

static void table_put_titles(table *t) {
  bool is_first = true;
  table_put_rule(t);
  for (table_column c = 0; c < COLUMN_COUNT; c++)
    if (t->widths[c])
      table_put_cell(t, c, column_title(t, c), strlen(column_title(t, c)), &is_first);
  prof_i_text_buffer_end_line(&t->page);
  table_put_rule(t);
}

/* Further frames follow below the first, and then an empty line, as in torch.profiler's table. */
static void table_put_frames(table *t, const char *stack) {
  while (*stack) {
    bool is_first = true;
    for (table_column c = 0; c < COLUMN_STACK; c++)
      if (t->widths[c]) table_put_cell(t, c, "", 0, &is_first);
    table_put_frame(t, &stack, &is_first);
    prof_i_text_buffer_end_line(&t->page);
  }
  prof_i_text_buffer_end_line(&t->page);
}

static void table_put_rows(table *t) {
  char cell[CELL_BYTES];
  for (uint64_t i = 0; i < t->rows->row_count; i++) {
    const prof_row *const row = &t->rows->rows[i];
    const char *stack = row->stack;
    bool is_first = true;
    for (table_column c = 0; c < COLUMN_STACK; c++)
      if (t->widths[c]) table_put_cell(t, c, cell, make_cell(t, row, c, cell), &is_first);
    if (t->widths[COLUMN_STACK]) table_put_frame(t, &stack, &is_first);
    prof_i_text_buffer_end_line(&t->page);
    if (t->widths[COLUMN_STACK]) table_put_frames(t, stack);
  }
  table_put_rule(t);
}

/* The column that orders the rows. */
static table_column sorted_by(uint32_t sort) {
  switch ((prof_sort)sort) {
    case PROF_SORT_MEAN:
      return COLUMN_MEAN;
    case PROF_SORT_MAX:
      return COLUMN_MAX;
    case PROF_SORT_MEMORY:
      return COLUMN_MEMORY;
    case PROF_SORT_SELF_MEMORY:
      return COLUMN_SELF_MEMORY;
    case PROF_SORT_DEVICE:
      return COLUMN_DEVICE_TIME;
    case PROF_SORT_SELF_DEVICE:
      return COLUMN_SELF_DEVICE_TIME;
    case PROF_SORT_TOTAL:
    case PROF_SORT_SELF:
    case PROF_SORT_CALLS:
    case PROF_SORT_NAME:
    case PROF_SORT_FIRST:
      break;
  }
  return COLUMN_TOTAL;
}

int prof_trace_table(const prof_trace *trace, const prof_aggregate_options *options,
                     char **text_out) {
  if (!trace || !text_out)
    return prof_i_fail(PROF_E_INVALID, "prof_trace_table: %s is NULL",
                       trace ? "text_out" : "trace");
  return prof_traces_table(&trace, 1, options, text_out);
}

int prof_traces_table(const prof_trace *const *traces, size_t count,
                      const prof_aggregate_options *options, char **text_out) {
  PROF_I_DEFAULT_FP;
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  PROF_I_INSIDE;
  if (!text_out) return prof_i_fail(PROF_E_INVALID, "prof_traces_table: text_out is NULL");
  prof_rows *rows = NULL;
  int status = prof_i_traces_aggregate(traces, count, options, &rows);
  if (status) return status;
  /* The options were accepted, so their size is valid. */
  const bool has_unit = options && options->size >= offsetof(prof_aggregate_options, time_unit) +
                                                        sizeof options->time_unit;
  const bool has_sort =
      options && options->size >= offsetof(prof_aggregate_options, sort) + sizeof options->sort;
  const bool has_width = options && options->size >= offsetof(prof_aggregate_options, text_width) +
                                                         sizeof options->text_width;
  const uint32_t group =
      options && options->size >= offsetof(prof_aggregate_options, group) + sizeof options->group
          ? options->group
          : 0;
  table t = {.traces = traces,
             .trace_count = count,
             .rows = rows,
             .group = group & ~(uint32_t)PROF_GROUP_KERNEL
                          ? group
                          : group | PROF_GROUP_NAME | PROF_GROUP_CATEGORY,
             .time_unit = has_unit ? options->time_unit : 0,
             .width = has_width ? options->text_width : 0};
  t.has_fibers = prof_i_table_find_fibers(&t);
  measure_columns(&t);
  prof_i_table_fit(&t, columns, COLUMN_COUNT, sorted_by(has_sort ? options->sort : 0));
  table_put_titles(&t);
  table_put_rows(&t);
  prof_i_table_put_hidden(&t, columns, COLUMN_COUNT);
  status = prof_i_table_put_footer(&t);
  prof_i_rows_destroy(rows);
  if (!status && t.page.is_out_of_memory)
    status = prof_i_fail(PROF_E_NO_MEMORY, "no memory for a table of %zu bytes", t.page.count);
  if (status)
    free(t.page.text);
  else
    *text_out = t.page.text;
  return status;
}
