/* See clean.h. */
#include "clean.h"

#include <string.h>
#include <strings.h>

enum { STRING_BYTES_MAX = 1 << 20 };

static bool is_of_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '+' || c == '.';
}

static bool is_no_number(const import_cleaner *cleaner) {
  static const char *const words[] = {"nan", "inf", "infinity"};
  const char *const word = cleaner->word + (cleaner->word[0] == '-' || cleaner->word[0] == '+');
  const size_t bytes = cleaner->word_bytes - (size_t)(word - cleaner->word);
  if (cleaner->word_bytes > IMPORT_WORD_BYTES) return true;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strlen(words[i]) == bytes && strncasecmp(word, words[i], bytes) == 0) return true;
  return false;
}

size_t import_clean_end(import_cleaner *cleaner, char *to) {
  static const char null[] = "null";
  const bool is_none = cleaner->word_bytes > 0 && is_no_number(cleaner);
  const size_t bytes = is_none ? sizeof null - 1 : cleaner->word_bytes;
  memcpy(to, is_none ? null : cleaner->word, bytes);
  cleaner->not_number_count += is_none;
  cleaner->word_bytes = 0;
  return bytes;
}

static void begin_string(import_cleaner *cleaner) {
  cleaner->is_in_string = true;
  cleaner->is_dropping = false;
  cleaner->string_bytes = cleaner->hex_left = 0;
}

/* One byte inside of a string. False: it is left out. */
static bool step(import_cleaner *cleaner, char *c) {
  if (cleaner->is_escape) {
    cleaner->is_escape = false;
    cleaner->hex_left = *c == 'u' ? 4 : 0;
  } else if (*c == '"') {
    cleaner->is_in_string = false;
    return true;
  } else {
    if (cleaner->hex_left > 0) cleaner->hex_left--;
    else if (!cleaner->is_dropping && cleaner->string_bytes >= STRING_BYTES_MAX) cleaner->is_dropping = true, cleaner->cut_count++;
    if (*c == '\\') cleaner->is_escape = true;
  }
  if ((unsigned char)*c < 0x20) {
    cleaner->control_count++;
    *c = ' ';
  }
  cleaner->string_bytes++;
  return !cleaner->is_dropping;
}

/* Bytes at the front of a string that need no look: most of them. */
static size_t plain_run(const import_cleaner *cleaner, const char *from, size_t count) {
  if (cleaner->is_escape || cleaner->hex_left || cleaner->is_dropping) return 0;
  const size_t left = cleaner->string_bytes < STRING_BYTES_MAX ? STRING_BYTES_MAX - cleaner->string_bytes : 0, most = count < left ? count : left;
  size_t run = 0;
  while (run < most && from[run] != '"' && from[run] != '\\' && (unsigned char)from[run] >= 0x20) run++;
  return run;
}

size_t import_clean(import_cleaner *cleaner, const char *from, size_t count, char *to) {
  char *at = to;
  for (size_t i = 0; i < count; i++) {
    char c = from[i];
    if (cleaner->is_in_string) {
      const size_t run = plain_run(cleaner, from + i, count - i);
      memcpy(at, from + i, run);
      at += run, i += run, cleaner->string_bytes += run;
      if (i == count) break;
      c = from[i];
      if (step(cleaner, &c)) *at++ = c;
    } else if (is_of_word(c)) {
      if (cleaner->word_bytes < IMPORT_WORD_BYTES) cleaner->word[cleaner->word_bytes] = c;
      if (cleaner->word_bytes <= IMPORT_WORD_BYTES) cleaner->word_bytes++;
    } else {
      if (cleaner->word_bytes > 0) at += import_clean_end(cleaner, at);
      if (c == '"') begin_string(cleaner);
      *at++ = c;
    }
  }
  return (size_t)(at - to);
}
