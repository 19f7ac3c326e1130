/* See text_buffer.h. */
#include "text_buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sanitize.h"

enum { GAP = 2, DOTS = 3 };

/* ---- text ---- */

void prof_i_text_buffer_append(prof_i_text_buffer *text_buffer, const char *bytes, size_t count) {
  if (text_buffer->is_out_of_memory) return;
  if (text_buffer->room - text_buffer->count <= count) {
    const size_t room = (text_buffer->room + count) * 2 + 256;
    char *const larger = realloc(text_buffer->text, room);
    if (!larger) {
      text_buffer->is_out_of_memory = true;
      return;
    }
    text_buffer->text = larger;
    text_buffer->room = room;
  }
  memcpy(text_buffer->text + text_buffer->count, bytes, count);
  text_buffer->count += count;
  text_buffer->text[text_buffer->count] = '\0';
}

void prof_i_text_buffer_append_text(prof_i_text_buffer *text_buffer, const char *text) {
  prof_i_text_buffer_append(text_buffer, text, strlen(text));
}

void prof_i_text_buffer_repeat(prof_i_text_buffer *text_buffer, char byte, size_t count) {
  for (size_t i = 0; i < count; i++) prof_i_text_buffer_append(text_buffer, &byte, 1);
}

void prof_i_text_buffer_printf(prof_i_text_buffer *text_buffer, const char *format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): clang-tidy 14 misses va_start() */
  const int count = vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  if (count > 0)
    prof_i_text_buffer_append(text_buffer, line,
                              (size_t)count < sizeof line ? (size_t)count : sizeof line - 1);
}

void prof_i_text_buffer_wrap(prof_i_text_buffer *text_buffer, size_t indent, size_t width,
                             const char *text) {
  size_t column = 0;
  while (*text) {
    const size_t word = strcspn(text, " "), columns = prof_i_display_width(text, word);
    const bool is_first = column == 0;
    if (!is_first && column + 1 + columns > width) {
      prof_i_text_buffer_end_line(text_buffer);
      column = 0;
    }
    if (column == 0)
      prof_i_text_buffer_repeat(text_buffer, ' ', indent), column = indent;
    else
      prof_i_text_buffer_append(text_buffer, " ", 1), column++;
    prof_i_text_buffer_append(text_buffer, text, word);
    column += columns;
    text += word + strspn(text + word, " ");
  }
  prof_i_text_buffer_end_line(text_buffer);
}

void prof_i_text_buffer_end_line(prof_i_text_buffer *text_buffer) {
  while (text_buffer->count && !text_buffer->is_out_of_memory &&
         text_buffer->text[text_buffer->count - 1] == ' ')
    text_buffer->text[--text_buffer->count] = '\0';
  prof_i_text_buffer_append(text_buffer, "\n", 1);
}

/* ---- tables ---- */

void prof_i_text_table_add(prof_i_text_table *table, const char *text) {
  prof_i_text_buffer_append(&table->cells, text, strlen(text) + 1);
}

static bool column_is_text(const prof_i_text_table *table, uint32_t column) {
  return table->text_columns >> column & 1;
}

static void table_measure(const prof_i_text_table *table, size_t *widths) {
  for (uint32_t c = 0; c < table->column_count; c++) widths[c] = strlen(table->titles[c]);
  const char *cell = table->cells.text ? table->cells.text : "", *const end =
                                                                     cell + table->cells.count;
  for (uint32_t c = 0; cell < end;
       cell += strlen(cell) + 1, c = c + 1 < table->column_count ? c + 1 : 0) {
    const size_t width = prof_i_display_width(cell, strlen(cell));
    if (width > widths[c]) widths[c] = width;
  }
}

/* Takes what is too much from the widest text, then from the next. */
static void table_fit(const prof_i_text_table *table, size_t *widths, size_t width) {
  for (;;) {
    size_t all = (table->column_count - 1) * (size_t)GAP;
    uint32_t widest = UINT32_MAX;
    for (uint32_t c = 0; c < table->column_count; c++) {
      all += widths[c];
      if (column_is_text(table, c) && widths[c] > PROF_I_TEXT_TABLE_TEXT_MIN &&
          (widest == UINT32_MAX || widths[c] > widths[widest]))
        widest = c;
    }
    if (all <= width || widest == UINT32_MAX) return;
    const size_t most = widths[widest] - PROF_I_TEXT_TABLE_TEXT_MIN;
    widths[widest] -= all - width < most ? all - width : most;
  }
}

static void table_put_cell(prof_i_text_buffer *text_buffer, const char *cell, size_t width,
                           bool is_left) {
  size_t count = strlen(cell), shown = prof_i_display_width(cell, count);
  const bool is_cut = shown > width;
  if (is_cut) {
    count = prof_i_display_cut(cell, count, width - DOTS);
    shown = prof_i_display_width(cell, count) + DOTS;
  }
  if (!is_left) prof_i_text_buffer_repeat(text_buffer, ' ', width - shown);
  prof_i_text_buffer_append(text_buffer, cell, count);
  if (is_cut) prof_i_text_buffer_append_text(text_buffer, "...");
  if (is_left) prof_i_text_buffer_repeat(text_buffer, ' ', width - shown);
}

static void table_put_gap(prof_i_text_buffer *text_buffer, const prof_i_text_table *table) {
  if (table->has_tabs)
    prof_i_text_buffer_append(text_buffer, "\t", 1);
  else
    prof_i_text_buffer_repeat(text_buffer, ' ', GAP);
}

static void table_put_head(prof_i_text_buffer *text_buffer, const prof_i_text_table *table,
                           const size_t *widths, size_t indent) {
  prof_i_text_buffer_repeat(text_buffer, ' ', indent);
  for (uint32_t c = 0; c < table->column_count; c++) {
    if (c) table_put_gap(text_buffer, table);
    table_put_cell(text_buffer, table->titles[c], widths[c], column_is_text(table, c));
  }
  prof_i_text_buffer_end_line(text_buffer);
  if (table->has_no_rule) return;
  prof_i_text_buffer_repeat(text_buffer, ' ', indent);
  for (uint32_t c = 0; c < table->column_count; c++) {
    if (c) table_put_gap(text_buffer, table);
    prof_i_text_buffer_repeat(text_buffer, '-', widths[c]);
  }
  prof_i_text_buffer_end_line(text_buffer);
}

void prof_i_text_table_write(prof_i_text_buffer *text_buffer, prof_i_text_table *table,
                             size_t indent, size_t width) {
  size_t widths[PROF_I_TEXT_TABLE_COLUMNS] = {0};
  if (table->cells.is_out_of_memory) text_buffer->is_out_of_memory = true;
  table_measure(table, widths);
  table_fit(table, widths, width > indent ? width - indent : 1);
  table_put_head(text_buffer, table, widths, indent);
  const char *cell = table->cells.text ? table->cells.text : "", *const end =
                                                                     cell + table->cells.count;
  while (cell < end) {
    prof_i_text_buffer_repeat(text_buffer, ' ', indent);
    for (uint32_t c = 0; c < table->column_count && cell < end; c++, cell += strlen(cell) + 1) {
      if (c) table_put_gap(text_buffer, table);
      table_put_cell(text_buffer, cell, widths[c], column_is_text(table, c));
    }
    prof_i_text_buffer_end_line(text_buffer);
  }
  free(table->cells.text);
  table->cells = (prof_i_text_buffer){0};
}
