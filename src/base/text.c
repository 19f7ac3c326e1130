/* Text in the caller's memory; see text.h. Words are stored as the machine has them: little-endian,
   as everything in prof. */
#include "text.h"

#include <math.h>
#include <prof/status.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "fault.h"

/* ---- composing in a room of fixed size ---- */

void prof_i_compose_bytes(prof_i_compose *text, const char *from, size_t bytes) {
  const size_t left = text->room - 1 - text->bytes, put = bytes < left ? bytes : left;
  memcpy(text->to + text->bytes, from, put);
  text->bytes += put;
  text->to[text->bytes] = '\0';
  text->is_cut |= put < bytes;
}

void prof_i_compose_text(prof_i_compose *text, const char *from) {
  prof_i_compose_bytes(text, from, strlen(from));
}

void prof_i_compose_number(prof_i_compose *text, uint64_t number) {
  char digits[20];
  size_t at = sizeof digits;
  do digits[--at] = (char)('0' + number % 10);
  while ((number /= 10) != 0);
  prof_i_compose_bytes(text, digits + at, sizeof digits - at);
}

/* ---- numbers ---- */

static char *put_all_eight_digits(char *to, uint32_t value) {
  const uint64_t digits = prof_i_eight_digits(value) + PROF_I_EIGHT_ZEROS;
  memcpy(to, &digits, 8);
  return to + 8;
}

/* Without leading zeros, but at least `least` digits. */
static char *put_eight_digits(char *to, uint32_t value, unsigned least) {
  const uint64_t digits = prof_i_eight_digits(value);
  const unsigned zeros = (unsigned)__builtin_ctzll(digits | (uint64_t)1 << 8 * (8 - least)) / 8;
  const uint64_t text = (digits + PROF_I_EIGHT_ZEROS) >> 8 * zeros;
  memcpy(to, &text, 8);
  return to + (8 - zeros);
}

static char *put_at_least(char *to, uint64_t value, unsigned least) {
  const uint64_t eight = 100000000;
  if (value < eight) return put_eight_digits(to, (uint32_t)value, least);
  if (value < eight * eight) {
    to = put_eight_digits(to, (uint32_t)(value / eight), 1);
    return put_all_eight_digits(to, (uint32_t)(value % eight));
  }
  to = put_eight_digits(to, (uint32_t)(value / (eight * eight)), 1);
  to = put_all_eight_digits(to, (uint32_t)(value / eight % eight));
  return put_all_eight_digits(to, (uint32_t)(value % eight));
}

char *prof_i_put_u64(char *to, uint64_t value) { return put_at_least(to, value, 1); }

char *prof_i_put_i64(char *to, int64_t value) {
  if (value >= 0) return prof_i_put_u64(to, (uint64_t)value);
  *to = '-';
  return prof_i_put_u64(to + 1, 0 - (uint64_t)value);
}

char *prof_i_put_hex(char *to, uint64_t value) {
  const int digit_count = value == 0 ? 1 : (67 - __builtin_clzll(value)) / 4;
  *to++ = '0';
  *to++ = 'x';
  for (int i = digit_count - 1; i >= 0; i--) *to++ = "0123456789abcdef"[value >> 4 * i & 15];
  return to;
}

char *prof_i_put_us(char *to, uint64_t ns) {
  char *const end = put_at_least(to, ns, 4);
  memmove(end - 2, end - 3, 3);
  end[-3] = '.';
  return end + 1;
}

/* Digits without a sign, of which the first stands before the point when the exponent is 0;
   trailing zeros dropped. */
typedef struct decimal {
  char digits[20];
  int count;
  int exponent;
} decimal;

/* printf's text is "d<point>ddd...e+xx", where the point is the locale's and may be several bytes:
   only digits are taken. */
static decimal shortest_decimal(double value) {
  char text[64];
  for (int precision = 14; precision <= 16; precision++) {
    snprintf(text, sizeof text, "%.*e", precision, value);
    if (strtod(text, NULL) == value) break;
  }
  decimal result = {{0}, 0, 0};
  const char *at = text;
  for (; *at != 'e'; at++)
    if (*at >= '0' && *at <= '9') result.digits[result.count++] = *at;
  result.exponent = (int)strtol(at + 1, NULL, 10);
  while (result.count > 1 && result.digits[result.count - 1] == '0') result.count--;
  return result;
}

