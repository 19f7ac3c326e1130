/* See tokenizer.h. One pass over the text: code points are folded into the word at hand, which is
   cut into pieces when it ends. The word lives in a fixed buffer, so encoding allocates nothing.
   SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L

#include "tokenizer.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unicode.h"

enum {
  NO_TOKEN = -1,
  VOCABULARY_BYTES_MAX = 64 << 20,
  WORD_BYTES_MAX = TOKENIZER_WORD_CHARS_MAX * UNICODE_UTF8_MAX
};

typedef enum special {
  SPECIAL_PAD,
  SPECIAL_UNKNOWN,
  SPECIAL_BEGIN,
  SPECIAL_END,
  SPECIAL_MASK,
  SPECIAL_COUNT
} special;

static const char *const special_texts[SPECIAL_COUNT] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]",
                                                         "[MASK]"};

typedef struct slot {
  const char *text; /* NULL: free */
  uint32_t bytes;
  int32_t id;
} slot;

struct tokenizer {
  char *file; /* the vocabulary's text; slots point into it */
  size_t file_bytes;
  slot *slots;       /* open addressing, at most half full */
  size_t slot_count; /* a power of two */
  int64_t token_count;
  int32_t specials[SPECIAL_COUNT];
};

typedef struct encoding {
  const tokenizer *tokenizer;
  int32_t *ids;
  int64_t count;
  int64_t capacity; /* without room for [SEP] */
  bool was_cut;
  char word[2 + WORD_BYTES_MAX]; /* behind room for "##" */
  /* ends[i]: where the first i characters end, in word + 2 */
  size_t ends[TOKENIZER_WORD_CHARS_MAX + 1];
  size_t chars; /* of the word; past the maximum it only counts */
} encoding;

static uint64_t hash(const char *text, size_t bytes) {
  uint64_t h = 0xCBF29CE484222325u; /* FNV-1a */
  for (size_t i = 0; i < bytes; i++) h = (h ^ (unsigned char)text[i]) * 0x100000001B3u;
  return h ^ h >> 32;
}

static slot *find_slot(const tokenizer *t, const char *text, size_t bytes) {
  size_t i = hash(text, bytes) & (t->slot_count - 1);
  while (t->slots[i].text != NULL &&
         (t->slots[i].bytes != bytes || memcmp(t->slots[i].text, text, bytes) != 0))
    i = (i + 1) & (t->slot_count - 1);
  return &t->slots[i];
}

static int32_t find_token(const tokenizer *t, const char *text, size_t bytes) {
  const slot *s = find_slot(t, text, bytes);
  return s->text == NULL ? NO_TOKEN : s->id;
}

static int read_file(const char *path, tokenizer *t, failure *why) {
  FILE *stream = fopen(path, "rbe");
  if (stream == NULL) return failure_set(why, "%s: %s", path, strerror(errno));
  size_t room = 0;
  while (!feof(stream) && !ferror(stream) && t->file_bytes <= VOCABULARY_BYTES_MAX) {
    room = room == 0 ? 1 << 18 : room * 2;
    char *grown = realloc(t->file, room);
    if (grown == NULL) break;
    t->file = grown;
    t->file_bytes += fread(grown + t->file_bytes, 1, room - t->file_bytes, stream);
  }
  const bool is_whole = feof(stream) && !ferror(stream);
  fclose(stream);
  return is_whole
             ? 0
             : failure_set(why, "%s: cannot be read whole (%zu bytes read)", path, t->file_bytes);
}

static size_t count_lines(const tokenizer *t) {
  size_t count = 1;
  for (size_t i = 0; i < t->file_bytes; i++) count += t->file[i] == '\n';
  return count;
}

static int index_lines(tokenizer *t, failure *why) {
  const size_t lines = count_lines(t);
  for (t->slot_count = 16; t->slot_count < 2 * lines;) t->slot_count *= 2;
  t->slots = calloc(t->slot_count, sizeof *t->slots);
  if (t->slots == NULL) return failure_set(why, "no memory for a vocabulary of %zu tokens", lines);
  for (const char *line = t->file, *end = t->file + t->file_bytes; line < end;) {
    const char *stop = memchr(line, '\n', (size_t)(end - line));
    if (stop == NULL) stop = end;
    const size_t bytes = (size_t)(stop - line);
    slot *s = find_slot(t, line, bytes);
    *s = (slot){line, (uint32_t)bytes, (int32_t)t->token_count++};
    line = stop + 1;
  }
  return 0;
}

static int find_specials(const char *path, tokenizer *t, failure *why) {
  for (int i = 0; i < SPECIAL_COUNT; i++) {
    t->specials[i] = find_token(t, special_texts[i], strlen(special_texts[i]));
    if (t->specials[i] == NO_TOKEN)
      return failure_set(why, "%s: no %s among its tokens", path, special_texts[i]);
  }
  return 0;
}

