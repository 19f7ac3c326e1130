/* See display.h. */
#include "display.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fault.h"
#include "text.h"

/* ---- any bytes ---- */

enum { REPLACEMENT = 0xfffd, SYMBOL_FOR_NULL = 0x2400 };

static size_t utf8_encode(char *to, uint32_t code) {
  if (code < 0x80) {
    to[0] = (char)code;
    return 1;
  }
  if (code < 0x800) {
    to[0] = (char)(0xc0 | code >> 6);
    to[1] = (char)(0x80 | (code & 0x3f));
    return 2;
  }
  if (code < 0x10000) {
    to[0] = (char)(0xe0 | code >> 12);
    to[1] = (char)(0x80 | (code >> 6 & 0x3f));
    to[2] = (char)(0x80 | (code & 0x3f));
    return 3;
  }
  to[0] = (char)(0xf0 | code >> 18);
  to[1] = (char)(0x80 | (code >> 12 & 0x3f));
  to[2] = (char)(0x80 | (code >> 6 & 0x3f));
  to[3] = (char)(0x80 | (code & 0x3f));
  return 4;
}

/* Appends a piece if all of it fits; once one did not, none does. */
static void append_piece(char *to, size_t room, size_t *used, size_t *wanted, const char *piece,
                         size_t count) {
  if (*wanted == *used && *used + count <= room) {
    memcpy(to + *used, piece, count);
    *used += count;
  }
  *wanted += count;
}

size_t prof_i_sanitize_utf8(char *to, size_t room, const char *bytes, size_t count) {
  size_t used = 0, wanted = 0;
  for (size_t at = 0; at < count;) {
    char piece[4];
    uint32_t code;
    const size_t taken = prof_i_utf8_decode(bytes + at, count - at, &code);
    if (code == PROF_I_UTF8_ILL_FORMED) code = REPLACEMENT;
    append_piece(to, room, &used, &wanted, piece,
                 utf8_encode(piece, code ? code : SYMBOL_FOR_NULL));
    at += taken;
  }
  return wanted;
}

size_t prof_i_sanitize_text(char *to, const char *bytes, size_t count) {
  const size_t used = prof_i_sanitize_utf8(to, SIZE_MAX, bytes, count);
  to[used] = '\0';
  return used + 1;
}

/* C0, DEL, C1, line separators, and the marks that turn the direction of writing. */
static int code_is_control(uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c || code == 0x200e ||
         code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069) || code == 0xfeff;
}

size_t prof_i_sanitize_controls(char *to, size_t room, const char *text, size_t count) {
  size_t used = 0, wanted = 0;
  for (size_t at = 0; at < count;) {
    char piece[16];
    uint32_t code;
    const size_t bytes = prof_i_utf8_decode(text + at, count - at, &code);
    if (code_is_control(code) && !PROF_I_FAULT(RAW_CONTROL)) {
      const int length =
          snprintf(piece, sizeof piece, code < 0x100 ? "\\x%02x" : "\\u%04x", (unsigned)code);
      append_piece(to, room, &used, &wanted, piece, (size_t)length);
    } else {
      append_piece(to, room, &used, &wanted, text + at, bytes);
    }
    at += bytes;
  }
  return wanted;
}

typedef struct code_range {
  uint32_t first, last;
} code_range;

static int code_is_in_ranges(const code_range *ranges, size_t count, uint32_t code) {
  size_t low = 0, high = count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (ranges[middle].last < code)
      low = middle + 1;
    else
      high = middle;
  }
  return low < count && ranges[low].first <= code;
}

