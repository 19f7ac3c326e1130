/* Invalid JSON of writers of traces, and texts that are no UTF-8. See json.h. */
#include "json.h"

#include <string.h>
#include <strings.h>

#include "../../src/base/text.h"

static bool byte_is_of_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
         c == '+' || c == '.';
}

static bool word_is_not_number(const import_json_cleaner *cleaner) {
  static const char *const words[] = {"nan", "inf", "infinity"};
  const char *const word = cleaner->word + (cleaner->word[0] == '-' || cleaner->word[0] == '+');
  const size_t bytes = cleaner->word_bytes - (size_t)(word - cleaner->word);
  if (cleaner->word_bytes > IMPORT_WORD_BYTES) return true;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strlen(words[i]) == bytes && strncasecmp(word, words[i], bytes) == 0) return true;
  return false;
}

/* ---- words ---- */

static char *end_word(import_json_cleaner *cleaner, char *to) {
  static const char null[] = "null";
  const bool is_none = cleaner->word_bytes > 0 && word_is_not_number(cleaner);
  const size_t bytes = is_none ? sizeof null - 1 : cleaner->word_bytes;
  memcpy(to, is_none ? null : cleaner->word, bytes);
  cleaner->not_number_count += is_none;
  cleaner->word_bytes = 0;
  return to + bytes;
}

/* ---- strings ---- */

static void begin_string(import_json_cleaner *cleaner) {
  cleaner->is_in_string = true;
  cleaner->is_dropping = cleaner->has_high = false;
  cleaner->string_bytes = cleaner->escape_bytes = 0;
}

/* What may not be cut in two: a byte, an escape, a pair of them. */
static char *put_whole(import_json_cleaner *cleaner, char *to, const char *bytes, size_t count) {
  if (!cleaner->is_dropping && cleaner->string_bytes >= IMPORT_STRING_BYTES_MAX) {
    cleaner->is_dropping = true;
    cleaner->cut_count++;
  }
  if (cleaner->is_dropping) return to;
  memcpy(to, bytes, count);
  cleaner->string_bytes += count;
  return to + count;
}

static char *put_no_character(import_json_cleaner *cleaner, char *to) {
  cleaner->surrogate_count += !cleaner->is_dropping;
  return put_whole(cleaner, to, "\\ufffd", IMPORT_ESCAPE_BYTES);
}

/* The other half has not come. */
static char *end_high_surrogate(import_json_cleaner *cleaner, char *to) {
  if (!cleaner->has_high) return to;
  cleaner->has_high = false;
  return put_no_character(cleaner, to);
}

/* -1: none. */
static int hex_digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* 0: it is not a whole \u escape. */
static unsigned escape_code(const import_json_cleaner *cleaner) {
  unsigned code = 0;
  if (cleaner->escape_bytes < IMPORT_ESCAPE_BYTES) return 0;
  for (int i = 2; i < IMPORT_ESCAPE_BYTES; i++)
    code = code << 4 | (unsigned)hex_digit_value(cleaner->escape[i]);
  return code;
}

static char *end_escape(import_json_cleaner *cleaner, char *to) {
  enum { SURROGATE_MASK = 0xfc00, SURROGATE_HIGH = 0xd800, SURROGATE_LOW = 0xdc00 };
  const unsigned half = escape_code(cleaner) & SURROGATE_MASK;
  if (half == SURROGATE_LOW && cleaner->has_high) {
    char pair[2 * IMPORT_ESCAPE_BYTES];
    memcpy(pair, cleaner->high, IMPORT_ESCAPE_BYTES);
    memcpy(pair + IMPORT_ESCAPE_BYTES, cleaner->escape, IMPORT_ESCAPE_BYTES);
    cleaner->has_high = false;
    to = put_whole(cleaner, to, pair, sizeof pair);
  } else {
    to = end_high_surrogate(cleaner, to);
    if (half == SURROGATE_HIGH) {
      memcpy(cleaner->high, cleaner->escape, IMPORT_ESCAPE_BYTES);
      cleaner->has_high = true;
    } else if (half == SURROGATE_LOW) {
      to = put_no_character(cleaner, to);
    } else {
      to = put_whole(cleaner, to, cleaner->escape, cleaner->escape_bytes);
    }
  }
  cleaner->escape_bytes = 0;
  return to;
}

