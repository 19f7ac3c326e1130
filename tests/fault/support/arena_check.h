/* Reads the bytes of a capture straight from src/format/layout.h: an oracle that shares no line
   with src/reader. It believes nothing: whatever the layout does not allow is a fault, told with
   its offset. The bytes must stand still meanwhile: a stopped process's, a dead one's, or a copy. A
   header only, since each test is one file. */
#ifndef PROF_TESTS_ARENA_CHECK_H
#define PROF_TESTS_ARENA_CHECK_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <prof/profiler.h>

#include "format/layout.h"

/* A committed record of a thread: scope, instant, counter, flow or step. */
typedef struct arena_record {
  uint64_t start, duration; /* ticks */
  uint32_t kind;            /* prof_i_kind; a plain scope is PROF_I_KIND_SCOPE */
  uint32_t site, flags, schema;
  uint64_t thread; /* serial, as the last OWNER record before it says */
  uint64_t offset; /* in the arena */
  const uint64_t *values;
  uint64_t value_words;
  const char *name, *category; /* at run time; NULL: the site's */
  uint64_t name_bytes, category_bytes;
  const char *text; /* its only value, of PROF_I_KIND_TEXT; else NULL */
  uint64_t text_bytes;
} arena_record;

typedef struct arena_open {
  uint64_t start;
  uint32_t site;
  uint64_t thread;
  uint64_t index;          /* of its entry: 1 is the outermost */
  const uint64_t *payload; /* word 2 of its record and on; NULL: plain */
  uint64_t payload_words;
} arena_open;

/* What every reader sees, and what it leaves out. */
typedef struct arena_seen {
  uint64_t records, opens;
  uint64_t cleared;    /* committed, but ended at or before clear_ticks */
  uint64_t unfinished; /* 16-byte places that were claimed and hold nothing committed */
  uint64_t remade;     /* chunks that are being made anew */
  uint64_t chunks, slots;
  uint64_t lost[PROF_I_LOSS_WORDS]; /* slots and ledger */
  uint64_t deep;
  uint64_t meta_sum; /* over all words of the meta extents: has one changed? */
  char fault[256];   /* the first thing that cannot be; "" when there is none */
} arena_seen;

enum { ARENA_SITES_MAX = 4096 };
typedef struct arena_text {
  const char *data;
  uint64_t bytes;
} arena_text;

typedef struct arena_view {
  const char *bytes;
  uint64_t count;
  /* threads' records; each thread's in the order of time */
  void (*record)(void *context, const arena_record *record);
  void (*open)(void *context, const arena_open *open);
  void (*slot)(void *context, const prof_i_thread_slot *slot);
  void *context;
  /* of the sites, filled by arena_walk() */
  arena_text names[ARENA_SITES_MAX], categories[ARENA_SITES_MAX];
  uint64_t schemas; /* known: 1..schemas */
  /* arena_walk()'s own; arena_forget() gives them back */
  struct arena_chunk *chunks;
  size_t chunk_count, chunk_room;
} arena_view;

typedef struct arena_chunk {
  uint64_t offset, sequence;
} arena_chunk;