/* The blocks that names meet; a rare script may stand a column off, no more. */
static size_t code_width(uint32_t code) {
  static const code_range zero[] = {
      {0x300, 0x36f},   {0x483, 0x489},   {0x591, 0x5bd},   {0x610, 0x61a},    {0x64b, 0x65f},
      {0x6d6, 0x6dc},   {0x93c, 0x93c},   {0x941, 0x948},   {0x94d, 0x94d},    {0xe31, 0xe31},
      {0xe34, 0xe3a},   {0xe47, 0xe4e},   {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff},  {0x200b, 0x200d},
      {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xe0100, 0xe01ef}};
  static const code_range wide[] = {
      {0x1100, 0x115f},   {0x231a, 0x231b},   {0x23e9, 0x23ec},   {0x2e80, 0x303e},
      {0x3041, 0x33ff},   {0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xa000, 0xa4cf},
      {0xa960, 0xa97f},   {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},
      {0xff00, 0xff60},   {0xffe0, 0xffe6},   {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff},
      {0x1f900, 0x1f9ff}, {0x1fa70, 0x1faff}, {0x20000, 0x3fffd}};
  if (code < 0x300) return 1;
  if (code_is_in_ranges(zero, sizeof zero / sizeof *zero, code)) return 0;
  return code_is_in_ranges(wide, sizeof wide / sizeof *wide, code) ? 2 : 1;
}

/* Columns of the longest front that takes at most so many; *at_out is its bytes. */
static size_t measure_columns(const char *text, size_t count, size_t columns_max, size_t *at_out) {
  size_t at = 0, columns = 0;
  while (at < count) {
    uint32_t code;
    const size_t bytes = prof_i_utf8_decode(text + at, count - at, &code);
    const size_t width = code_width(code);
    if (columns + width > columns_max) break;
    columns += width;
    at += bytes;
  }
  *at_out = at;
  return columns;
}

size_t prof_i_display_width(const char *text, size_t count) {
  size_t at;
  return measure_columns(text, count, SIZE_MAX - 2, &at);
}

size_t prof_i_display_cut(const char *text, size_t count, size_t columns) {
  size_t at;
  measure_columns(text, count, columns, &at);
  return at;
}

size_t prof_i_display_tail(const char *text, size_t count, size_t columns) {
  const size_t width = prof_i_display_width(text, count);
  size_t from = width > columns ? prof_i_display_cut(text, count, width - columns) : 0;
  while (prof_i_display_width(text + from, count - from) > columns) /* a wide one is across */
    from += prof_i_display_cut(text + from, count - from, 2);
  return count - from;
}

size_t prof_i_sanitize_name(char to[PROF_I_SANITIZED_NAME_BYTES], const char *text) {
  /* a character cut here is repaired, and may be 8 bytes when made plain */
  enum { MOST = PROF_I_SANITIZED_NAME_BYTES / 8 - 1 };
  char repaired[MOST * 3];
  const char *const end = memchr(text, '\0', MOST);
  const size_t count = end ? (size_t)(end - text) : MOST;
  const size_t bytes =
      prof_i_sanitize_controls(to, PROF_I_SANITIZED_NAME_BYTES - 1, repaired,
                               prof_i_sanitize_utf8(repaired, sizeof repaired, text, count));
  to[bytes] = '\0';
  return bytes;
}

/* ---- values ---- */

/* Thousandths of a unit, rounded. */
static int put_thousandths(char *to, size_t room, uint64_t ns, uint64_t unit_ns, const char *unit) {
  const uint64_t step = unit_ns / 1000;
  const uint64_t thousandths = ns / step + (ns % step * 2 >= step && step > 1);
  return snprintf(to, room, "%llu.%03llu%s", (unsigned long long)(thousandths / 1000),
                  (unsigned long long)(thousandths % 1000), unit);
}

int prof_i_put_time(char *to, size_t room, uint64_t ns, uint32_t unit) {
  if (unit == 9) return snprintf(to, room, "%lluns", (unsigned long long)ns);
  if (unit == 6 || (unit == 0 && ns < 1000000)) return put_thousandths(to, room, ns, 1000, "us");
  if (unit == 3 || ns < 1000000000) return put_thousandths(to, room, ns, 1000000, "ms");
  return put_thousandths(to, room, ns, 1000000000, "s");
}

int prof_i_put_share(char *to, size_t room, uint64_t part, uint64_t all) {
  /* a damaged capture has parts past all bounds */
  const double percent = all ? (double)part / (double)all * 100 : 0, most = 1e15;
  const unsigned long long hundredths =
      (unsigned long long)((percent < most ? percent : most) * 100 + 0.5);
  return snprintf(to, room, "%llu.%02llu%%", hundredths / 100, hundredths % 100);
}

