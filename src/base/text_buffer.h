/* Text that grows, and tables of cells in it: texts to the left, numbers to the right, cut to a
   width. The first failure sticks: what is put after it goes nowhere. One thread at a time a
   page. */
#ifndef PROF_BASE_TEXT_BUFFER_H
#define PROF_BASE_TEXT_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Begins as zeros. text is NUL-terminated, or NULL while nothing was put. The caller that takes it
   frees it. */
typedef struct prof_i_text_buffer {
  char *text;
  size_t count, room;
  bool is_out_of_memory;
} prof_i_text_buffer;

void prof_i_text_buffer_append(prof_i_text_buffer *text_buffer, const char *bytes, size_t count);
void prof_i_text_buffer_append_text(prof_i_text_buffer *text_buffer, const char *text);
void prof_i_text_buffer_repeat(prof_i_text_buffer *text_buffer, char byte, size_t count);
/* At most 511 bytes: no names. */
void prof_i_text_buffer_printf(prof_i_text_buffer *text_buffer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A sentence, broken between words; its further lines are indented as much. Valid UTF-8 without
   controls; of blanks side by side one is left. Ends the line. */
void prof_i_text_buffer_wrap(prof_i_text_buffer *text_buffer, size_t indent, size_t width,
                             const char *text);
/* Without the blanks at its end. */
void prof_i_text_buffer_end_line(prof_i_text_buffer *text_buffer);

/* Cells come row by row. */
typedef struct prof_i_text_table {
  const char *const *titles;
  uint32_t column_count;
  uint32_t text_columns; /* bits: to the left, and cut with "..." where the row is too wide */
  bool has_no_rule;      /* below the titles */
  bool
      has_tabs; /* between columns, which are padded all the same; for programs that split a line */
  prof_i_text_buffer cells; /* each with its NUL */
} prof_i_text_table;

enum {
  PROF_I_TEXT_TABLE_COLUMNS = 9,
  PROF_I_TEXT_TABLE_TEXT_MIN = 12 /* no text is cut to less */
};

/* Valid UTF-8 without controls. */
void prof_i_text_table_add(prof_i_text_table *table, const char *text);
/* Writes the table, as many columns wide as it takes and at most `width`, texts permitting; and
   frees the cells. */
void prof_i_text_table_write(prof_i_text_buffer *text_buffer, prof_i_text_table *table,
                             size_t indent, size_t width);

#endif