/* Does the byte go on with the escape that has begun? */
static bool byte_continues_escape(const import_json_cleaner *cleaner, char c) {
  if (cleaner->escape_bytes < 2) return cleaner->escape_bytes == 1 || c == '\\';
  return hex_digit_value(c) >= 0;
}

/* One byte inside of a string. */
static char *clean_string_byte(import_json_cleaner *cleaner, char c, char *to) {
  if (cleaner->escape_bytes && !byte_continues_escape(cleaner, c)) to = end_escape(cleaner, to);
  if ((unsigned char)c < 0x20) {
    cleaner->control_count++;
    c = ' ';
  }
  if (byte_continues_escape(cleaner, c)) {
    cleaner->escape[cleaner->escape_bytes++] = c;
    const bool goes_on = cleaner->escape_bytes == 1 || cleaner->escape[1] == 'u';
    const bool is_whole = !goes_on || cleaner->escape_bytes == IMPORT_ESCAPE_BYTES;
    return is_whole ? end_escape(cleaner, to) : to;
  }
  to = end_high_surrogate(cleaner, to);
  if (c != '"') return put_whole(cleaner, to, &c, 1);
  cleaner->is_in_string = false;
  *to = c;
  return to + 1;
}

/* Bytes at the front of a string that need no look: most of them. */
static size_t plain_run_bytes(const import_json_cleaner *cleaner, const char *from, size_t count) {
  if (cleaner->escape_bytes || cleaner->has_high || cleaner->is_dropping) return 0;
  const size_t left = cleaner->string_bytes < IMPORT_STRING_BYTES_MAX
                          ? IMPORT_STRING_BYTES_MAX - cleaner->string_bytes
                          : 0,
               most = count < left ? count : left;
  size_t run = 0;
  while (run < most && from[run] != '"' && from[run] != '\\' && (unsigned char)from[run] >= 0x20)
    run++;
  return run;
}

size_t import_json_clean(import_json_cleaner *cleaner, const char *from, size_t count, char *to) {
  char *at = to;
  for (size_t i = 0; i < count; i++) {
    char c = from[i];
    if (cleaner->is_in_string) {
      const size_t run = plain_run_bytes(cleaner, from + i, count - i);
      memcpy(at, from + i, run);
      at += run, i += run, cleaner->string_bytes += run;
      if (i == count) break;
      c = from[i];
      at = clean_string_byte(cleaner, c, at);
    } else if (byte_is_of_word(c)) {
      if (cleaner->word_bytes < IMPORT_WORD_BYTES) cleaner->word[cleaner->word_bytes] = c;
      if (cleaner->word_bytes <= IMPORT_WORD_BYTES) cleaner->word_bytes++;
    } else {
      if (cleaner->word_bytes > 0) at = end_word(cleaner, at);
      if (c == '"') begin_string(cleaner);
      *at++ = c;
    }
  }
  return (size_t)(at - to);
}

size_t import_json_clean_end(import_json_cleaner *cleaner, char *to) {
  char *at = end_word(cleaner, to);
  if (cleaner->has_high) at = put_whole(cleaner, at, cleaner->high, IMPORT_ESCAPE_BYTES);
  at = put_whole(cleaner, at, cleaner->escape, cleaner->escape_bytes);
  cleaner->has_high = false;
  cleaner->escape_bytes = 0;
  return (size_t)(at - to);
}

/* ---- UTF-8 ---- */

/* Bytes of the character that begins there; 0: none does, or it goes on behind the end. */
static size_t character_bytes(const unsigned char *at, size_t left) {
  bool is_well_formed;
  if (at[0] < 0x80) return 1;
  const size_t bytes = prof_i_utf8_bytes(at, left, &is_well_formed);
  return is_well_formed ? bytes : 0;
}

static bool eight_are_ascii(const char *eight) {
  uint64_t word;
  memcpy(&word, eight, sizeof word);
  return (word & UINT64_C(0x8080808080808080)) == 0;
}

bool import_utf8_is(import_text text) {
  enum { CHARACTER_BYTES_MAX = 4 };
  for (size_t i = 0, bytes; i < text.bytes; i += bytes) {
    bytes = sizeof(uint64_t);
    if (text.bytes - i >= bytes && eight_are_ascii(text.data + i)) continue;
    bytes = character_bytes((const unsigned char *)text.data + i, text.bytes - i);
    if (bytes > 0) continue;
    return text.bytes >= IMPORT_STRING_BYTES_MAX && text.bytes - i < CHARACTER_BYTES_MAX;
  }
  return true;
}
