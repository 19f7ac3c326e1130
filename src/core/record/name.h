/* Names made at run time that come again. Each gets a site of its own, with the file, line and
   function of its call site. So its second scope is a plain one of 16 bytes, and mutes and the
   budget find it. The text of a call site's only argument gets one, too, but mutes and the budget
   take its scopes for the call site's. Names are found by hash, length and text. An address does
   not tell: it may come again with another text. A name that comes only once is copied into its
   record. A mark remembers it until another name takes the mark. Bounded: PROF_I_NAMES_MAX names a
   process, an eighth of a capture's cap; a name beyond them is copied. No lock, no malloc, nothing
   of the module that the text came from. */
#ifndef PROF_CORE_RECORD_NAME_H
#define PROF_CORE_RECORD_NAME_H

#include <prof/scope.h>
#include <stdbool.h>
#include <string.h>

#include "../../base/port.h"
#include "../../format/layout.h"
#include "../buffer/thread.h"

enum {
  PROF_I_NAME_TABLE_SIZE = 1 << 16,
  PROF_I_NAMES_MAX = PROF_I_NAME_TABLE_SIZE / 2,
  PROF_I_ARGUMENTS_MAX = PROF_I_NAMES_MAX / 2, /* of them, texts of arguments */
  PROF_I_NAME_MARKS = 1 << 15,
  PROF_I_NAME_TRIES = 8,        /* places from the hash's own on */
  PROF_I_NAME_TEXT_BYTES = 128, /* longer ones are copied */
  PROF_I_NAME_MISSES_MAX = 256, /* texts looked up in vain, before a thread looks up fewer */
  PROF_I_NAME_MISSES_STEP = 64  /* of that many then one */
};

/* Never changed once published, but for its state; never freed. */
typedef struct prof_i_name {
  uint64_t hash;
  /* as a call site's, with its own site's number, or 0: the capture has no room for that. Any
     thread; release, acquire */
  uint64_t state;
  uint64_t of; /* the call site's number; of an argument's text with schema << 32, and no name */
  uint32_t name_bytes, category_bytes; /* 0: the call site's own */
  uint32_t number;                     /* of its own site */
  uint64_t words[];                    /* both texts, each with a NUL and padded with zeros */
} prof_i_name;

/* Any thread. */
typedef struct prof_i_names {
  prof_i_name **places; /* NULL until there is one */
  uint32_t count, arguments;
  uint32_t watch; /* a mute is in force: it must see names that are not known */
  uint32_t marks[PROF_I_NAME_MARKS];
} prof_i_names;
extern prof_i_names prof_i_the_names __attribute__((visibility("hidden")));

/* What a look-up searches for. A text that the call site has is empty here. */
typedef struct prof_i_name_key {
  const char *name, *category;
  uint32_t name_bytes, category_bytes;
  uint64_t of; /* as in prof_i_name */
  uint64_t hash;
} prof_i_name_key;

/* The last `left` bytes of a text of `bytes`, from `at` on, padded with zeros. Nothing is read
   beyond the text. left: 1 to 7. */
static inline uint64_t prof_i_text_tail(const char *at, uint32_t left, uint32_t bytes) {
  if (bytes >= 8) { /* the last eight, of which the first have been seen */
    uint64_t word;
    memcpy(&word, at + left - 8, 8);
    return word >> 8 * (8 - left);
  }
  if (left >= 4) {
    uint32_t first, last;
    memcpy(&first, at, 4);
    memcpy(&last, at + left - 4, 4);
    return first | (uint64_t)last << 8 * (left - 4);
  }
  const unsigned char *const byte = (const unsigned char *)at;
  return byte[0] | (uint64_t)byte[left / 2] << 8 * (left / 2) |
         (uint64_t)byte[left - 1] << 8 * (left - 1);
}

static inline uint64_t prof_i_name_mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
  return hash ^ hash >> 32;
}

static inline uint64_t prof_i_name_mix_text(uint64_t hash, const char *text, uint32_t bytes) {
  uint32_t left = bytes;
  for (; left >= 8; left -= 8, text += 8) {
    uint64_t word;
    memcpy(&word, text, 8);
    hash = prof_i_name_mix(hash, word);
  }
  return left ? prof_i_name_mix(hash, prof_i_text_tail(text, left, bytes)) : hash;
}

