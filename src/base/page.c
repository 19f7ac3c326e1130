/* See page.h. */
#include "page.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "show.h"

enum { GAP = 2, DOTS = 3 };

/* ---- text ---- */

void prof_i_page_put(prof_i_page *page, const char *bytes, size_t count) {
  if (page->is_out_of_memory) return;
  if (page->room - page->count <= count) {
    const size_t room = (page->room + count) * 2 + 256;
    char *const larger = realloc(page->text, room);
    if (!larger) {
      page->is_out_of_memory = true;
      return;
    }
    page->text = larger;
    page->room = room;
  }
  memcpy(page->text + page->count, bytes, count);
  page->count += count;
  page->text[page->count] = '\0';
}

void prof_i_page_text(prof_i_page *page, const char *text) {
  prof_i_page_put(page, text, strlen(text));
}

void prof_i_page_many(prof_i_page *page, char byte, size_t count) {
  for (size_t i = 0; i < count; i++) prof_i_page_put(page, &byte, 1);
}

void prof_i_page_say(prof_i_page *page, const char *format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): clang-tidy 14 misses va_start() */
  const int count = vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  if (count > 0)
    prof_i_page_put(page, line, (size_t)count < sizeof line ? (size_t)count : sizeof line - 1);
}

void prof_i_page_wrap(prof_i_page *page, size_t indent, size_t width, const char *text) {
  size_t column = 0;
  while (*text) {
    const size_t word = strcspn(text, " "), columns = prof_i_show_width(text, word);
    const bool is_first = column == 0;
    if (!is_first && column + 1 + columns > width) {
      prof_i_page_end_line(page);
      column = 0;
    }
    if (column == 0)
      prof_i_page_many(page, ' ', indent), column = indent;
    else
      prof_i_page_put(page, " ", 1), column++;
    prof_i_page_put(page, text, word);
    column += columns;
    text += word + strspn(text + word, " ");
  }
  prof_i_page_end_line(page);
}

void prof_i_page_end_line(prof_i_page *page) {
  while (page->count && !page->is_out_of_memory && page->text[page->count - 1] == ' ')
    page->text[--page->count] = '\0';
  prof_i_page_put(page, "\n", 1);
}

/* ---- tables ---- */

void prof_i_grid_add(prof_i_grid *grid, const char *text) {
  prof_i_page_put(&grid->cells, text, strlen(text) + 1);
}

static bool is_text(const prof_i_grid *grid, uint32_t column) {
  return grid->text_columns >> column & 1;
}

static void measure(const prof_i_grid *grid, size_t *widths) {
  for (uint32_t c = 0; c < grid->column_count; c++) widths[c] = strlen(grid->titles[c]);
  const char *cell = grid->cells.text ? grid->cells.text : "", *const end =
                                                                   cell + grid->cells.count;
  for (uint32_t c = 0; cell < end;
       cell += strlen(cell) + 1, c = c + 1 < grid->column_count ? c + 1 : 0) {
    const size_t width = prof_i_show_width(cell, strlen(cell));
    if (width > widths[c]) widths[c] = width;
  }
}

/* Takes what is too much from the widest text, then from the next. */
static void fit(const prof_i_grid *grid, size_t *widths, size_t width) {
  for (;;) {
    size_t all = (grid->column_count - 1) * (size_t)GAP;
    uint32_t widest = UINT32_MAX;
    for (uint32_t c = 0; c < grid->column_count; c++) {
      all += widths[c];
      if (is_text(grid, c) && widths[c] > PROF_I_GRID_TEXT_MIN &&
          (widest == UINT32_MAX || widths[c] > widths[widest]))
        widest = c;
    }
    if (all <= width || widest == UINT32_MAX) return;
    const size_t most = widths[widest] - PROF_I_GRID_TEXT_MIN;
    widths[widest] -= all - width < most ? all - width : most;
  }
}

static void put_cell(prof_i_page *page, const char *cell, size_t width, bool is_left) {
  size_t count = strlen(cell), shown = prof_i_show_width(cell, count);
  const bool is_cut = shown > width;
  if (is_cut) {
    count = prof_i_show_cut(cell, count, width - DOTS);
    shown = prof_i_show_width(cell, count) + DOTS;
  }
  if (!is_left) prof_i_page_many(page, ' ', width - shown);
  prof_i_page_put(page, cell, count);
  if (is_cut) prof_i_page_text(page, "...");
  if (is_left) prof_i_page_many(page, ' ', width - shown);
}

static void put_gap(prof_i_page *page, const prof_i_grid *grid) {
  if (grid->has_tabs)
    prof_i_page_put(page, "\t", 1);
  else
    prof_i_page_many(page, ' ', GAP);
}

static void put_head(prof_i_page *page, const prof_i_grid *grid, const size_t *widths,
                     size_t indent) {
  prof_i_page_many(page, ' ', indent);
  for (uint32_t c = 0; c < grid->column_count; c++) {
    if (c) put_gap(page, grid);
    put_cell(page, grid->titles[c], widths[c], is_text(grid, c));
  }
  prof_i_page_end_line(page);
  if (grid->has_no_rule) return;
  prof_i_page_many(page, ' ', indent);
  for (uint32_t c = 0; c < grid->column_count; c++) {
    if (c) put_gap(page, grid);
    prof_i_page_many(page, '-', widths[c]);
  }
  prof_i_page_end_line(page);
}

void prof_i_page_grid(prof_i_page *page, prof_i_grid *grid, size_t indent, size_t width) {
  size_t widths[PROF_I_GRID_COLUMNS] = {0};
  if (grid->cells.is_out_of_memory) page->is_out_of_memory = true;
  measure(grid, widths);
  fit(grid, widths, width > indent ? width - indent : 1);
  put_head(page, grid, widths, indent);
  const char *cell = grid->cells.text ? grid->cells.text : "", *const end =
                                                                   cell + grid->cells.count;
  while (cell < end) {
    prof_i_page_many(page, ' ', indent);
    for (uint32_t c = 0; c < grid->column_count && cell < end; c++, cell += strlen(cell) + 1) {
      if (c) put_gap(page, grid);
      put_cell(page, cell, widths[c], is_text(grid, c));
    }
    prof_i_page_end_line(page);
  }
  free(grid->cells.text);
  grid->cells = (prof_i_page){0};
}
