/* Two tables that only grow: open addressing over sparse anonymous memory, entries published by
   compare-and-swap. See site.h. */
#define _GNU_SOURCE
#include "site.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../../base/fault.h"
#include "../../base/port.h"
#include "../buffer/arena.h"
#include "../buffer/meta.h"
#include "../buffer/session.h"
#include "../buffer/thread.h"
#include "mute.h"

enum {
  BITS_MIN = 12,           /* of a site's number, where address space is limited */
  NUMBER_BLOCK_BYTES = 64, /* a block has so many bytes for each number */
  /* of address space for each number, all tables together */
  NUMBER_BYTES = 40 + NUMBER_BLOCK_BYTES,
  SPACE_SHARE = 32, /* they take at most one in so many bytes of what is free */
  TEXT_BYTES_MAX = PROF_I_SITE_TEXT_BYTES,
  NAMES_SHARE = 8, /* of names' sites: at most one in so many bytes of a capture's cap */
  /* of an argument's key, and 1000 of a format: a schema is put together on the stack, perhaps a
     handler's */
  KEY_BYTES_MAX = 64,
  FORMAT_BYTES_MAX = 1000,
  SCHEMA_WORDS_MAX = 1 + (2 + FORMAT_BYTES_MAX / 8) + PROF_ARGS_MAX * (1 + 2 + KEY_BYTES_MAX / 8),
  SITE_TEXTS = 4
};

/* What both tables hold: the meta record's words, ready to be written into any arena. */
typedef struct registry_entry {
  uint64_t hash;
  uint32_t number;
  uint32_t kind; /* prof_i_kind */
  uint32_t word_count;
  uint32_t site_word;   /* the site that goes into word 1 */
  uint32_t given_count; /* of an argument's site: as many words at the end */
  /* the call site whose name was made at run time: not copied into every arena. 0: it is one
     itself. Any thread, relaxed */
  uint32_t name_of;
  uint64_t arena; /* the last one that it was written into; any thread, release */
  uint64_t words[];
} registry_entry;

/* What entries are cut from. It stays where it is, full or not: others point into it. */
typedef struct text_block {
  uint64_t used;  /* with this head; more than `bytes` where it is full; any thread, relaxed */
  uint64_t bytes; /* set before it is published */
} text_block;

const prof_i_first_args **prof_i_first_args_by_site;

/* All any thread; pointers published with release, read with acquire. */
static struct {
  uint32_t bits;                 /* of a site's number; 0: not yet decided; once set it stays */
  registry_entry **table;        /* twice as many places as numbers */
  registry_entry **by_number[2]; /* sites, schemas */
  uint32_t count[2];             /* numbers given; 0 is never one */
  text_block *text_block;        /* the newest */
  /* the one in force, for callers that are not past the gate; written with it closed, relaxed */
  uint64_t arena;
  uint64_t name_bytes; /* that names' sites have taken of it; any thread */
} site_table;