/* 123.5, 0.00015: for exponents from -5 to 15. */
static char *put_plain_decimal(char *to, const decimal *number) {
  int i = 0;
  if (number->exponent < 0) {
    memcpy(to, "0.0000", 6);
    to += 1 - number->exponent;
  } else {
    for (; i <= number->exponent; i++) *to++ = (char)(i < number->count ? number->digits[i] : '0');
    *to++ = '.';
    if (i >= number->count) *to++ = '0';
  }
  for (; i < number->count; i++) *to++ = number->digits[i];
  return to;
}

char *prof_i_put_double(char *to, double value) {
  if (signbit(value)) {
    *to++ = '-';
    value = -value;
  }
  const decimal number = shortest_decimal(value);
  if (number.exponent >= -5 && number.exponent <= 15) return put_plain_decimal(to, &number);
  *to++ = number.digits[0];
  if (number.count > 1) *to++ = '.';
  memcpy(to, number.digits + 1, (size_t)(number.count - 1));
  to += number.count - 1;
  *to++ = 'e';
  return prof_i_put_i64(to, number.exponent);
}

/* ---- strings ---- */

size_t prof_i_utf8_bytes(const unsigned char *s, size_t left, bool *is_well_formed_out) {
  const unsigned first = s[0];
  unsigned low = 0x80, high = 0xbf;
  size_t bytes;
  *is_well_formed_out = false;
  if (first >= 0xc2 && first <= 0xdf) {
    bytes = 2;
  } else if (first >= 0xe0 && first <= 0xef) {
    bytes = 3;
    if (first == 0xe0) low = 0xa0;  /* overlong */
    if (first == 0xed) high = 0x9f; /* surrogates */
  } else if (first >= 0xf0 && first <= 0xf4) {
    bytes = 4;
    if (first == 0xf0) low = 0x90;  /* overlong */
    if (first == 0xf4) high = 0x8f; /* past U+10FFFF */
  } else {
    return 1;
  }
  for (size_t i = 1; i < bytes; i++) {
    if (i >= left || s[i] < low || s[i] > high) return i;
    low = 0x80;
    high = 0xbf;
  }
  *is_well_formed_out = true;
  return bytes;
}

size_t prof_i_utf8_decode(const char *s, size_t left, uint32_t *code_out) {
  const unsigned char *const at = (const unsigned char *)s;
  bool is_well_formed;
  *code_out = at[0];
  if (at[0] < 0x80) return 1;
  const size_t bytes = prof_i_utf8_bytes(at, left, &is_well_formed);
  uint32_t code = at[0] & (0x7fu >> bytes);
  for (size_t i = 1; i < bytes; i++) code = code << 6 | (at[i] & 0x3fu);
  *code_out = is_well_formed ? code : PROF_I_UTF8_ILL_FORMED;
  return bytes;
}

static char *put_unicode_escape(char *to, unsigned code) {
  *to++ = '\\';
  *to++ = 'u';
  for (int shift = 12; shift >= 0; shift -= 4) *to++ = "0123456789abcdef"[code >> shift & 15];
  return to;
}

/* One character that is not plain ASCII: at most 6 bytes out of *from, which moves on. */
static char *put_multibyte(char *to, const unsigned char **from, size_t left) {
  const unsigned char *const s = *from;
  bool is_well_formed;
  const size_t bytes = prof_i_utf8_bytes(s, left, &is_well_formed);
  *from += bytes;
  if (!is_well_formed) {
    memcpy(to, "\xef\xbf\xbd", 3);
    return to + 3;
  }
  /* the second set of controls: terminals obey them */
  if (s[0] == 0xc2 && s[1] < 0xa0) return put_unicode_escape(to, s[1]);
  if (s[0] == 0xe2 && s[1] == 0x80 && !PROF_I_FAULT(RAW_SEPARATOR) &&
      (s[2] == 0xa8 || s[2] == 0xa9))
    return put_unicode_escape(to, 0x2000u | (s[2] & 0x3fu));
  memcpy(to, s, bytes);
  return to + bytes;
}

/* '<' opens or ends a script or a comment only before these. */
static char *put_less_than(char *to, const unsigned char **from, size_t left) {
  const unsigned char next = left > 1 ? (*from)[1] : 0;
  *from += 1;
  if (next == '!' || next == 's' || next == 'S') return put_unicode_escape(to, '<');
  *to++ = '<';
  if (next != '/') return to;
  *from += 1;
  *to++ = '\\';
  *to++ = '/';
  return to;
}

