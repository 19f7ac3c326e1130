/* See unicode.h. Tables are searched by bisection after a fast path for ASCII, which is nearly all
   of the text that an uncased English model sees. SPDX-License-Identifier: MIT */
#include "unicode.h"

#include "unicode_data.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

enum {
  REPLACEMENT = 0xFFFD,
  /* Hangul's arithmetic: a syllable is ((lead * 21) + vowel) * 28 + tail. */
  HANGUL_FIRST = 0xAC00,
  HANGUL_LAST = 0xD7A3,
  HANGUL_LEAD = 0x1100,
  HANGUL_VOWEL = 0x1161,
  HANGUL_TAIL = 0x11A7,
  HANGUL_VOWELS = 21,
  HANGUL_TAILS = 28,
};

static bool is_continuation(const char *text, size_t i) {
  return ((unsigned char)text[i] & 0xC0) == 0x80;
}

static bool is_in(const code_range *ranges, size_t count, uint32_t code) {
  size_t low = 0, high = count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (code > ranges[middle].last)
      low = middle + 1;
    else
      high = middle;
  }
  return low < count && code >= ranges[low].first;
}

static uint32_t fold_by_table(uint32_t code) {
  for (size_t i = 0; i < COUNT_OF(fold_ranges); i++) {
    const fold_range *r = &fold_ranges[i];
    if (code >= r->first && code <= r->last && (code - r->first) % (uint32_t)r->stride == 0)
      return (uint32_t)((int32_t)code + r->delta);
  }
  for (size_t i = 0; i < COUNT_OF(fold_rows); i++) {
    const fold_row *r = &fold_rows[i];
    if (code >= r->first && code - r->first < r->count && r->text[code - r->first] != u' ')
      return r->text[code - r->first];
  }
  return code;
}

size_t unicode_decode(const char *text, size_t bytes, uint32_t *code_out) {
  static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const unsigned char first = (unsigned char)text[0];
  *code_out = first;
  if (first < 0x80) return 1;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  *code_out = REPLACEMENT;
  if (first < 0xC2 || first > 0xF4 || bytes < length) return 1;
  uint32_t code = first & (0xFFu >> (length + 1));
  for (size_t i = 1; i < length; i++) {
    if (!is_continuation(text, i)) return 1;
    code = code << 6 | ((unsigned char)text[i] & 0x3Fu);
  }
  if (code < smallest[length] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return 1;
  *code_out = code;
  return length;
}

size_t unicode_encode(uint32_t code, char out[UNICODE_UTF8_MAX]) {
  if (code < 0x80) {
    out[0] = (char)code;
    return 1;
  }
  const size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  for (size_t i = length - 1; i > 0; i--) {
    out[i] = (char)(0x80 | (code & 0x3F));
    code >>= 6;
  }
  out[0] = (char)((0xF00u >> length & 0xFFu) | code);
  return length;
}

bool unicode_is_blank(uint32_t code) { return is_in(blank_ranges, COUNT_OF(blank_ranges), code); }

bool unicode_is_dropped(uint32_t code) {
  return !(code >= 0x20 && code < 0x7F) && is_in(dropped_ranges, COUNT_OF(dropped_ranges), code);
}

bool unicode_is_ideograph(uint32_t code) {
  return code >= 0x80 && is_in(ideograph_ranges, COUNT_OF(ideograph_ranges), code);
}

bool unicode_is_punctuation(uint32_t code) {
  return is_in(punctuation_ranges, COUNT_OF(punctuation_ranges), code);
}

size_t unicode_fold(uint32_t code, uint32_t out[UNICODE_FOLD_MAX]) {
  if (code < 0x80) {
    out[0] = code >= 'A' && code <= 'Z' ? code + ('a' - 'A') : code;
    return 1;
  }
  if (code < HANGUL_FIRST || code > HANGUL_LAST) {
    out[0] = fold_by_table(code);
    return 1;
  }
  const uint32_t syllable = code - HANGUL_FIRST;
  out[0] = HANGUL_LEAD + syllable / (HANGUL_VOWELS * HANGUL_TAILS);
  out[1] = HANGUL_VOWEL + syllable / HANGUL_TAILS % HANGUL_VOWELS;
  out[2] = HANGUL_TAIL + syllable % HANGUL_TAILS;
  return syllable % HANGUL_TAILS == 0 ? 2 : 3;
}