static inline __attribute__((always_inline)) void prof_i_name_hash(prof_i_name_key *key) {
  const uint64_t seed = prof_i_name_mix(0xcbf29ce484222325ull ^ key->of,
                                        (uint64_t)key->name_bytes << 32 | key->category_bytes);
  const uint64_t all = prof_i_name_mix_text(prof_i_name_mix_text(seed, key->name, key->name_bytes),
                                            key->category, key->category_bytes);
  key->hash = prof_i_name_mix(all, 0); /* the last word's upper bytes reach the lower bits */
}

static inline bool prof_i_name_is_text(const uint64_t *words, const char *text, uint32_t bytes) {
  uint32_t left = bytes;
  for (; left >= 8; left -= 8, text += 8) {
    uint64_t word;
    memcpy(&word, text, 8);
    if (word != *words++) return false;
  }
  return !left || prof_i_text_tail(text, left, bytes) == *words;
}

/* Words that a text takes there. */
static inline uint32_t prof_i_name_words(uint32_t bytes) { return bytes / 8 + 1; }
static inline const char *prof_i_name_category(const prof_i_name *name) {
  return (const char *)(name->words + prof_i_name_words(name->name_bytes));
}

/* Which of a thread's recent names is tried first: by the text's address, which is a guess, for the
   texts are compared. */
static inline const prof_i_name **prof_i_name_recent(prof_i_thread *thread, const char *text) {
  const uint64_t address = (uint64_t)(uintptr_t)text;
  return &thread->recent[(address ^ address >> 5) % PROF_I_RECENT_NAMES];
}

/* NULL: the name is not in the table. */
static inline prof_i_name *prof_i_name_find(const prof_i_name_key *key) {
  prof_i_name **const places = __atomic_load_n(&prof_i_the_names.places, __ATOMIC_ACQUIRE);
  for (uint64_t i = key->hash, tries = 0; places && tries < PROF_I_NAME_TRIES; i++, tries++) {
    prof_i_name *const name =
        __atomic_load_n(&places[i % PROF_I_NAME_TABLE_SIZE], __ATOMIC_ACQUIRE);
    if (!name) return NULL;
    if (name->hash == key->hash && name->of == key->of && name->name_bytes == key->name_bytes &&
        name->category_bytes == key->category_bytes &&
        prof_i_name_is_text(name->words, key->name, key->name_bytes) &&
        prof_i_name_is_text(name->words + prof_i_name_words(key->name_bytes), key->category,
                            key->category_bytes))
      return name;
  }
  return NULL;
}

/* A mark is the hash's upper half. Its complement says that the table has no place for the name. */
static inline uint32_t prof_i_name_mark(uint64_t hash) { return (uint32_t)(hash >> 32) | 1; }
static inline uint32_t *prof_i_name_mark_of(uint64_t hash) {
  return &prof_i_the_names.marks[hash % PROF_I_NAME_MARKS];
}

/* A text is marked when it comes first, and learnt when it comes again. True: learn it now. */
static inline bool prof_i_name_is_repeated(uint64_t hash) {
  uint32_t *const place = prof_i_name_mark_of(hash);
  const uint32_t mark = prof_i_name_mark(hash), there = __atomic_load_n(place, __ATOMIC_RELAXED);
  if (there != mark && there != ~mark) __atomic_store_n(place, mark, __ATOMIC_RELAXED);
  return there == mark;
}

/* Is a name that is not in the table to be copied? It is when it comes first, or when the table is
   full. Otherwise the slow path learns it. */
static inline bool prof_i_name_is_new(uint64_t hash) {
  uint32_t *const place = prof_i_name_mark_of(hash);
  const uint32_t mark = prof_i_name_mark(hash), there = __atomic_load_n(place, __ATOMIC_RELAXED);
  if (PROF_I_UNLIKELY(__atomic_load_n(&prof_i_the_names.watch, __ATOMIC_RELAXED))) return false;
  if (there == mark) return false;
  if (there != ~mark) __atomic_store_n(place, mark, __ATOMIC_RELAXED);
  return true;
}

/* How many of the texts of that call site, and of those that share its count, this thread has
   looked up in vain. */
static inline uint16_t *prof_i_name_miss_count(prof_i_thread *thread, uint64_t of) {
  return &thread->name_misses[of % PROF_I_NAME_MISS_COUNTS];
}

/* If each text is new, to look it up costs as much as to copy it: the tables are not in the caches.
   So after 256 failed look-ups for a call site, a thread looks up one text of 64 there. This ends
   when a text is known or repeated. While a mute is in force, each text is looked up. `of`: the
   call site's number, as in prof_i_name. */