static void put_id(encoding *e, int32_t id) {
  if (e->count < e->capacity)
    e->ids[e->count++] = id;
  else
    e->was_cut = true;
}

/* The longest token that the word's characters from `from` on begin with; returns where it ends, or
   0 for none. */
static size_t find_longest(encoding *e, size_t from, int32_t *id_out) {
  char *begin = e->word + 2 + e->ends[from];
  if (from > 0) {
    /* A piece inside a word is written "##ing" in the vocabulary. The marks go over the two bytes
       in front of it, which belong to pieces that are found already. */
    begin -= 2;
    memcpy(begin, "##", 2);
  }
  size_t to = e->chars;
  for (; to > from; to--) {
    *id_out = find_token(e->tokenizer, begin, (size_t)(e->word + 2 + e->ends[to] - begin));
    if (*id_out != NO_TOKEN) break;
  }
  return to > from ? to : 0;
}

/* A word with any piece that is not in the vocabulary is one [UNK], so the pieces are kept until
   all are found. */
static void end_word(encoding *e) {
  if (e->chars == 0) return;
  const int32_t unknown = e->tokenizer->specials[SPECIAL_UNKNOWN];
  int32_t pieces[TOKENIZER_WORD_CHARS_MAX];
  size_t count = 0, at = 0;
  bool is_known = e->chars <= TOKENIZER_WORD_CHARS_MAX;
  while (is_known && at < e->chars) {
    at = find_longest(e, at, &pieces[count]);
    is_known = at != 0;
    count++;
  }
  if (!is_known) put_id(e, unknown);
  for (size_t i = 0; is_known && i < count; i++) put_id(e, pieces[i]);
  e->chars = 0;
}

static void put_char(encoding *e, uint32_t code) {
  if (e->chars < TOKENIZER_WORD_CHARS_MAX) {
    const size_t at = e->ends[e->chars];
    e->ends[e->chars + 1] = at + unicode_encode(code, e->word + 2 + at);
  }
  e->chars++;
}

static void put_code_point(encoding *e, uint32_t code) {
  if (unicode_is_blank(code)) {
    end_word(e);
    return;
  }
  if (unicode_is_dropped(code)) return;
  const bool is_ideograph = unicode_is_ideograph(code);
  uint32_t folded[UNICODE_FOLD_MAX];
  const size_t count = unicode_fold(code, folded);
  for (size_t i = 0; i < count; i++) {
    const bool is_alone = is_ideograph || unicode_is_punctuation(folded[i]);
    if (is_alone) end_word(e);
    put_char(e, folded[i]);
    if (is_alone) end_word(e);
  }
}

/* A special token written out in the text is that token, as in Hugging Face's; returns its bytes,
   or 0. */
static size_t put_special(encoding *e, const char *text, size_t bytes) {
  for (int i = 0; i < SPECIAL_COUNT; i++) {
    const size_t length = strlen(special_texts[i]);
    if (length > bytes || memcmp(text, special_texts[i], length) != 0) continue;
    end_word(e);
    put_id(e, e->tokenizer->specials[i]);
    return length;
  }
  return 0;
}

int tokenizer_open(const char *path, tokenizer **tokenizer_out, failure *why) {
  tokenizer *t = calloc(1, sizeof *t);
  if (t == NULL) return failure_set(why, "%s: no memory", path);
  if (read_file(path, t, why) != 0 || index_lines(t, why) != 0 ||
      find_specials(path, t, why) != 0) {
    tokenizer_close(t);
    return -1;
  }
  *tokenizer_out = t;
  return 0;
}

void tokenizer_close(tokenizer *t) {
  if (t == NULL) return;
  free(t->file);
  free(t->slots);
  free(t);
}

int64_t tokenizer_vocabulary_count(const tokenizer *t) { return t->token_count; }

int64_t tokenizer_encode(const tokenizer *t, const char *text, size_t bytes, int32_t *ids,
                         int64_t capacity, int *was_cut_out) {
  encoding e = {.tokenizer = t, .ids = ids, .capacity = capacity - 1};
  put_id(&e, t->specials[SPECIAL_BEGIN]);
  for (size_t at = 0; at < bytes && !e.was_cut;) {
    size_t used = text[at] == '[' ? put_special(&e, text + at, bytes - at) : 0;
    if (used == 0) {
      uint32_t code;
      used = unicode_decode(text + at, bytes - at, &code);
      put_code_point(&e, code);
    }
    at += used;
  }
  end_word(&e);
  ids[e.count++] = t->specials[SPECIAL_END];
  if (was_cut_out != NULL) *was_cut_out = e.was_cut;
  return e.count;
}
