/* See internal.h. */
#include "internal.h"

#include "../../src/base/text.h"
#include "json_cleaner.h"

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
