/* See internal.h. */
#include "internal.h"

#include "json_cleaner.h"

static bool byte_is_continuation(unsigned char byte) { return (byte & 0xc0) == 0x80; }

/* Bytes of the character that begins there; 0: none does, or it goes on behind the end. */
static size_t character_bytes(const unsigned char *at, size_t left) {
  /* The least and the largest second byte are others behind some first bytes. */
  unsigned char least = 0x80, most = 0xbf;
  size_t bytes = 2;
  if (at[0] < 0x80) return 1;
  if (at[0] < 0xc2 || at[0] > 0xf4) return 0;
  if (at[0] >= 0xe0) bytes = 3;
  if (at[0] >= 0xf0) bytes = 4;
  if (at[0] == 0xe0) least = 0xa0;
  if (at[0] == 0xed) most = 0x9f;
  if (at[0] == 0xf0) least = 0x90;
  if (at[0] == 0xf4) most = 0x8f;
  if (left < bytes || at[1] < least || at[1] > most) return 0;
  for (size_t i = 2; i < bytes; i++)
    if (!byte_is_continuation(at[i])) return 0;
  return bytes;
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
