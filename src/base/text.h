/* Text in the caller's memory, for files and programs: JSON strings out of any bytes, numbers
   without printf and without the locale, hashes, and paths with marks. Pure functions. They know
   nothing of files or formats. Any thread. Text for people is in display.h. */
#ifndef PROF_BASE_TEXT_H
#define PROF_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What any of the number writers below may touch at `to`; they return the end of what counts. */
enum { PROF_I_NUMBER_ROOM = 32 };

/* JSON numbers are doubles to most readers: an integer past this does not survive, and is written
   as a string. */
#define PROF_I_EXACT_MAX ((uint64_t)1 << 53)

char *prof_i_put_u64(char *to, uint64_t value);
char *prof_i_put_i64(char *to, int64_t value);
char *prof_i_put_hex(char *to, uint64_t value); /* 0x1f */
/* microseconds, always three decimals: 12.345 */
char *prof_i_put_us(char *to, uint64_t ns);
/* The shortest of 15, 16 or 17 digits that reads back as the same double, never without a point or
   an exponent. value is finite. */
char *prof_i_put_double(char *to, double value);

/* In any locale. */
static inline bool prof_i_is_digit(char c) { return c >= '0' && c <= '9'; }

/* The length of the UTF-8 character at `s`, which is not ASCII; `left` bytes of text are there. If
   it is ill-formed, the length of its maximal subpart (Unicode, table 3-7). */
size_t prof_i_utf8_bytes(const unsigned char *s, size_t left, bool *is_well_formed_out);

/* The same for any character. *code_out is its code point, or PROF_I_UTF8_ILL_FORMED. */
#define PROF_I_UTF8_ILL_FORMED UINT32_MAX
size_t prof_i_utf8_decode(const char *s, size_t left, uint32_t *code_out);

/* Reads the character at *at and moves *at and *left past it. *left is at least 1. Returns the
   character's bytes. For ill-formed bytes and for NUL, which ends C strings, it returns U+FFFD. */
typedef struct prof_i_utf8_character {
  const char *data;
  size_t bytes;
} prof_i_utf8_character;

static inline prof_i_utf8_character prof_i_utf8_take(const char **at, size_t *left) {
  bool is_right = true;
  prof_i_utf8_character taken = {*at, 1};
  if ((unsigned char)**at >= 0x80)
    taken.bytes = prof_i_utf8_bytes((const unsigned char *)*at, *left, &is_right);
  else
    is_right = **at != 0;
  *at += taken.bytes;
  *left -= taken.bytes;
  return is_right ? taken : (prof_i_utf8_character){"\xef\xbf\xbd", 3};
}

/* Writes text as the inside of a JSON string. It is valid UTF-8, whatever the bytes were: one
   U+FFFD for each maximal subpart of an ill-formed sequence, as Unicode recommends. Controls,
   U+2028 and U+2029 are escaped, and all that could end or open a <script>. Begins at text[*at],
   stops when the text or the room ends, and moves *at to where it stopped. Returns the bytes
   written. A room of PROF_I_ESCAPE_ROOM is enough to get on. */
enum { PROF_I_ESCAPE_ROOM = 16 };
size_t prof_i_escape(char *to, size_t room, const char *text, size_t bytes, size_t *at);

/* The eight decimal digits of a value below 10^8 as bytes 0 to 9, the first digit in the lowest
   byte. Two, four, then eight digits are split at once. A division by 100 or 10 is a multiplication
   and a shift. */
static inline uint64_t prof_i_eight_digits(uint32_t value) {
  const uint64_t fours = value / 10000u | (uint64_t)(value % 10000u) << 32;
  const uint64_t hundreds = fours * 10486u >> 20 & 0x0000007f0000007fu;
  const uint64_t twos = hundreds | (fours - hundreds * 100u) << 16;
  const uint64_t tens = twos * 103u >> 10 & 0x000f000f000f000fu;
  return tens | (twos - tens * 10u) << 8;
}

#define PROF_I_EIGHT_ZEROS 0x3030303030303030u /* added to digits, makes them text */

/* ---- composing ---- */

/* Text put together in a room of fixed size. Where a scope may come, printf does not do: it takes a
   kilobyte of stack and is not async-signal-safe. Signal-safe; no lock, no allocation. */

typedef struct prof_i_compose {
  char *to; /* always ends with a NUL */
  size_t room, bytes;
  bool is_cut; /* something did not fit */
} prof_i_compose;

/* Begins an empty text. The room is 1 byte at least, NUL included. */
static inline prof_i_compose prof_i_compose_in(char *to, size_t room) {
  to[0] = '\0';
  return (prof_i_compose){.to = to, .room = room};
}

void prof_i_compose_bytes(prof_i_compose *text, const char *from, size_t bytes);
void prof_i_compose_text(prof_i_compose *text, const char *from);
void prof_i_compose_number(prof_i_compose *text, uint64_t number);

/* ---- hashes ---- */

/* FNV-1a, for tables of names. Any thread. It has no secret seed: whoever writes a file can choose
   names whose hashes are equal. This holds for such a file:
   - Tables of src/ compare the names themselves. They become slow (docs/limits.md), never wrong.
   - tools/import keeps some names by 64 bits of hash. Equal hashes mix up rows of that file alone.
   - Memory stays within its bounds. */

#define PROF_I_HASH32_SEED UINT32_C(2166136261)
#define PROF_I_HASH64_SEED UINT64_C(14695981039346656037)

/* hash: the seed, or what was hashed before */
static inline uint32_t prof_i_hash32(uint32_t hash, const char *bytes, size_t count) {
  for (size_t i = 0; i < count; i++) hash = (hash ^ (unsigned char)bytes[i]) * UINT32_C(16777619);
  return hash;
}

static inline uint64_t prof_i_hash64(uint64_t hash, const char *bytes, size_t count) {
  for (size_t i = 0; i < count; i++)
    hash = (hash ^ (unsigned char)bytes[i]) * UINT64_C(1099511628211);
  return hash;
}

/* ---- paths with marks ---- */

/* Paths with marks: %p process id, %h host, %r rank, %% a percent sign. Any other % stays as it is,
   because it is a legal part of a name. Used for outputs and for capture files. Also endings.
   Signal-safe. */

typedef struct prof_i_path_words {
  uint32_t pid;
  int32_t rank;     /* below 0: unknown, written as 0 */
  const char *host; /* a slash in it becomes '_' */
} prof_i_path_words;

enum { PROF_I_PATH_BYTES = 4096 }; /* enough for any path that the kernel takes, with the NUL */

/* Has the pattern a place of this letter? */
bool prof_i_path_has(const char *pattern, char letter);

/* PROF_OK, or PROF_E_INVALID with its text set when the result does not fit in `room`, NUL
   included; `to` is then "". */
int prof_i_expand_path(const char *pattern, const prof_i_path_words *words, char *to, size_t room);

/* "a.json.gz" ends in ".json.gz". An ending alone is no name. */
bool prof_i_path_ends_in(const char *path, const char *ending);

#endif