static inline void arena_fault(arena_seen *seen, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static inline void arena_fault(arena_seen *seen, const char *format, ...) {
  va_list values;
  if (seen->fault[0]) return;
  va_start(values, format);
  vsnprintf(seen->fault, sizeof seen->fault, format, values);
  va_end(values);
}

static inline const prof_i_header *arena_header(const arena_view *view) {
  return (const prof_i_header *)view->bytes;
}
static inline bool arena_is_made(const arena_view *view) {
  return view->count >= PROF_I_HEADER_BYTES && arena_header(view)->magic == PROF_I_MAGIC;
}

/* ---- heads ---- */

static inline const prof_i_head *arena_head_at(const arena_view *view, uint64_t offset,
                                               arena_seen *seen) {
  const prof_i_head *const head = (const prof_i_head *)(view->bytes + offset);
  if (head->magic == 0) return NULL;
  if (head->magic != PROF_I_EXTENT_MAGIC)
    arena_fault(seen, "offset %llu: magic %x", (unsigned long long)offset, head->magic);
  else if (head->check != (offset ^ head->bytes ^ (uint64_t)head->kind ^ PROF_I_MAGIC))
    arena_fault(seen, "offset %llu: the head's check does not fit it", (unsigned long long)offset);
  else if (head->bytes == 0 || head->bytes % PROF_I_UNIT_BYTES ||
           head->bytes > view->count - offset)
    arena_fault(seen, "offset %llu: extent of %llu bytes, %llu are left",
                (unsigned long long)offset, (unsigned long long)head->bytes,
                (unsigned long long)(view->count - offset));
  else if (head->generation < 1 || head->generation > PROF_I_GENERATION_MASK)
    arena_fault(seen, "offset %llu: generation %llu", (unsigned long long)offset,
                (unsigned long long)head->generation);
  else
    return head;
  return NULL;
}

/* ---- records ---- */

typedef enum arena_place { ARENA_COMMITTED, ARENA_FILLER, ARENA_UNFINISHED } arena_place;

static inline arena_place arena_look(const uint64_t *word, uint64_t generation,
                                     uint64_t *slots_out) {
  const uint64_t first = word[0];
  const uint64_t pending = first >> PROF_I_PENDING_SLOTS_SHIFT & 0xffff;
  *slots_out = 1;
  if ((first & PROF_I_GENERATION_MASK) == generation) {
    if ((word[1] & 15) == 1) *slots_out = prof_i_record_slots(word[2]);
    return ARENA_COMMITTED;
  }
  if ((first & 15) != 0 || (first >> 4 & 15) != generation || pending == 0) return ARENA_UNFINISHED;
  *slots_out = pending;
  return first >> PROF_I_FILLER_BIT & 1 ? ARENA_FILLER : ARENA_UNFINISHED;
}

/* Takes a text at word `at` of a record; returns the word behind it, or 0 when it reaches past the
   end. */
static inline uint64_t arena_take_text(const uint64_t *words, uint64_t at, uint64_t end,
                                       const char **data, uint64_t *bytes) {
  if (at >= end) return 0;
  *bytes = words[at];
  *data = (const char *)(words + at + 1);
  const uint64_t next = at + 1 + (*bytes + 7) / 8;
  return *bytes > (end - at) * 8 || next > end ? 0 : next;
}

/* Its text is the value of the schema's only item. */
static inline bool arena_read_short_text(const uint64_t *words, uint64_t end,
                                         arena_record *record) {
  const uint64_t bytes = words[2] & PROF_I_TEXT_BYTES_MAX;
  record->kind = PROF_I_KIND_SCOPE;
  record->schema = (uint32_t)(words[2] >> PROF_I_TEXT_SCHEMA_SHIFT & PROF_I_TEXT_SCHEMA_MAX);
  record->text = (const char *)(words + 2) + 4;
  record->text_bytes = bytes;
  return 2 + prof_i_text_record_words(bytes) <= end && record->schema;
}

/* A long record's parts, behind word 2. False: they do not fit into it. */
static inline bool arena_read_long(const uint64_t *words, uint64_t end, arena_record *record) {
  uint64_t at = 3;
  if (record->kind == PROF_I_KIND_TEXT) return arena_read_short_text(words, end, record);
  if (record->kind > PROF_I_KIND_INSTANT) {
    record->values = words + 3;
    record->value_words = end - 3;
    return true;
  }
  if (record->flags & PROF_I_FLAG_DEVICE) at++;
  if (record->flags & PROF_I_FLAG_STREAM) at++;
  if (record->flags & PROF_I_FLAG_LONG) record->duration = words[at++];
  if (record->flags & PROF_I_FLAG_NAME &&
      !(at = arena_take_text(words, at, end, &record->name, &record->name_bytes)))
    return false;
  if (record->flags & PROF_I_FLAG_CATEGORY &&
      !(at = arena_take_text(words, at, end, &record->category, &record->category_bytes)))
    return false;
  record->values = words + at;
  record->value_words = end - at;
  return at <= end;
}

typedef struct arena_chunk_walk {
  const arena_view *view;
  arena_seen *seen;
  uint64_t thread;
  bool is_taken; /* a ring is about to overwrite it */
} arena_chunk_walk;

static inline void arena_take_record(arena_chunk_walk *walk, const uint64_t *words,
                                     uint64_t slots) {
  const arena_view *const view = walk->view;
  arena_record record = {.start = words[0] >> 4,
                         .duration = words[1] >> PROF_I_DURATION_SHIFT,
                         .kind = PROF_I_KIND_SCOPE,
                         .site = (uint32_t)(words[1] >> 4 & PROF_I_SITE_COUNT_MAX),
                         .thread = walk->thread,
                         .offset = (uint64_t)((const char *)words - view->bytes)};
  if ((words[1] & 15) == 1) {
    record.kind = (uint32_t)(words[2] >> 16 & 0xff);
    record.flags = (uint32_t)(words[2] >> 24 & 0xff);
    record.schema = (uint32_t)(words[2] >> 32);
    if (record.kind == PROF_I_KIND_OWNER) walk->thread = words[3];
    if (record.kind == PROF_I_KIND_OWNER || record.kind == PROF_I_KIND_EXIT) return;
    const bool is_known = (record.kind >= PROF_I_KIND_SCOPE && record.kind <= PROF_I_KIND_STEP) ||
                          record.kind == PROF_I_KIND_TEXT;
    if (!is_known || !arena_read_long(words, slots * 2, &record)) {
      arena_fault(
          walk->seen,
          "offset %llu: a long record of kind %u, flags %x, %llu slots does not hold together",
          (unsigned long long)record.offset, record.kind, record.flags, (unsigned long long)slots);
      return;
    }
  }
  if (record.start + record.duration <= arena_header(view)->clear_ticks) {
    walk->seen->cleared++;
    return;
  }
  if (walk->is_taken) {
    walk->seen->lost[PROF_LOSS_OVERWRITTEN]++;
    return;
  }
  walk->seen->records++;
  if (view->record) view->record(view->context, &record);
}

static inline uint64_t arena_claimed(const prof_i_head *chunk) {
  return chunk->cursor < chunk->bytes ? chunk->cursor : chunk->bytes;
}

static inline void arena_count_gone(const prof_i_head *head, arena_seen *seen) {
  seen->lost[PROF_LOSS_OVERWRITTEN] +=
      head->evicted[head->sequence & 1][PROF_I_EVICTED_OVERWRITTEN];
  seen->lost[PROF_LOSS_CLEARED] += head->evicted[head->sequence & 1][PROF_I_EVICTED_CLEARED];
}

static inline void arena_walk_chunk(const arena_view *view, const prof_i_head *chunk,
                                    arena_seen *seen) {
  const uint64_t end = arena_claimed(chunk);
  arena_chunk_walk walk = {view, seen, 0, chunk->state == PROF_I_CHUNK_TAKEN};
  arena_count_gone(chunk, seen);
  if (chunk->sequence >> 1 == 0) { /* being made, or made anew: readers leave it out */
    seen->remade++;
    return;
  }
  seen->chunks++;
  for (uint64_t at = PROF_I_HEAD_BYTES, slots; at < end; at += slots * 16) {
    const uint64_t *const words = (const uint64_t *)((const char *)chunk + at);
    const unsigned long long offset = (unsigned long long)((const char *)words - view->bytes);
    const arena_place place = arena_look(words, chunk->generation, &slots);
    if (slots == 0 || (place != ARENA_UNFINISHED && at + slots * 16 > end)) {
      arena_fault(
          seen,
          "offset %llu: a record of %llu slots, %llu bytes of its chunk are claimed behind it",
          offset, (unsigned long long)slots, (unsigned long long)(end - at));
      return;
    }
    if (place == ARENA_UNFINISHED) seen->unfinished++;
    if (place != ARENA_COMMITTED) continue;
    if ((words[1] & 15) > 1)
      arena_fault(seen, "offset %llu: type %llu", offset, (unsigned long long)(words[1] & 15));
    else
      arena_take_record(&walk, words, slots);
  }
}

/* ---- slots ---- */

static inline void arena_walk_opens(const arena_view *view, const prof_i_thread_slot *slot,
                                    arena_seen *seen) {
  const unsigned long long offset = (unsigned long long)((const char *)slot - view->bytes);
  if (slot->depth > PROF_I_OPEN_COUNT)
    arena_fault(seen, "slot %llu: depth %llu", offset, (unsigned long long)slot->depth);
  if (slot->depth > PROF_I_OPEN_COUNT)
    arena_fault(seen, "slot %llu: the depth is %llu", offset, (unsigned long long)slot->depth);
  for (uint64_t i = 0; i <= PROF_I_OPEN_COUNT; i++) {
    const uint64_t ticks = slot->open[i].ticks, packed = slot->open[i].packed;
    if (!prof_i_open_entry_is_open(ticks)) continue;
    if (i <= slot->depth && !prof_i_slot_entry_is_open(slot, slot->ledger, i)) continue;
    if (i == 0 || i > slot->depth) {
      arena_fault(seen, "slot %llu: entry %llu is open, but the depth is %llu", offset,
                  (unsigned long long)i, (unsigned long long)slot->depth);
      continue;
    }
    arena_open open = {.start = ticks >> 4,
                       .site = (uint32_t)(packed >> 4 & PROF_I_SITE_COUNT_MAX),
                       .thread = slot->serial,
                       .index = i};
    if (packed & PROF_I_OPEN_TYPE) {
      const uint64_t from = packed >> 24 & 0xffffff;
      open.payload_words = packed >> 48;
      open.payload = (const uint64_t *)((const char *)slot + from);
      if (from % 8 || from < PROF_I_TEXT_OFFSET ||
          from + open.payload_words * 8 > PROF_I_TEXT_END || !open.payload_words) {
        arena_fault(seen, "slot %llu: entry %llu has its payload at %llu, %llu words", offset,
                    (unsigned long long)i, (unsigned long long)from,
                    (unsigned long long)open.payload_words);
        continue;
      }
    }
    seen->opens++;
    if (view->open) view->open(view->context, &open);
  }
}

static inline void arena_walk_slot(const arena_view *view, const prof_i_thread_slot *slot,
                                   arena_seen *seen) {
  seen->slots++;
  arena_count_gone(&slot->head, seen);
  for (int i = 0; i < PROF_I_LOSS_WORDS; i++)
    seen->lost[i] += prof_i_slot_lost(slot, slot->ledger, i);
  if (view->slot) view->slot(view->context, slot);
  seen->deep += slot->deep_count;
  if (slot->serial) arena_walk_opens(view, slot, seen);
  const uint64_t offset = (uint64_t)((const char *)slot - view->bytes) + PROF_I_RESERVE_OFFSET;
  const prof_i_head *const reserve = arena_head_at(view, offset, seen);
  if (reserve) arena_walk_chunk(view, reserve, seen);
}

/* ---- sites ---- */

/* The record's own name, or its site's; no data: neither has one. */
static inline arena_text arena_name(const arena_view *view, const arena_record *record) {
  if (record->name) return (arena_text){record->name, record->name_bytes};
  if (record->site < ARENA_SITES_MAX) return view->names[record->site];
  return (arena_text){NULL, 0};
}

static inline void arena_take_site(arena_view *view, const uint64_t *words, uint64_t slots,
                                   arena_seen *seen) {
  const uint64_t site = words[1] >> 4 & PROF_I_SITE_COUNT_MAX;
  arena_text name, category;
  uint64_t at = arena_take_text(words, 4, slots * 2, &name.data, &name.bytes);
  if (at) at = arena_take_text(words, at, slots * 2, &category.data, &category.bytes);
  if (!at || site >= ARENA_SITES_MAX) {
    arena_fault(seen, "site %llu: its record does not hold together", (unsigned long long)site);
    return;
  }
  view->names[site] = name;
  view->categories[site] = category;
}

static inline void arena_walk_meta(arena_view *view, const prof_i_head *meta, arena_seen *seen) {
  const uint64_t end = arena_claimed(meta);
  const uint64_t *const first = (const uint64_t *)meta;
  for (uint64_t i = PROF_I_HEAD_BYTES / 8; i < end / 8; i++)
    seen->meta_sum = seen->meta_sum * 31 + first[i];
  for (uint64_t at = PROF_I_HEAD_BYTES, slots; at < end; at += slots * 16) {
    const uint64_t *const words = (const uint64_t *)((const char *)meta + at);
    const arena_place place = arena_look(words, meta->generation, &slots);
    if (slots == 0 || (place == ARENA_COMMITTED && at + slots * 16 > end)) {
      arena_fault(seen, "meta record at %llu: %llu slots",
                  (unsigned long long)((const char *)words - view->bytes),
                  (unsigned long long)slots);
      return;
    }
    if (place != ARENA_COMMITTED) continue;
    const uint32_t kind = (uint32_t)(words[2] >> 16 & 0xff);
    if (kind == PROF_I_KIND_SITE) arena_take_site(view, words, slots, seen);
    if (kind == PROF_I_KIND_SCHEMA && (words[3] & 0xffffffff) > view->schemas)
      view->schemas = words[3] & 0xffffffff;
  }
}

/* ---- the whole ---- */

static inline int arena_by_sequence(const void *a, const void *b) {
  const arena_chunk *const x = a, *const y = b;
  return (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

static inline void arena_note_chunk(arena_view *view, uint64_t offset, uint64_t sequence) {
  if (view->chunk_count == view->chunk_room) {
    view->chunk_room = view->chunk_room ? 2 * view->chunk_room : 64;
    view->chunks = realloc(view->chunks, view->chunk_room * sizeof *view->chunks);
    if (!view->chunks) abort();
  }
  view->chunks[view->chunk_count++] = (arena_chunk){offset, sequence};
}

/* Sites, which records name, are read at once; chunks are noted. */
static inline void arena_walk_extents(arena_view *view, arena_seen *seen) {
  for (uint64_t at = PROF_I_FIRST_UNIT_OFFSET;
       at + PROF_I_HEAD_BYTES <= view->count && !seen->fault[0];) {
    const prof_i_head *const head = arena_head_at(view, at, seen);
    const uint64_t offset = at;
    at += head ? head->bytes : PROF_I_UNIT_BYTES;
    if (head && head->kind == PROF_I_EXTENT_META) arena_walk_meta(view, head, seen);
    if (head && head->kind != PROF_I_EXTENT_META) arena_note_chunk(view, offset, head->sequence);
  }
}

/* Walks everything; false when something cannot be (seen_out->fault). */
static inline bool arena_walk(arena_view *view, arena_seen *seen_out) {
  arena_seen *const seen = seen_out;
  memset(seen, 0, sizeof *seen);
  if (!arena_is_made(view)) return true; /* nothing can be read from it */
  const prof_i_header *const header = arena_header(view);
  for (int i = 0; i < PROF_I_LOSS_WORDS; i++) seen->lost[i] = header->unattributed[i];
  view->chunk_count = 0;
  arena_walk_extents(view, seen);
  if (view->chunk_count)
    qsort(view->chunks, view->chunk_count, sizeof *view->chunks, arena_by_sequence);
  for (size_t i = 0; i < view->chunk_count && !seen->fault[0]; i++) {
    const prof_i_head *const head = (const prof_i_head *)(view->bytes + view->chunks[i].offset);
    if (head->kind == PROF_I_EXTENT_SLOT)
      arena_walk_slot(view, (const prof_i_thread_slot *)head, seen);
    else
      arena_walk_chunk(view, head, seen);
  }
  return !seen->fault[0];
}

static inline void arena_forget(arena_view *view) {
  free(view->chunks);
  view->chunks = NULL;
  view->chunk_count = view->chunk_room = 0;
}

static inline uint64_t arena_lost(const arena_seen *seen) {
  uint64_t sum = 0;
  for (int i = 0; i < PROF_LOSS_COUNT; i++) sum += seen->lost[i];
  return sum;
}

#endif
