/* Aggregates as a text table, in the layout of torch.profiler. Texts are left-aligned, numbers
   right-aligned. Shares are of the sum of all self times, also of groups without a row. Every cell
   is made twice, first to be measured. No part of a name reaches the terminal as a control code. */
#include <prof/profiler.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../analysis/internal.h"
#include "../base/display.h"
#include "../base/error.h"
#include "../base/port.h"
#include "../base/process.h"
#include "table_columns.h"

/* ---- widths: the table fits into a terminal ---- */

enum { TEXT_WIDTH_MIN = 12, NAME_WIDTH_MIN = 20 };

static size_t table_width(const prof_i_table *t, size_t count) {
  size_t all = 0;
  for (size_t c = 0; c < count; c++)
    if (t->widths[c]) all += t->widths[c] + (all ? PROF_I_TABLE_GAP : 0);
  return all;
}

/* Of numbers it is all. */
static size_t column_least_width(const prof_i_table_column *column, size_t width) {
  const size_t least = column->group & PROF_GROUP_NAME ? NAME_WIDTH_MIN : TEXT_WIDTH_MIN;
  return column->group && width > least ? least : width;
}

/* Columns with the least rank are left out first: those of zeros, then by `keep`. 0: it stays. */
static uint32_t column_rank(const prof_i_table *t, const prof_i_table_column *columns, size_t c,
                            size_t count) {
  if (!(t->zero & 1u << c)) return columns[c].keep ? columns[c].keep + (uint32_t)count : 0;
  return columns[c].keep ? columns[c].keep : (uint32_t)count;
}

/* Shows what has room after all, the most important first. */
static void show_hidden_columns(prof_i_table *t, const prof_i_table_column *columns,
                                const size_t *wanted, size_t count) {
  for (uint32_t rank = 2 * (uint32_t)count; rank > 0; rank--)
    for (size_t c = 0; c < count; c++) {
      const size_t width = column_least_width(&columns[c], wanted[c]);
      if (!(t->left_out & 1u << c) || column_rank(t, columns, c, count) != rank) continue;
      if (table_width(t, count) + PROF_I_TABLE_GAP + width > t->width) continue;
      t->widths[c] = width;
      t->left_out &= ~(1u << c);
    }
}

/* The column to leave out next, or count. */
static size_t least_kept_column(const prof_i_table *t, const prof_i_table_column *columns,
                                size_t count, size_t sorted) {
  size_t least = count;
  for (size_t c = 0; c < count; c++) {
    if (!t->widths[c] || !column_rank(t, columns, c, count) || c == sorted) continue;
    if (columns[c].group & t->group & PROF_I_GROUP_LINE) continue; /* rows are grouped by it */
    if (least == count || column_rank(t, columns, c, count) < column_rank(t, columns, least, count))
      least = c;
  }
  return least;
}

/* Gives the room that is left to the texts, the narrowest first. */
static void widen_texts(prof_i_table *t, const size_t *wanted, size_t count) {
  for (size_t room = table_width(t, count); room < t->width; room++) {
    size_t narrowest = count;
    for (size_t c = 0; c < count; c++) {
      if (!t->widths[c] || t->widths[c] >= wanted[c]) continue;
      if (narrowest == count || t->widths[c] < t->widths[narrowest]) narrowest = c;
    }
    if (narrowest == count) return;
    t->widths[narrowest]++;
  }
}

/* They say nothing, so they do not count as left out. */
static void hide_empty_columns(prof_i_table *t, size_t count, size_t sorted) {
  for (size_t c = 0; c < count; c++)
    if (t->empty & 1u << c && c != sorted && !t->is_chosen) t->widths[c] = 0;
}

/* Makes the widths fit t->width. sorted: the column that orders the rows, which is not left out. */
static void table_fit(prof_i_table *t, const prof_i_table_column *columns, size_t count,
                      size_t sorted) {
  size_t wanted[PROF_I_TABLE_COLUMNS_MAX];
  if (t->width == 0 || table_width(t, count) <= t->width) return;
  hide_empty_columns(t, count, sorted);
  memcpy(wanted, t->widths, sizeof wanted);
  for (size_t c = 0; c < count; c++) t->widths[c] = column_least_width(&columns[c], wanted[c]);
  while (table_width(t, count) > t->width && !t->is_chosen) {
    const size_t c = least_kept_column(t, columns, count, sorted);
    if (c == count) break; /* it stays wider */
    t->widths[c] = 0;
    t->left_out |= 1u << c;
  }
  show_hidden_columns(t, columns, wanted, count);
  widen_texts(t, wanted, count);
}