static inline bool prof_i_name_is_worth_look_up(prof_i_thread *thread, uint64_t of) {
  uint16_t *const count = prof_i_name_miss_count(thread, of);
  const uint32_t vain = *count;
  if (PROF_I_LIKELY(vain < PROF_I_NAME_MISSES_MAX)) return true;
  const uint32_t next = vain + 1;
  *count =
      (uint16_t)(next < PROF_I_NAME_MISSES_MAX + PROF_I_NAME_MISSES_STEP ? next
                                                                         : PROF_I_NAME_MISSES_MAX);
  return vain == PROF_I_NAME_MISSES_MAX ||
         PROF_I_UNLIKELY(__atomic_load_n(&prof_i_the_names.watch, __ATOMIC_RELAXED));
}

/* What such a look has found. */
static inline void prof_i_name_count_look_up(prof_i_thread *thread, uint64_t of, bool is_in_vain) {
  uint16_t *const count = prof_i_name_miss_count(thread, of);
  if (!is_in_vain)
    *count = 0;
  else if (*count < PROF_I_NAME_MISSES_MAX)
    ++*count;
}

/* The key of a scope's texts. False: none of them can be learnt, so they are copied. */
static inline __attribute__((always_inline)) bool prof_i_name_key_of(prof_i_name_key *key,
                                                                     const prof_details *details,
                                                                     uint32_t site) {
  const uint32_t literal_flags = details->flags & (PROF_I_NAME_LITERAL | PROF_I_CATEGORY_LITERAL);
  *key = (prof_i_name_key){details->name, details->category, 0, 0, site, 0};
  if (literal_flags == (PROF_I_NAME_LITERAL | PROF_I_CATEGORY_LITERAL) || !site) return false;
  if (!(literal_flags & PROF_I_NAME_LITERAL)) {
    if (!key->name) return false;
    key->name_bytes = details->name_bytes != PROF_NUL_TERMINATED
                          ? details->name_bytes
                          : (uint32_t)strnlen(key->name, PROF_I_NAME_TEXT_BYTES + 1);
    if (key->name_bytes == 0 || key->name_bytes > PROF_I_NAME_TEXT_BYTES)
      return false; /* without a name, a site shows its function's */
  }
  if (!(literal_flags & PROF_I_CATEGORY_LITERAL)) {
    if (!key->category) return false;
    key->category_bytes = details->category_bytes != PROF_NUL_TERMINATED
                              ? details->category_bytes
                              : (uint32_t)strnlen(key->category, PROF_I_NAME_TEXT_BYTES + 1);
    if (key->category_bytes > PROF_I_NAME_TEXT_BYTES) return false;
  }
  prof_i_name_hash(key);
  return true;
}

static inline bool prof_i_name_is_given(const char *known, uint32_t known_bytes, const char *text,
                                        uint32_t bytes) {
  return text &&
         (bytes == PROF_NUL_TERMINATED
              ? strcmp(known, text) == 0
              : bytes == known_bytes &&
                    prof_i_name_is_text((const uint64_t *)(const void *)known, text, bytes));
}
/* Are these the texts of a scope of that call site? */
static inline bool prof_i_name_is_of(const prof_i_name *name, const prof_details *details,
                                     uint32_t site) {
  return name->of == site &&
         (details->flags & PROF_I_NAME_LITERAL ||
          prof_i_name_is_given((const char *)name->words, name->name_bytes, details->name,
                               details->name_bytes)) &&
         (details->flags & PROF_I_CATEGORY_LITERAL ||
          prof_i_name_is_given(prof_i_name_category(name), name->category_bytes, details->category,
                               details->category_bytes));
}

/* What is to become of a scope's texts. */
typedef enum prof_i_name_route {
  PROF_I_NAME_COPY = 0,
  PROF_I_NAME_SITE = 1, /* the number stands for them */
  PROF_I_NAME_MUTED = 2
} prof_i_name_route;

/* Learns the name where it comes again, or brings its state up to date. The call site has that
   number. Past the gate, any thread. Signal-safe. */
PROF_I_COLD prof_i_name_route prof_i_name_look_up(const prof_site *site, uint32_t number,
                                                  const prof_details *details,
                                                  uint32_t *number_out);

/* Learns the text of an argument where it comes again, or brings its state up to date. From outside
   of the gate. Signal-safe, keeps errno. */
PROF_I_COLD void prof_i_name_look_up_argument(const prof_i_name_key *key);

/* Does the table hold names? Then their sites are written again in another arena. */
static inline bool prof_i_name_is_any(void) {
  return __atomic_load_n(&prof_i_the_names.count, __ATOMIC_RELAXED) != 0;
}

#endif