static char *put_character(char *to, const unsigned char **from, size_t left) {
  const unsigned char c = **from;
  if (c >= 0x80) return put_multibyte(to, from, left);
  /* Perfetto v52 takes the quote behind it for an escaped one, though the backslash is */
  if (c == '\\' && left == 1) {
    *from += 1;
    return put_unicode_escape(to, c);
  }
  if (c == '<' && !PROF_I_FAULT(RAW_LESS_THAN)) return put_less_than(to, from, left);
  *from += 1;
  char letter = 0;
  switch (c) {
    case '"':
    case '\\':
      letter = (char)c;
      break;
    case '\n':
      letter = 'n';
      break;
    case '\r':
      letter = 'r';
      break;
    case '\t':
      letter = 't';
      break;
    case '\b':
      letter = 'b';
      break;
    case '\f':
      letter = 'f';
      break;
    default:
      if (c < 0x20 || c == 0x7f) return put_unicode_escape(to, c);
      *to = (char)c;
      return to + 1;
  }
  *to++ = '\\';
  *to++ = letter;
  return to;
}

/* The high bit of each byte of the word that is `byte`; bits above a true one may be false. */
static inline uint64_t bytes_equal(uint64_t word, uint64_t byte) {
  const uint64_t ones = 0x0101010101010101u, difference = word ^ ones * byte;
  return (difference - ones) & ~difference;
}

/* Non-zero when any of the eight bytes cannot be copied as it is. */
static inline uint64_t is_any_special(uint64_t word) {
  const uint64_t below_space = (word - 0x2020202020202020u) & ~word;
  return (below_space | word | bytes_equal(word, '"') | bytes_equal(word, '\\') |
          bytes_equal(word, '<') | bytes_equal(word, 0x7f)) &
         0x8080808080808080u;
}

size_t prof_i_escape(char *to, size_t room, const char *text, size_t bytes, size_t *at) {
  char *const begin = to;
  const unsigned char *from = (const unsigned char *)text + *at;
  const unsigned char *const end = (const unsigned char *)text + bytes;
  while (from < end && (size_t)(to - begin) + PROF_I_ESCAPE_ROOM <= room) {
    uint64_t word;
    if (end - from >= 8 && (memcpy(&word, from, 8), !is_any_special(word))) {
      memcpy(to, &word, 8);
      to += 8;
      from += 8;
    } else {
      to = put_character(to, &from, (size_t)(end - from));
    }
  }
  *at = (size_t)(from - (const unsigned char *)text);
  return (size_t)(to - begin);
}

/* ---- paths with marks ---- */

/* The text for the letter after a %. NULL: no such letter. number is the caller's buffer for
   digits. */
static const char *path_word(char letter, const prof_i_path_words *words, char number[16]) {
  prof_i_compose text = prof_i_compose_in(number, 16);
  switch (letter) {
    case 'p':
      prof_i_compose_number(&text, words->pid);
      return number;
    case 'r':
      prof_i_compose_number(&text, words->rank < 0 ? 0 : (uint64_t)words->rank);
      return number;
    case 'h':
      return words->host;
    case '%':
      return "%";
    default:
      return NULL;
  }
}

bool prof_i_path_has(const char *pattern, char letter) {
  for (const char *at = pattern; *at != 0; at++) {
    if (*at != '%') continue;
    if (at[1] == letter) return true;
    if (at[1] == '%') at++;
  }
  return false;
}

int prof_i_expand_path(const char *pattern, const prof_i_path_words *words, char *to, size_t room) {
  size_t used = 0;
  for (const char *at = pattern; *at != 0; at++) {
    char number[16];
    const char *const word = *at == '%' ? path_word(at[1], words, number) : NULL;
    const char *const from = word != NULL ? word : at;
    const size_t bytes = word != NULL ? strlen(word) : 1;
    if (used + bytes >= room) {
      *to = 0;
      return prof_i_fail(PROF_E_INVALID, "the path '%.64s...' is longer than %zu bytes", pattern,
                         room - 1);
    }
    memcpy(to + used, from, bytes);
    if (word == words->host && word != NULL)
      for (size_t i = used; i < used + bytes; i++)
        if (to[i] == '/') to[i] = '_';
    used += bytes;
    if (word != NULL) at++;
  }
  to[used] = 0;
  return PROF_OK;
}

bool prof_i_path_ends_in(const char *path, const char *ending) {
  const size_t bytes = strlen(path), ending_bytes = strlen(ending);
  return bytes > ending_bytes && memcmp(path + bytes - ending_bytes, ending, ending_bytes) == 0;
}
