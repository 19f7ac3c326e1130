/* See sanitize.h. */
#include "sanitize.h"

#include <stdio.h>
#include <string.h>

#include "fault.h"
#include "text.h"

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