/* The line that names the columns with values that had no room. */
static void table_put_hidden(prof_i_table *t, const prof_i_table_column *columns, size_t count) {
  prof_i_text_buffer line = {0};
  const uint32_t named = t->left_out & ~t->zero;
  if (!named) return;
  prof_i_text_buffer_printf(&line, "No room in %zu columns for:", t->width);
  const char *mark = " ";
  for (size_t c = 0; c < count; c++) {
    if (!(named & 1u << c)) continue;
    prof_i_text_buffer_printf(&line, "%s%s", mark, columns[c].title);
    mark = ", ";
  }
  prof_i_text_buffer_append_text(&line, ". A file or a pipe has them");
  t->page.is_out_of_memory |= line.is_out_of_memory;
  if (line.text) prof_i_text_buffer_wrap(&t->page, 0, t->width, line.text);
  free(line.text);
}

/* FRAME_BYTES: how much of a text prof_i_sanitize_name() reads. */
enum {
  CELL_BYTES = PROF_I_TABLE_CELL_BYTES,
  GAP = PROF_I_TABLE_GAP,
  FRAME_BYTES = CELL_BYTES / 8 - 1
};

typedef prof_i_table table;

/* Of a terminal's text. */
static const char BOLD[] = "\x1b[1m", PLAIN[] = "\x1b[0m";

static const prof_i_table_column *const columns = prof_i_table_columns;

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
    has_any |= *prof_i_table_row_more(t, &t->rows->rows[i]).file != '\0';
  return has_any;
}