int prof_i_put_device(char *to, size_t room, prof_device device) {
  static const struct {
    int32_t type;
    const char *name;
  } names[] = {{PROF_DEVICE_CPU, "cpu"},         {PROF_DEVICE_CUDA, "cuda"},
               {PROF_DEVICE_OPENCL, "opencl"},   {PROF_DEVICE_VULKAN, "vulkan"},
               {PROF_DEVICE_METAL, "metal"},     {PROF_DEVICE_ROCM, "hip"},
               {PROF_DEVICE_EXT_DEV, "ext_dev"}, {PROF_DEVICE_ONEAPI, "oneapi"}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (names[i].type == device.type)
      return snprintf(to, room, "%s:%d", names[i].name, device.index);
  return snprintf(to, room, "%d:%d", device.type, device.index);
}

static uint64_t magnitude_of(int64_t bytes) {
  return bytes < 0 ? 0 - (uint64_t)bytes : (uint64_t)bytes;
}

int prof_i_put_bytes(char *to, size_t room, int64_t bytes) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  const uint64_t size = magnitude_of(bytes);
  const char *const sign = bytes < 0 ? "-" : "";
  if (size < 1024) return snprintf(to, room, "%s%llu B", sign, (unsigned long long)size);
  uint64_t hundredths = 0;
  uint32_t unit = 0;
  do { /* the first unit of which there are less than 1024, rounded */
    unit++;
    const uint32_t shift = 10 * unit;
    /* in 1024ths of the unit, so that nothing flows over */
    const uint64_t rest = (size & ((UINT64_C(1) << shift) - 1)) >> (shift - 10);
    /* of those again */
    const uint64_t below = shift > 10 ? (size >> (shift - 20)) & 1023 : 0;
    hundredths = (size >> shift) * 100 + (((rest << 10) + below) * 100 + (1 << 19)) / (1 << 20);
  } while (hundredths >= 102400 && unit + 1 < sizeof units / sizeof *units);
  return snprintf(to, room, "%s%llu.%02llu %s", sign, (unsigned long long)(hundredths / 100),
                  (unsigned long long)(hundredths % 100), units[unit]);
}

int prof_i_put_mb(char *to, size_t room, int64_t bytes) {
  const uint64_t size = magnitude_of(bytes), mb = UINT64_C(1) << 20;
  const uint64_t thousandths = size / mb * 1000 + (size % mb * 1000 + mb / 2) / mb;
  return snprintf(to, room, "%s%llu.%03llu", bytes < 0 ? "-" : "",
                  (unsigned long long)(thousandths / 1000),
                  (unsigned long long)(thousandths % 1000));
}

void prof_i_trim_zeros(char *text) {
  char *const point = strchr(text, '.');
  if (!point) return;
  char *const behind = point + 1 + strspn(point + 1, "0123456789"), *end = behind;
  while (end[-1] == '0') end--;
  if (end[-1] == '.') end--;
  memmove(end, behind, strlen(behind) + 1);
}

/* ---- text that grows ---- */

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

/* The bytes of a front of at most `most` bytes, which ends between two characters. */
static size_t front_of(const char *bytes, size_t count, size_t most) {
  enum { FOLLOWING_MAX = 3 }; /* bytes of a character behind its first one */
  if (count <= most) return count;
  size_t front = most;
  for (int i = 0; i < FOLLOWING_MAX && ((unsigned char)bytes[front] & 0xc0) == 0x80; i++) front--;
  return front;
}

void prof_i_text_buffer_append_plain(prof_i_text_buffer *text_buffer, const char *bytes,
                                     size_t count) {
  enum { PIECE = 512 };
  char repaired[3 * PIECE], plain[8 * PIECE];
  for (size_t at = 0, piece; at < count; at += piece) {
    piece = front_of(bytes + at, count - at, PIECE);
    const size_t used = prof_i_sanitize_utf8(repaired, sizeof repaired, bytes + at, piece);
    prof_i_text_buffer_append(text_buffer, plain,
                              prof_i_sanitize_controls(plain, sizeof plain, repaired, used));
  }
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

enum { GAP = 2, DOTS = 3 };

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
