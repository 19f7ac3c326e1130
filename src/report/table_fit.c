/* Fits a table of aggregates into a terminal. See table.h. */
#include <stdlib.h>
#include <string.h>

#include "table.h"

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

/* Shows what has room after all, the most important first. */
static void show_hidden_columns(prof_i_table *t, const prof_i_table_column *columns,
                                const size_t *wanted, size_t count) {
  for (uint32_t keep = (uint32_t)count; keep > 0; keep--)
    for (size_t c = 0; c < count; c++) {
      const size_t width = column_least_width(&columns[c], wanted[c]);
      if (columns[c].keep != keep || !(t->left_out & 1u << c)) continue;
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
    if (!t->widths[c] || !columns[c].keep || c == sorted) continue;
    if (columns[c].group & t->group & PROF_I_GROUP_LINE) continue; /* it is what the rows are by */
    if (least == count || columns[c].keep < columns[least].keep) least = c;
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

void prof_i_table_fit(prof_i_table *t, const prof_i_table_column *columns, size_t count,
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

void prof_i_table_put_hidden(prof_i_table *t, const prof_i_table_column *columns, size_t count) {
  prof_i_text_buffer line = {0};
  if (!t->left_out) return;
  prof_i_text_buffer_printf(&line, "No room in %zu columns for:", t->width);
  const char *mark = " ";
  for (size_t c = 0; c < count; c++) {
    if (!(t->left_out & 1u << c)) continue;
    prof_i_text_buffer_printf(&line, "%s%s", mark, columns[c].title);
    mark = ", ";
  }
  prof_i_text_buffer_append_text(&line, ". A file or a pipe has them");
  t->page.is_out_of_memory |= line.is_out_of_memory;
  if (line.text) prof_i_text_buffer_wrap(&t->page, 0, t->width, line.text);
  free(line.text);
}