static bool column_has_net(const table *t, table_column c) {
  for (uint64_t i = 0; i < t->rows->row_count; i++) {
    const prof_row *const row = &t->rows->rows[i];
    const prof_row_more more = prof_i_table_row_more(t, row);
    const bool is_self = c == COLUMN_SELF_NET;
    if (prof_i_table_net_differs(is_self ? row->self_ns : row->total_ns,
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
  if (prof_i_table_column_is_duration(c)) return prof_i_table_has_durations(t);
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
  if (c == COLUMN_ARG && t->arg_key) return t->arg_key;
  return c == COLUMN_STACK && t->group & PROF_GROUP_SCOPES ? "Called From" : columns[c].title;
}

static bool column_is_of_group(const table *t, table_column c) {
  return !columns[c].group || columns[c].group & t->group;
}

/* Stacks are the last: their frames go on below the row. */
static void choose_columns(table *t, const prof_i_table_form *form) {
  bool has_stack = false;
  t->is_chosen = form->column_count != 0;
  for (size_t i = 0; i < (t->is_chosen ? form->column_count : COLUMN_COUNT); i++) {
    const table_column c = t->is_chosen ? form->columns[i] : (table_column)i;
    if (!column_is_of_group(t, c)) continue;
    if (!t->is_chosen && form->kind == PROF_I_TABLE_TEXT && !column_is_shown(t, c)) continue;
    if (c == COLUMN_STACK)
      has_stack = true;
    else
      t->order[t->order_count++] = c;
  }
  if (has_stack) t->order[t->order_count++] = COLUMN_STACK;
}

/* A cell that shows 0 B or no time, on a device or on the host. */
static bool cell_is_zero(const table *t, const prof_row *row, table_column c) {
  table_value value;
  const bool is_of_device = c >= COLUMN_SELF_DEVICE_TIME && c <= COLUMN_DEVICE_MEAN;
  const bool is_duration = prof_i_table_column_is_duration(c);
  if (is_duration && row->calls_count == 0) return true;
  if (!is_of_device && !is_duration && columns[c].value != TABLE_VALUE_BYTES) return false;
  prof_i_table_value(t, row, c, &value);
  if (value.kind == TABLE_VALUE_BYTES) return value.bytes == 0;
  if (value.kind == TABLE_VALUE_UNKNOWN) return false;
  return value.kind == TABLE_VALUE_NONE || value.number == 0;
}

/* Shapes and stacks are no names, and have a limit always. */
static bool column_has_names(table_column c) { return c <= COLUMN_ARG; }

static size_t cell_width(table *t, const prof_row *row, table_column c) {
  char room[CELL_BYTES];
  const prof_i_text cell = prof_i_table_cell(t, row, c, room);
  return prof_i_display_width(cell.data, (size_t)cell.bytes);
}

static void measure_columns(table *t) {
  for (size_t o = 0; o < t->order_count; o++) {
    const table_column c = t->order[o];
    size_t widest = 0;
    bool is_zero = t->rows->row_count > 0;
    for (uint64_t i = 0; i < t->rows->row_count; i++) {
      const prof_row *const row = &t->rows->rows[i];
      is_zero = is_zero && cell_is_zero(t, row, c);
      const size_t width = c == COLUMN_STACK ? frame_width(row->stack) : cell_width(t, row, c);
      if (width > widest) widest = width;
    }
    if (!widest) t->empty |= 1u << c;
    if (is_zero) t->zero |= 1u << c;
    const size_t title = strlen(column_title(t, c));
    if (title > widest) widest = title;
    const bool is_whole = column_has_names(c) && t->has_whole_names;
    t->widths[c] = is_whole || widest < columns[c].width_max ? widest : columns[c].width_max;
  }
}

/* One cell, cut with "..." when it is too wide: on a terminal in the middle, because the ends of
   long names differ. Groups are texts: to the left. */
static void table_put_cell(table *t, table_column c, const char *cell, size_t count,
                           bool *is_first) {
  size_t width = prof_i_display_width(cell, count), end = 0;
  const char *const behind = cell + count, *dots = "";
  if (width > t->widths[c]) {
    const size_t room = t->widths[c] - 3;
    if (t->width) end = prof_i_display_tail(cell, count, room / 2);
    const size_t end_width = prof_i_display_width(behind - end, end);
    count = prof_i_display_cut(cell, count, room - end_width);
    width = prof_i_display_width(cell, count) + 3 + end_width;
    dots = "...";
  }
  if (!*is_first) prof_i_text_buffer_repeat(&t->page, ' ', GAP);
  *is_first = false;
  const size_t blanks = t->widths[c] - width;
  const bool is_text = columns[c].group != 0, is_bold = t->is_colored && c == t->bold;
  if (is_bold) prof_i_text_buffer_append_text(&t->page, BOLD);
  if (!is_text) prof_i_text_buffer_repeat(&t->page, ' ', blanks);
  prof_i_text_buffer_append(&t->page, cell, count);
  prof_i_text_buffer_append_text(&t->page, dots);
  prof_i_text_buffer_append(&t->page, behind - end, end);
  if (is_bold) prof_i_text_buffer_append_text(&t->page, PLAIN);
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
  for (size_t o = 0; o < t->order_count; o++) {
    const size_t width = t->widths[t->order[o]];
    if (!width) continue;
    if (!is_first) prof_i_text_buffer_repeat(&t->page, ' ', GAP);
    is_first = false;
    prof_i_text_buffer_repeat(&t->page, '-', width);
  }
  prof_i_text_buffer_end_line(&t->page);
}

static void table_put_titles(table *t) {
  bool is_first = true;
  table_put_rule(t);
  for (size_t o = 0; o < t->order_count; o++) {
    const table_column c = t->order[o];
    if (t->widths[c])
      table_put_cell(t, c, column_title(t, c), strlen(column_title(t, c)), &is_first);
  }
  prof_i_text_buffer_end_line(&t->page);
  table_put_rule(t);
}

/* Further frames follow below the first, and then an empty line, as in torch.profiler's table. */
static void table_put_frames(table *t, const char *stack) {
  while (*stack) {
    bool is_first = true;
    for (size_t o = 0; t->order[o] != COLUMN_STACK; o++)
      if (t->widths[t->order[o]]) table_put_cell(t, t->order[o], "", 0, &is_first);
    table_put_frame(t, &stack, &is_first);
    prof_i_text_buffer_end_line(&t->page);
  }
  prof_i_text_buffer_end_line(&t->page);
}

static void table_put_rows(table *t) {
  char room[CELL_BYTES];
  for (uint64_t i = 0; i < t->rows->row_count; i++) {
    const prof_row *const row = &t->rows->rows[i];
    const char *stack = row->stack;
    bool is_first = true;
    for (size_t o = 0; o < t->order_count; o++) {
      const table_column c = t->order[o];
      if (!t->widths[c] || c == COLUMN_STACK) continue;
      const prof_i_text cell = prof_i_table_cell(t, row, c, room);
      table_put_cell(t, c, cell.data, (size_t)cell.bytes, &is_first);
    }
    if (t->widths[COLUMN_STACK]) table_put_frame(t, &stack, &is_first);
    prof_i_text_buffer_end_line(&t->page);
    if (t->widths[COLUMN_STACK]) table_put_frames(t, stack);
  }
  table_put_rule(t);
}

/* The column that orders the rows. COLUMN_COUNT: none. */
static table_column sorted_by(uint32_t sort) {
  switch ((prof_sort)sort) {
    case PROF_SORT_TOTAL:
      return COLUMN_TOTAL;
    case PROF_SORT_SELF:
      return COLUMN_SELF;
    case PROF_SORT_CALLS:
      return COLUMN_CALLS;
    case PROF_SORT_NAME:
      return COLUMN_NAME;
    case PROF_SORT_MEAN:
      return COLUMN_MEAN;
    case PROF_SORT_MEDIAN:
      return COLUMN_MEDIAN;
    case PROF_SORT_P99:
      return COLUMN_P99;
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
    case PROF_SORT_DEVICE_MEAN:
      return COLUMN_DEVICE_MEAN;
    case PROF_SORT_SELF_NET:
      return COLUMN_SELF_NET;
    case PROF_SORT_TOTAL_NET:
      return COLUMN_TOTAL_NET;
    case PROF_SORT_OPEN:
      return COLUMN_OPEN;
    case PROF_SORT_OPEN_FOR:
      return COLUMN_OPEN_TIME;
    case PROF_SORT_SKIPPED:
      return COLUMN_SKIPPED;
    case PROF_SORT_FIRST:
      break;
  }
  return COLUMN_COUNT;
}

const char *prof_i_table_column_word(uint32_t column, uint32_t *group_out) {
  if (column >= COLUMN_COUNT) return NULL;
  *group_out = columns[column].group;
  return columns[column].word;
}

int prof_trace_table(const prof_trace *trace, const prof_aggregate_options *options,
                     char **text_out) {
  if (!trace || !text_out)
    return prof_i_fail(PROF_E_INVALID, "prof_trace_table: %s is NULL",
                       trace ? "text_out" : "trace");
  return prof_traces_table(&trace, 1, options, text_out);
}

/* The caller's options, of which the members that it does not have are 0. Their size is valid. */
static prof_aggregate_options whole_options(const prof_aggregate_options *options) {
  prof_aggregate_options whole = {.size = sizeof whole};
  if (options) memcpy(&whole, options, options->size < sizeof whole ? options->size : sizeof whole);
  return whole;
}

/* PROF_OK or an error. */
static int make_text(table *t, uint32_t sort, char **text_out) {
  const table_column sorted = sorted_by(sort);
  measure_columns(t);
  table_fit(t, columns, COLUMN_COUNT, sorted);
  t->bold = COLUMN_COUNT;
  if (t->is_colored) prof_i_text_buffer_append_text(&t->page, BOLD);
  table_put_titles(t);
  if (t->is_colored) prof_i_text_buffer_append_text(&t->page, PLAIN);
  t->bold = sorted;
  table_put_rows(t);
  table_put_hidden(t, columns, COLUMN_COUNT);
  int status = prof_i_table_put_footer(t);
  free(t->long_cell.text);
  if (!status && t->page.is_out_of_memory)
    status = prof_i_fail(PROF_E_NO_MEMORY, "no memory for a table of %zu bytes", t->page.count);
  if (status)
    free(t->page.text);
  else
    *text_out = t->page.text;
  return status;
}

/* The group bits of the rows. */
static uint32_t form_group(const prof_i_table_form *form, uint32_t group) {
  const uint32_t all = group | form->more.group;
  return all & ~(uint32_t)PROF_GROUP_KERNEL ? all : all | PROF_GROUP_NAME | PROF_GROUP_CATEGORY;
}

int prof_i_traces_table(const prof_trace *const *traces, size_t count,
                        const prof_aggregate_options *options, prof_i_table_form *form,
                        char **text_out) {
  prof_rows *rows = NULL;
  int status = prof_i_traces_aggregate_more(traces, count, options, &form->more, &rows);
  if (status) return status;
  const prof_aggregate_options whole = whole_options(options);
  table t = {.traces = traces,
             .trace_count = count,
             .filter = form->more.filter,
             .rows = rows,
             .group = form_group(form, whole.group),
             .arg_key = form->more.arg_key,
             .time_unit = whole.time_unit,
             .width = whole.text_width,
             .is_colored = form->is_colored,
             .has_whole_names = form->has_whole_names};
  t.has_fibers = prof_i_table_find_fibers(&t);
  form->group_count = rows->all_row_count;
  form->scope_count = rows->calls_count + rows->open_count + rows->skipped_count;
  choose_columns(&t, form);
  if (form->kind == PROF_I_TABLE_CSV)
    status = prof_i_table_csv(&t, text_out);
  else if (form->kind == PROF_I_TABLE_JSON)
    status = prof_i_table_json(&t, text_out);
  else
    status = make_text(&t, whole.sort, text_out);
  prof_i_rows_destroy(rows);
  return status;
}

int prof_traces_table(const prof_trace *const *traces, size_t count,
                      const prof_aggregate_options *options, char **text_out) {
  PROF_I_DEFAULT_FP;
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  PROF_I_INSIDE;
  prof_i_table_form form = {0};
  if (!text_out) return prof_i_fail(PROF_E_INVALID, "prof_traces_table: text_out is NULL");
  return prof_i_traces_table(traces, count, options, &form, text_out);
}
