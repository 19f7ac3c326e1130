/* Text for people: any bytes made readable, measured and cut by columns of a terminal; times,
   shares and sizes as words; tables. Files and programs read the text of text.h instead. */
#ifndef PROF_BASE_DISPLAY_H
#define PROF_BASE_DISPLAY_H

#include <prof/profiler.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- any bytes ---- */

/* Pure functions. */

/* Copies bytes as valid UTF-8 without NUL: U+FFFD for each ill-formed part, U+2400 for a NUL.
   Writes at most room bytes, never half a character, and no NUL; returns what it would need. 3
   bytes out for one in are always enough. */
size_t prof_i_sanitize_utf8(char *to, size_t room, const char *bytes, size_t count);

/* The same, followed by a NUL. The caller provides enough room. Returns the bytes written, NUL
   included. */
size_t prof_i_sanitize_text(char *to, const char *bytes, size_t count);

/* What a terminal would obey is spelt out (\x1b, \u202e), so that a name cannot move the cursor or
   turn the line around. Input is valid UTF-8. As above; 8 bytes out for one in are enough. */
size_t prof_i_sanitize_controls(char *to, size_t room, const char *text, size_t count);

/* Columns of valid UTF-8 without controls: 0 for combining marks, 2 for wide characters. */
size_t prof_i_display_width(const char *text, size_t count);

/* Bytes of the longest front that takes at most that many columns. */
size_t prof_i_display_cut(const char *text, size_t count, size_t columns);

/* The same of the longest end. */
size_t prof_i_display_tail(const char *text, size_t count, size_t columns);

/* A name of any bytes for a cell: repaired, made plain, cut where no cell shows more.
   NUL-terminated; returns its bytes. */
enum { PROF_I_SANITIZED_NAME_BYTES = 1032 };
size_t prof_i_sanitize_name(char to[PROF_I_SANITIZED_NAME_BYTES], const char *text);

/* ---- values ---- */

/* Values as people read them, by whole numbers: the locale may have another point. Pure functions;
   they write and return as snprintf() does. */

/* "12.345ms". unit: 0 by magnitude, from us to s; 3 ms, 6 us, 9 ns as powers. */
int prof_i_put_time(char *to, size_t room, uint64_t ns, uint32_t unit);

/* "12.34%" */
int prof_i_put_share(char *to, size_t room, uint64_t part, uint64_t all);

/* "cuda:0"; of types without a name "9:0". */
int prof_i_put_device(char *to, size_t room, prof_device device);

/* "1.53 GiB"; below 1 KiB as they are, "12 B". */
int prof_i_put_bytes(char *to, size_t room, int64_t bytes);

/* RAF's MB, which are 2^20 bytes: "12.345". */
int prof_i_put_mb(char *to, size_t room, int64_t bytes);

/* Where a number ends in zeros behind its point, they go, and the point: "1.50 GiB" becomes "1.5
   GiB". In place. */
void prof_i_trim_zeros(char *text);

/* ---- text that grows, and tables ---- */

/* Text that grows, and tables of cells in it: texts to the left, numbers to the right, cut to a
   width. The first failure sticks: what is put after it goes nowhere. One thread at a time a
   page. */

/* Begins as zeros. text is NUL-terminated, or NULL while nothing was put. The caller that takes it
   frees it. */
typedef struct prof_i_text_buffer {
  char *text;
  size_t count, room;
  bool is_out_of_memory;
} prof_i_text_buffer;

void prof_i_text_buffer_append(prof_i_text_buffer *text_buffer, const char *bytes, size_t count);
void prof_i_text_buffer_append_text(prof_i_text_buffer *text_buffer, const char *text);
/* Any bytes, as many as there are: repaired, and with controls spelt out. */
void prof_i_text_buffer_append_plain(prof_i_text_buffer *text_buffer, const char *bytes,
                                     size_t count);
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
  /* between columns, which are padded all the same; for programs that split a line */
  bool has_tabs;
  prof_i_text_buffer cells; /* each with its NUL */
} prof_i_text_table;

enum {
  PROF_I_TEXT_TABLE_COLUMNS = 18,
  PROF_I_TEXT_TABLE_TEXT_MIN = 12 /* no text is cut to less */
};

/* Valid UTF-8 without controls. */
void prof_i_text_table_add(prof_i_text_table *table, const char *text);
/* Writes the table, as many columns wide as it takes and at most `width`, texts permitting; and
   frees the cells. */
void prof_i_text_table_write(prof_i_text_buffer *text_buffer, prof_i_text_table *table,
                             size_t indent, size_t width);

#endif