static uint32_t decide_bits(uint32_t bits) {
  uint32_t decided = 0;
  const bool is_first = __atomic_compare_exchange_n(&site_table.bits, &decided, bits, false,
                                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return is_first ? bits : decided;
}

static uint32_t site_number_count(void) {
  const uint32_t bits = __atomic_load_n(&site_table.bits, __ATOMIC_RELAXED);
  return 1u << (bits ? bits : decide_bits(PROF_I_SITE_BITS));
}
static uint64_t table_size(void) { return 2ull * site_number_count(); }
static uint64_t number_block_bytes(void) {
  return (uint64_t)NUMBER_BLOCK_BYTES * site_number_count();
}

void prof_i_site_fit(uint64_t free_bytes) {
  uint32_t bits = PROF_I_SITE_BITS;
  while (bits > BITS_MIN && ((uint64_t)NUMBER_BYTES << bits) > free_bytes / SPACE_SHARE) bits--;
  decide_bits(bits);
}

/* Much more than most programs use. Under mlockall(MCL_FUTURE) the kernel would make and lock all
   of it, inside a scope, unless it is unlocked before it may be written to. */
static void *map_lazily(size_t bytes) {
  if (PROF_I_FAULT(MALLOC)) return calloc(1, bytes);
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void *const at = mmap(NULL, bytes, PROT_NONE, flags, -1, 0);
  if (at == MAP_FAILED) return NULL;
  munlock(at, bytes);
  if (mprotect(at, bytes, PROT_READ | PROT_WRITE) == 0) return at;
  munmap(at, bytes);
  return NULL;
}

/* Makes *place point to zeroed memory once; several may try, one wins. */
void *prof_i_site_map_once(void **place, size_t bytes) {
  void *at = __atomic_load_n(place, __ATOMIC_ACQUIRE);
  if (at) return at;
  void *const fresh = map_lazily(bytes);
  if (!fresh) return NULL;
  if (__atomic_compare_exchange_n(place, &at, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    return fresh;
  munmap(fresh, bytes);
  return at;
}

/* Memory that is never given back, of far less than a block. Where that is full, each who finds it
   so makes another, and one wins. */
void *prof_i_site_allot(size_t bytes) {
  bytes = (bytes + 15) & ~(size_t)15;
  for (text_block *from = __atomic_load_n(&site_table.text_block, __ATOMIC_ACQUIRE);;) {
    const uint64_t at = from ? __atomic_fetch_add(&from->used, bytes, __ATOMIC_RELAXED) : 0;
    if (from && at + bytes <= from->bytes) return (char *)from + at;
    text_block *const fresh = map_lazily(number_block_bytes());
    if (!fresh) return NULL;
    *fresh = (text_block){sizeof *fresh, number_block_bytes()};
    if (__atomic_compare_exchange_n(&site_table.text_block, &from, fresh, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
      from = fresh;
    else
      munmap(fresh, fresh->bytes);
  }
}

static uint64_t hash_mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
  return hash ^ hash >> 29;
}

static uint64_t hash_mix_text(uint64_t hash, const char *text, size_t bytes) {
  for (size_t i = 0; i < bytes; i += 8) {
    uint64_t word = 0;
    memcpy(&word, text + i, bytes - i < 8 ? bytes - i : 8);
    hash = hash_mix(hash, word);
  }
  return hash_mix(hash, bytes);
}

bool prof_i_site_has_room_for_name(size_t bytes) {
  return !prof_i_the_arena.base ||
         __atomic_load_n(&site_table.name_bytes, __ATOMIC_RELAXED) + bytes <=
             prof_i_the_arena.cap_bytes / NAMES_SHARE;
}

static bool entry_has_room(const registry_entry *e) {
  const uint64_t bytes = (e->word_count + 4ull) * 8;
  if (!__atomic_load_n(&e->name_of, __ATOMIC_RELAXED)) return true;
  if (!prof_i_site_has_room_for_name(bytes)) return false;
  __atomic_fetch_add(&site_table.name_bytes, bytes, __ATOMIC_RELAXED);
  return true;
}

static void write_entry(registry_entry *e) {
  if (!entry_has_room(e)) return;
  if (prof_i_meta_write((prof_i_kind)e->kind, 0, e->site_word, e->words, e->word_count))
    /* behind the record: whoever reads it may name that */
    __atomic_store_n(&e->arena, prof_i_the_arena.number, __ATOMIC_RELEASE);
}

/* NULL where the capture has no room for it: no record may name what is not there. */
static registry_entry *entry_if_written(registry_entry *e) {
  if (!prof_i_the_arena.base ||
      __atomic_load_n(&e->arena, __ATOMIC_ACQUIRE) == prof_i_the_arena.number)
    return e;
  write_entry(e); /* there may be room by now */
  return __atomic_load_n(&e->arena, __ATOMIC_ACQUIRE) == prof_i_the_arena.number ? e : NULL;
}

static registry_entry *make_entry(size_t count, prof_i_kind kind, uint64_t hash) {
  const int which = kind == PROF_I_KIND_SCHEMA;
  /* Before it takes memory that is never given back. */
  if (__atomic_load_n(&site_table.count[which], __ATOMIC_RELAXED) >= site_number_count() - 1)
    return NULL;
  registry_entry *const e = prof_i_site_allot(sizeof *e + count * sizeof *e->words);
  if (!e) return NULL;
  const uint32_t number = __atomic_add_fetch(&site_table.count[which], 1, __ATOMIC_RELAXED);
  if (number >= site_number_count()) { /* others took the last ones meanwhile */
    __atomic_fetch_sub(&site_table.count[which], 1, __ATOMIC_RELAXED);
    return NULL;
  }
  e->hash = hash;
  e->number = number;
  e->kind = (uint32_t)kind;
  e->word_count = (uint32_t)count;
  e->site_word = which ? 0 : number;
  return e;
}

/* Either table's question: is this the entry asked for, and how is it made? */
typedef struct site_query {
  prof_i_kind kind;
  uint64_t hash;
  size_t word_count;
  const uint64_t *words; /* of a schema */
  uint64_t line_level;   /* of a site */
  const char *texts[SITE_TEXTS];
  size_t bytes[SITE_TEXTS];
  uint32_t name_of;
  uint32_t given_count; /* words of a record that the site has beyond its texts */
  const uint64_t *given;
} site_query;

static bool entry_matches(const registry_entry *e, const site_query *a) {
  if (e->hash != a->hash || e->kind != (uint32_t)a->kind || e->word_count != a->word_count)
    return false;
  /* the first word holds its number, which the asker does not know */
  if (a->kind == PROF_I_KIND_SCHEMA)
    return e->words[0] >> 32 == a->words[0] >> 32 &&
           memcmp(e->words + 1, a->words + 1, (a->word_count - 1) * sizeof *a->words) == 0;
  if (e->words[0] != a->line_level) return false;
  const uint64_t *at = e->words + 1;
  for (int i = 0; i < SITE_TEXTS; i++) {
    if (at[0] != a->bytes[i] || memcmp(at + 1, a->texts[i], a->bytes[i]) != 0) return false;
    at += prof_i_text_words(a->bytes[i]);
  }
  return e->given_count == a->given_count &&
         (!a->given_count || memcmp(at, a->given, a->given_count * sizeof *at) == 0);
}

static void entry_fill(registry_entry *e, const site_query *a) {
  if (a->kind == PROF_I_KIND_SCHEMA) {
    memcpy(e->words, a->words, a->word_count * sizeof *a->words);
    e->words[0] = (e->words[0] & ~0xffffffffull) | e->number;
    return;
  }
  uint64_t *at = e->words;
  *at++ = a->line_level;
  for (int i = 0; i < SITE_TEXTS; i++) at += prof_i_put_text(at, a->texts[i], a->bytes[i]);
  e->given_count = a->given_count;
  if (a->given_count) memcpy(at, a->given, a->given_count * sizeof *at);
}

/* Finds or enters it. Past the gate. NULL when there is no memory, no number left or no room in the
   capture. */
static registry_entry *entry_intern(const site_query *a) {
  const uint64_t size = table_size();
  registry_entry **const table =
      prof_i_site_map_once((void **)&site_table.table, size * sizeof *table);
  const int which = a->kind == PROF_I_KIND_SCHEMA;
  registry_entry **const numbers = prof_i_site_map_once((void **)&site_table.by_number[which],
                                                        site_number_count() * sizeof *numbers);
  if (!table || !numbers) return NULL;
  registry_entry *fresh = NULL;
  bool is_written = false;
  for (uint64_t i = a->hash, tries = 0; tries < size; i++, tries++) {
    registry_entry **const place = &table[i & (size - 1)];
    registry_entry *there = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    if (!there) {
      PROF_I_HOLD_SIGNALS;
      if (!fresh && !(fresh = make_entry(a->word_count, a->kind, a->hash))) return NULL;
      entry_fill(fresh, a);
      fresh->name_of = a->name_of;
      /* Into the capture before anybody can find it: no record may name what is not there. If
         another thread is faster, its number is used, and this one never. */
      if (!is_written && prof_i_the_arena.base) write_entry(fresh);
      is_written = true;
      __atomic_store_n(&numbers[fresh->number], fresh, __ATOMIC_SEQ_CST);
      if (__atomic_compare_exchange_n(place, &there, fresh, false, __ATOMIC_ACQ_REL,
                                      __ATOMIC_ACQUIRE))
        return entry_if_written(fresh);
    }
    if (!entry_matches(there, a)) continue;
    if (!a->name_of)
      __atomic_store_n(&there->name_of, 0, __ATOMIC_RELAXED); /* a call site has it, too */
    return entry_if_written(there); /* a fresh one's number is then never used */
  }
  return NULL;
}

/* The same without the gate: finds only sites that exist and are in the capture. Changes and writes
   nothing. */
static const registry_entry *entry_find(const site_query *a) {
  registry_entry **const table = __atomic_load_n(&site_table.table, __ATOMIC_ACQUIRE);
  const uint64_t size = table_size();
  for (uint64_t i = a->hash, tries = 0; table && tries < size; i++, tries++) {
    const registry_entry *const there = __atomic_load_n(&table[i & (size - 1)], __ATOMIC_ACQUIRE);
    if (!there) return NULL;
    if (entry_matches(there, a))
      return __atomic_load_n(&there->arena, __ATOMIC_ACQUIRE) ==
                     __atomic_load_n(&site_table.arena, __ATOMIC_RELAXED)
                 ? there
                 : NULL;
  }
  return NULL;
}

static registry_entry *intern_site(site_query *a) {
  a->hash = hash_mix(0xcbf29ce484222325ull, a->line_level);
  a->word_count = 1 + a->given_count;
  for (int i = 0; i < SITE_TEXTS; i++) {
    a->hash = hash_mix_text(a->hash, a->texts[i], a->bytes[i]);
    a->word_count += prof_i_text_words(a->bytes[i]);
  }
  a->hash = hash_mix_text(a->hash, (const char *)a->given, a->given_count * sizeof *a->given);
  return entry_intern(a);
}

static registry_entry *query_site(const prof_site *site, const prof_i_site_texts *texts,
                                  uint32_t name_of) {
  const char *const file = site->file ? site->file : "", *const function =
                                                             site->function ? site->function : "";
  site_query a = {.kind = PROF_I_KIND_SITE,
                  .line_level = site->line | (uint64_t)site->level << 32,
                  .texts = {texts->name, texts->category, file, function},
                  .bytes = {texts->name_bytes, texts->category_bytes, strnlen(file, TEXT_BYTES_MAX),
                            strnlen(function, TEXT_BYTES_MAX)},
                  .name_of = name_of};
  return intern_site(&a);
}

uint32_t prof_i_site_number(const prof_site *site, const char *name, const char *category) {
  const prof_i_site_texts texts = {name ? name : "", category ? category : "",
                                   name ? strnlen(name, TEXT_BYTES_MAX) : 0,
                                   category ? strnlen(category, TEXT_BYTES_MAX) : 0};
  const registry_entry *const e = query_site(site, &texts, 0);
  return e ? e->number : 0;
}

static registry_entry *entry_of(uint32_t number) {
  registry_entry **const numbers = __atomic_load_n(&site_table.by_number[0], __ATOMIC_ACQUIRE);
  return numbers && number < site_number_count()
             ? __atomic_load_n(&numbers[number], __ATOMIC_SEQ_CST)
             : NULL;
}

uint32_t prof_i_site_number_of_name(const prof_site *site, uint32_t number,
                                    const prof_i_site_texts *texts) {
  const registry_entry *const e = query_site(site, texts, number);
  return e ? e->number : 0;
}

uint32_t prof_i_site_number_of_argument(uint32_t number, const uint64_t *given, uint32_t count) {
  const registry_entry *const call_site = entry_of(number);
  if (!call_site) return 0;
  const uint64_t *at = call_site->words;
  site_query a = {.kind = PROF_I_KIND_SITE,
                  .line_level = *at++,
                  .name_of = number,
                  .given_count = count,
                  .given = given};
  for (int i = 0; i < SITE_TEXTS; i++, at += prof_i_text_words(*at)) {
    a.texts[i] = (const char *)(at + 1);
    a.bytes[i] = *at;
  }
  const registry_entry *const e = intern_site(&a);
  return e ? e->number : 0;
}

uint32_t prof_i_site_name_of(uint32_t number) {
  const registry_entry *const e = entry_of(number);
  return e ? __atomic_load_n(&e->name_of, __ATOMIC_RELAXED) : 0;
}

uint32_t prof_i_site_for_budget(uint32_t number) {
  const registry_entry *const e = entry_of(number);
  return e && e->given_count ? prof_i_site_name_of(number) : number;
}

bool prof_i_site_is_written(uint32_t number) {
  registry_entry *const e = entry_of(number);
  return e && entry_if_written(e);
}

/* Remembers them, as the schema's own words have them. Not where a text was cut: those are looked
   up each time. */
static void remember_schema(uint32_t site, const registry_entry *schema, const prof_args *args,
                            uint32_t count) {
  const prof_i_first_args **const all =
      prof_i_site_map_once((void **)&prof_i_first_args_by_site, site_number_count() * sizeof *all);
  if (!all || __atomic_load_n(&all[site], __ATOMIC_RELAXED)) return;
  const uint64_t *word = schema->words + 1;
  bool is_whole = *word < FORMAT_BYTES_MAX;
  for (uint32_t i = 0; i < count; i++)
    is_whole &= !args->items[i].key || strnlen(args->items[i].key, KEY_BYTES_MAX) < KEY_BYTES_MAX;
  if (!is_whole) return; /* before it takes memory that is never given back */
  prof_i_first_args *const seen = prof_i_site_allot(sizeof *seen + count * sizeof *seen->items);
  if (!seen) return;
  *seen = (prof_i_first_args){schema->number,           count,       args->kind, (uint32_t)*word,
                              (const char *)(word + 1), args->format};
  word += prof_i_text_words(*word);
  for (uint32_t i = 0; i < count; i++) {
    seen->items[i] =
        (prof_i_first_arg){(const char *)(word + 2), (uint32_t)word[1], (uint32_t)word[0]};
    if (PROF_I_FAULT(BORROWED_KEYS)) seen->items[i].key = args->items[i].key;
    word += 1 + prof_i_text_words(word[1]);
  }
  __atomic_store_n(&all[site], seen, __ATOMIC_RELEASE);
}

static site_query query_schema(const prof_args *args, uint32_t count,
                               uint64_t words[SCHEMA_WORDS_MAX]) {
  size_t used = 0;
  const uint32_t given = args->kind & ~(uint32_t)PROF_I_KEYS_LITERAL;
  const uint64_t kind = given <= PROF_ARGS_LIST ? given : PROF_ARGS_PAIRS;
  words[used++] = kind << 32 | (uint64_t)count << 40;
  used += prof_i_put_text(words + used, args->format ? args->format : "",
                          args->format ? strnlen(args->format, FORMAT_BYTES_MAX) : 0);
  for (uint32_t i = 0; i < count; i++) {
    const char *const key = args->items[i].key ? args->items[i].key : "";
    words[used++] = args->items[i].type;
    used += prof_i_put_text(words + used, key, strnlen(key, KEY_BYTES_MAX));
  }
  return (site_query){.kind = PROF_I_KIND_SCHEMA,
                      .word_count = used,
                      .words = words,
                      .hash = hash_mix_text(7, (const char *)words, used * sizeof *words)};
}

static bool is_same_key(const char *given, const prof_i_first_arg *known) {
  if (!given) return known->key_bytes == 0;
  for (uint32_t i = 0; i < known->key_bytes; i++)
    if (given[i] != known->key[i]) return false;
  return given[known->key_bytes] == '\0';
}

/* The schema that the site remembers, if it is the one asked for and in the capture. Else 0. */
static uint32_t first_args_schema(uint32_t site, const prof_args *args, uint32_t count) {
  const prof_i_first_args *const seen = prof_i_site_first_args(site);
  registry_entry **const numbers = __atomic_load_n(&site_table.by_number[1], __ATOMIC_ACQUIRE);
  if (!seen || !numbers || count != seen->count || args->kind != seen->kind || args->format)
    return 0;
  if (seen->format_bytes > 0) return 0;
  for (uint32_t i = 0; i < count; i++) {
    const prof_arg *const arg = &args->items[i];
    if (arg->type != seen->items[i].type || !is_same_key(arg->key, &seen->items[i])) return 0;
  }
  const registry_entry *const e = __atomic_load_n(&numbers[seen->schema], __ATOMIC_SEQ_CST);
  const uint64_t arena = __atomic_load_n(&site_table.arena, __ATOMIC_RELAXED);
  return e && __atomic_load_n(&e->arena, __ATOMIC_ACQUIRE) == arena ? seen->schema : 0;
}

uint32_t prof_i_schema_number_inside(uint32_t site, const prof_args *args, uint32_t count) {
  uint64_t words[SCHEMA_WORDS_MAX];
  if (!site) return 0;
  const uint32_t seen = first_args_schema(site, args, count);
  if (seen) return seen;
  const site_query a = query_schema(args, count, words);
  const registry_entry *const e = entry_intern(&a);
  if (!e) return 0;
  remember_schema(site, e, args, count);
  return e->number;
}

static uint32_t schema_number_outside(const prof_args *args, uint32_t count) {
  uint64_t words[SCHEMA_WORDS_MAX];
  const site_query a = query_schema(args, count, words);
  const registry_entry *const e = entry_find(&a);
  return e ? e->number : 0;
}

uint32_t prof_i_schema_number(uint32_t site, const prof_args *args, uint32_t count) {
  if (!site) return 0;
  const uint32_t seen = first_args_schema(site, args, count);
  if (seen) return seen;
  if (!prof_i_arena_guard_enter()) return schema_number_outside(args, count);
  /* the fast path comes here, and a refused mmap must not be seen by the host */
  const int saved = errno;
  const uint32_t number = prof_i_schema_number_inside(site, args, count);
  errno = saved;
  prof_i_arena_guard_exit();
  return number;
}

uint32_t prof_i_site_count(void) { return __atomic_load_n(&site_table.count[0], __ATOMIC_RELAXED); }

void prof_i_site_begin_capture(void) {
  __atomic_store_n(&site_table.name_bytes, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&site_table.arena, prof_i_the_arena.number, __ATOMIC_RELAXED);
}

void prof_i_site_copy_all(void) {
  for (int which = 0; which < 2; which++) {
    registry_entry **const numbers =
        __atomic_load_n(&site_table.by_number[which], __ATOMIC_ACQUIRE);
    const uint32_t count = __atomic_load_n(&site_table.count[which], __ATOMIC_ACQUIRE);
    for (uint32_t i = 1; numbers && i <= count; i++) {
      registry_entry *const e = __atomic_load_n(&numbers[i], __ATOMIC_SEQ_CST);
      if (e && !__atomic_load_n(&e->name_of, __ATOMIC_RELAXED)) entry_if_written(e);
    }
  }
}

/* ---- epochs ---- */

void prof_i_site_raise_epoch(void) {
  uint32_t was = prof_i_session_epoch();
  while (!__atomic_compare_exchange_n(&prof_i_the_session.epoch, &was,
                                      was % (PROF_I_EPOCH_MUTED - 1) + 1, false, __ATOMIC_SEQ_CST,
                                      __ATOMIC_SEQ_CST)) {
  }
  prof_i_thread_follow_epoch(was);
}

uint32_t prof_i_site_look_up(prof_site *site, const char *name, const char *category) {
  const uint64_t state = __atomic_load_n(&site->state, __ATOMIC_RELAXED);
  const uint32_t epoch = prof_i_session_epoch();
  if ((state >> 32 & ~(uint64_t)PROF_I_EPOCH_MUTED) == epoch) return (uint32_t)state;
  const uint32_t number = state ? (uint32_t)state : prof_i_site_number(site, name, category);
  if (!number) return 0;
  if (!state) prof_i_mute_check_new_site(number);
  const uint64_t muted = prof_i_mute_is_muted(number) ? PROF_I_EPOCH_MUTED : 0;
  __atomic_store_n(&site->state, (epoch | muted) << 32 | number, __ATOMIC_RELAXED);
  return number;
}

static bool pattern_fits(const char *wanted, const char *text, uint64_t bytes) {
  if (!wanted) return true;
  const size_t length = strlen(wanted);
  if (length > 0 && wanted[length - 1] == '*')
    return bytes >= length - 1 && memcmp(text, wanted, length - 1) == 0;
  return bytes == length && memcmp(text, wanted, length) == 0;
}

bool prof_i_site_texts_fit(const prof_i_site_texts *texts, const char *name, const char *category) {
  return pattern_fits(name, texts->name, texts->name_bytes) &&
         pattern_fits(category, texts->category, texts->category_bytes);
}

bool prof_i_site_fits(uint32_t number, const char *name, const char *category) {
  const registry_entry *const e = entry_of(number);
  if (!e) return false;
  const uint64_t *its_name = e->words + 1;
  const uint64_t *const its_category = its_name + prof_i_text_words(its_name[0]),
                        *const its_file = its_category + prof_i_text_words(its_category[0]);
  /* its names are made at run time: the function's stands instead, as in traces */
  if (its_name[0] == 0) its_name = its_file + prof_i_text_words(its_file[0]);
  const prof_i_site_texts texts = {(const char *)(its_name + 1), (const char *)(its_category + 1),
                                   its_name[0], its_category[0]};
  return prof_i_site_texts_fit(&texts, name, category);
}
