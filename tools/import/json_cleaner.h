/* Mends invalid JSON that writers of traces produce, before the parser sees it: bare NaN and
   Infinity, raw control bytes in strings. Escaped halves of surrogate pairs are no characters, and
   become U+FFFD. Bounds the memory, too: strings of more than 1 MiB are cut, numbers of more than
   64 digits become null. */
#ifndef PROF_IMPORT_CLEAN_H
#define PROF_IMPORT_CLEAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  IMPORT_WORD_BYTES = 64,
  IMPORT_ESCAPE_BYTES = 6, /* \u0041 */
  IMPORT_STRING_BYTES_MAX = 1 << 20
};

typedef struct import_json_cleaner {
  bool is_in_string, is_dropping;
  size_t string_bytes, word_bytes;
  char word[IMPORT_WORD_BYTES + 1]; /* a bare word or number that has not ended */
  unsigned escape_bytes;
  char escape[IMPORT_ESCAPE_BYTES]; /* of a string, one that has not ended */
  bool has_high;
  char high[IMPORT_ESCAPE_BYTES]; /* the first half of a pair, which waits for the other */
  uint64_t not_number_count, control_count, cut_count, surrogate_count;
} import_json_cleaner;

/* to: room for import_json_clean_room(count). Returns how many bytes it has. */
size_t import_json_clean(import_json_cleaner *cleaner, const char *from, size_t count, char *to);
static inline size_t import_json_clean_room(size_t count) {
  return 2 * count + 2 * IMPORT_WORD_BYTES;
}

/* What the last bytes held back. */
size_t import_json_clean_end(import_json_cleaner *cleaner, char *to);

#endif
