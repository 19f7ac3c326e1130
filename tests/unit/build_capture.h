/* Writes small captures in memory, byte by byte as layout.h has them, for tests and benchmarks of
   the reader. Room is fixed when the capture begins; running out of it is a mistake of the test. */
#ifndef PROF_TESTS_BUILD_CAPTURE_H
#define PROF_TESTS_BUILD_CAPTURE_H

#include <prof/trace.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/format/layout.h"

typedef struct capture {
  unsigned char *bytes; /* page-aligned */
  uint64_t count, room;
  uint64_t sequence; /* the last one given */
} capture;

enum { CAPTURE_START = 1000 }; /* ticks of the start; one tick is one ns */

#define CAPTURE_UNUSED __attribute__((unused))

static CAPTURE_UNUSED prof_i_header *capture_header(const capture *c) {
  return (prof_i_header *)c->bytes;
}

static CAPTURE_UNUSED void capture_begin(capture *c, uint64_t room_bytes) {
  c->room = (room_bytes + 65535) & ~65535ull;
  c->bytes = aligned_alloc(4096, c->room);
  if (!c->bytes) abort();
  memset(c->bytes, 0, c->room);
  c->count = PROF_I_FIRST_UNIT_OFFSET;
  c->sequence = 0;
  *capture_header(c) = (prof_i_header){.magic = PROF_I_MAGIC,
                                       .version = PROF_I_FORMAT_VERSION,
                                       .header_bytes = PROF_I_HEADER_BYTES,
                                       .cap_bytes = c->room,
                                       .unit_bytes = PROF_I_UNIT_BYTES,
                                       .policy = PROF_POLICY_STREAM,
                                       .ticks_hz = 1000000000,
                                       .start_ticks = CAPTURE_START,
                                       .start_monotonic_ns = 5000000,
                                       .start_realtime_ns = 1700000000000000000u,
                                       .rank = -1,
                                       .host = "host",
                                       .process_name = "test"};
}

static CAPTURE_UNUSED void capture_end(capture *c) {
  free(c->bytes);
  c->bytes = NULL;
}

/* ---- extents ---- */

static CAPTURE_UNUSED prof_i_head *capture_extent(capture *c, prof_i_extent_kind kind,
                                                  uint64_t bytes) {
  if (c->count + bytes > c->room) abort();
  const uint64_t offset = c->count;
  prof_i_head *const head = (prof_i_head *)(c->bytes + offset);
  c->count += bytes;
  capture_header(c)->used_bytes = capture_header(c)->made_bytes = c->count;
  *head = (prof_i_head){.cursor = PROF_I_HEAD_BYTES,
                        .limit = bytes - 15,
                        .generation = 1,
                        .magic = PROF_I_EXTENT_MAGIC,
                        .kind = (uint16_t)kind,
                        .state = PROF_I_CHUNK_OWNED,
                        .bytes = bytes,
                        .check = offset ^ bytes ^ (uint64_t)kind ^ PROF_I_MAGIC};
  return head;
}

static CAPTURE_UNUSED prof_i_head *capture_meta(capture *c) {
  return capture_extent(c, PROF_I_EXTENT_META, PROF_I_UNIT_BYTES);
}

/* Room for that many words in an extent, whose first record word is still 0. */
static CAPTURE_UNUSED uint64_t *capture_claim(prof_i_head *extent, uint64_t words) {
  const uint64_t at = extent->cursor;
  extent->cursor += (words + 1) / 2 * 16;
  if (extent->cursor > extent->bytes) abort();
  return (uint64_t *)((unsigned char *)extent + at);
}

/* ---- records ---- */

static CAPTURE_UNUSED uint64_t capture_word0(const prof_i_head *extent, uint64_t ticks) {
  return ticks << 4 | extent->generation;
}

static CAPTURE_UNUSED void capture_plain(prof_i_head *chunk, uint64_t start, uint64_t duration,
                                         uint32_t site) {
  uint64_t *const words = capture_claim(chunk, 2);
  words[1] = duration << PROF_I_DURATION_SHIFT | (uint64_t)site << 4;
  words[0] = capture_word0(chunk, start);
}

/* A long record under construction: words from 3 on. */
typedef struct long_record {
  uint64_t words[4096];
  uint64_t count;
  uint32_t kind, flags, schema, site;
  uint64_t start, duration;
} long_record;

static CAPTURE_UNUSED void long_begin(long_record *r, prof_i_kind kind, uint64_t start,
                                      uint64_t duration, uint32_t site) {
  memset(r, 0, sizeof *r);
  r->kind = (uint32_t)kind;
  r->start = start;
  r->duration = duration;
  r->site = site;
  r->count = 3;
}
static CAPTURE_UNUSED void long_word(long_record *r, uint64_t word) { r->words[r->count++] = word; }
static CAPTURE_UNUSED void long_bytes(long_record *r, const void *data, uint64_t bytes) {
  long_word(r, bytes);
  if (bytes) memcpy(r->words + r->count, data, bytes);
  r->count += (bytes + 7) / 8;
}
static CAPTURE_UNUSED void long_text(long_record *r, const char *text) {
  long_bytes(r, text, strlen(text));
}

static CAPTURE_UNUSED uint64_t long_word2(const long_record *r) {
  return (r->count + 1) / 2 | (uint64_t)r->kind << 16 | (uint64_t)r->flags << 24 |
         (uint64_t)r->schema << 32;
}
static CAPTURE_UNUSED uint64_t *long_end(long_record *r, prof_i_head *extent) {
  uint64_t *const words = capture_claim(extent, r->count);
  memcpy(words + 3, r->words + 3, (r->count - 3) * 8);
  words[1] = r->duration << PROF_I_DURATION_SHIFT | (uint64_t)r->site << 4 | 1;
  words[2] = long_word2(r);
  words[0] = capture_word0(extent, r->start);
  return words;
}

/* A scope with one short text. */
static CAPTURE_UNUSED uint64_t *capture_short_text(prof_i_head *chunk, uint64_t start,
                                                   uint64_t duration, uint32_t site, uint32_t flags,
                                                   uint32_t schema, const char *text) {
  const uint64_t bytes = strlen(text), count = 2 + prof_i_text_record_words(bytes);
  uint64_t *const words = capture_claim(chunk, count);
  words[1] = duration << PROF_I_DURATION_SHIFT | (uint64_t)site << 4 | 1;
  memset(words + 2, 0, (count - 2) * 8);
  words[2] =
      bytes | schema << PROF_I_TEXT_SCHEMA_SHIFT | PROF_I_KIND_TEXT << 16 | (uint64_t)flags << 24;
  memcpy((char *)(words + 2) + 4, text, bytes);
  words[0] = capture_word0(chunk, start);
  return words;
}

static CAPTURE_UNUSED void capture_change(prof_i_head *meta, uint64_t ticks, uint64_t kind,
                                          uint64_t reason, uint32_t site, uint64_t level_before,
                                          uint64_t level_after, uint64_t serial, uint64_t measured,
                                          uint64_t allowed) {
  long_record r;
  long_begin(&r, PROF_I_KIND_CHANGE, ticks, 0, site);
  long_word(&r, kind);
  long_word(&r, reason);
  long_word(&r, level_before | level_after << 32);
  long_word(&r, serial);
  long_word(&r, measured);
  long_word(&r, allowed);
  long_end(&r, meta);
}

static CAPTURE_UNUSED void capture_owner_as(prof_i_head *chunk, uint64_t serial, uint64_t tid,
                                            uint64_t thread_kind, const char *name) {
  long_record r;
  char padded[PROF_I_NAME_BYTES] = {0};
  strncpy(padded, name, sizeof padded - 1);
  long_begin(&r, PROF_I_KIND_OWNER, CAPTURE_START, 0, 0);
  long_word(&r, serial);
  long_word(&r, tid);
  long_word(&r, thread_kind);
  memcpy(r.words + r.count, padded, sizeof padded);
  r.count += sizeof padded / 8;
  long_end(&r, chunk);
  chunk->owner = serial;
}
static CAPTURE_UNUSED void capture_owner(prof_i_head *chunk, uint64_t serial, uint64_t tid,
                                         const char *name) {
  capture_owner_as(chunk, serial, tid, serial == 1 ? PROF_I_KIND_OF_MAIN : PROF_I_KIND_OF_THREAD,
                   name);
}

static CAPTURE_UNUSED void capture_exit(prof_i_head *chunk, uint64_t serial, const char *name,
                                        prof_loss loss, uint64_t lost) {
  long_record r;
  char padded[PROF_I_NAME_BYTES] = {0};
  strncpy(padded, name, sizeof padded - 1);
  long_begin(&r, PROF_I_KIND_EXIT, CAPTURE_START, 0, 0);
  long_word(&r, serial);
  long_word(&r, 0);
  long_word(&r, 0);
  r.words[r.count + (uint64_t)loss] = lost;
  r.count += PROF_I_LOSS_WORDS;
  memcpy(r.words + r.count, padded, sizeof padded);
  r.count += sizeof padded / 8;
  long_end(&r, chunk);
}

/* A chunk that a thread has taken. */
static CAPTURE_UNUSED prof_i_head *capture_chunk(capture *c, uint64_t bytes, uint64_t serial) {
  char name[32];
  prof_i_head *const chunk = capture_extent(c, PROF_I_EXTENT_CHUNK, bytes);
  chunk->sequence = ++c->sequence << 1;
  snprintf(name, sizeof name, "thread %u", (unsigned)serial);
  capture_owner(chunk, serial, 100 + serial, name);
  return chunk;
}

/* ---- what a capture says about itself ---- */

static CAPTURE_UNUSED void capture_site(prof_i_head *meta, uint32_t number, const char *name,
                                        const char *category, uint32_t level) {
  long_record r;
  long_begin(&r, PROF_I_KIND_SITE, 0, 0, number);
  long_word(&r, 10 | (uint64_t)level << 32);
  long_text(&r, name);
  long_text(&r, category);
  long_text(&r, "file.c");
  long_text(&r, "function");
  long_end(&r, meta);
}

static CAPTURE_UNUSED void capture_schema(prof_i_head *meta, uint32_t number, prof_args_kind kind,
                                          const char *format, uint32_t count, const uint32_t *types,
                                          const char *const *keys) {
  long_record r;
  long_begin(&r, PROF_I_KIND_SCHEMA, 0, 0, 0);
  long_word(&r, number | (uint64_t)kind << 32 | (uint64_t)count << 40);
  long_text(&r, format);
  for (uint32_t i = 0; i < count; i++) {
    long_word(&r, types[i]);
    long_text(&r, keys ? keys[i] : "");
  }
  long_end(&r, meta);
}

/* Ticks and ns count from the capture's start. */
static CAPTURE_UNUSED void capture_clock(const capture *c, prof_i_head *meta, uint64_t ticks,
                                         uint64_t ns, uint64_t segment) {
  long_record r;
  long_begin(&r, PROF_I_KIND_CLOCK, CAPTURE_START + ticks, 0, 0);
  long_word(&r, CAPTURE_START + ticks);
  long_word(&r, capture_header(c)->start_monotonic_ns + ns);
  long_word(&r, capture_header(c)->start_realtime_ns + ns);
  long_word(&r, 40);
  long_word(&r, segment);
  long_end(&r, meta);
}

static CAPTURE_UNUSED void capture_session(prof_i_head *meta, uint64_t ticks, uint64_t level,
                                           uint64_t what) {
  long_record r;
  long_begin(&r, PROF_I_KIND_SESSION, ticks, 0, 0);
  long_word(&r, 1);
  long_word(&r, level);
  long_word(&r, what);
  long_end(&r, meta);
}

static CAPTURE_UNUSED void capture_track(prof_i_head *meta, prof_device device, uint64_t stream,
                                         const char *name) {
  long_record r;
  long_begin(&r, PROF_I_KIND_TRACK, 0, 0, 0);
  long_word(&r, (uint32_t)device.type | (uint64_t)(uint32_t)device.index << 32);
  long_word(&r, stream);
  long_text(&r, name);
  long_end(&r, meta);
}

/* ---- memory ---- */

/* Of one session, kind 1: a pool, 2: a query. Its state is the caller's to set. */
static CAPTURE_UNUSED prof_i_pool_state *capture_pool(const capture *c, prof_i_head *meta,
                                                      uint32_t number, uint32_t kind,
                                                      const char *name, uint64_t used_before) {
  long_record r;
  long_begin(&r, PROF_I_KIND_POOL, CAPTURE_START, 0, 0);
  long_word(&r, number | (uint64_t)kind << 32);
  long_word(&r, PROF_DEVICE_CPU);
  long_word(&r, number | UINT64_C(1) << 32);
  long_word(&r, used_before);
  long_word(&r, 0);
  long_word(&r, used_before ? PROF_I_BASELINE_QUERIED : PROF_I_BASELINE_EMPTY);
  long_text(&r, name);
  r.count =
      PROF_I_POOL_STATE_WORD + PROF_I_POOL_STATE_ALIGNMENT / 8 + sizeof(prof_i_pool_state) / 8;
  uint64_t *const words = long_end(&r, meta);
  const uint64_t from = (uint64_t)((unsigned char *)(words + PROF_I_POOL_STATE_WORD) - c->bytes),
                 line = PROF_I_POOL_STATE_ALIGNMENT;
  prof_i_pool_state *const state =
      (prof_i_pool_state *)(c->bytes + (from + line - 1) / line * line);
  state->used = kind == 1 ? PROF_I_USED_ZERO + used_before : 0;
  state->allocated = PROF_I_USED_ZERO;
  state->number = number;
  state->kind = kind;
  return state;
}

/* The short record of a piece. */
static CAPTURE_UNUSED void capture_piece(prof_i_head *chunk, uint64_t ticks, uint32_t pool,
                                         int is_free, uint64_t address, uint64_t bytes,
                                         uint64_t waste, uint64_t counter) {
  uint64_t *const words = capture_claim(chunk, 4);
  words[1] = PROF_I_ALLOC_TYPE | (uint64_t)is_free << PROF_I_ALLOC_VERB_SHIFT |
             waste << PROF_I_ALLOC_WASTE_SHIFT | (uint64_t)pool << PROF_I_ALLOC_POOL_SHIFT |
             bytes << PROF_I_ALLOC_BYTES_SHIFT;
  words[2] = address;
  words[3] = counter;
  words[0] = capture_word0(chunk, ticks);
}

/* The same with more about it. */
static CAPTURE_UNUSED void capture_piece_more(prof_i_head *chunk, uint64_t ticks, uint32_t pool,
                                              uint64_t address, uint64_t bytes, uint64_t requested,
                                              uint32_t tag, uint64_t stream, uint64_t counter) {
  uint64_t *const words = capture_claim(chunk, 6);
  words[1] = PROF_I_ALLOC_MORE_TYPE | (uint64_t)pool << PROF_I_ALLOC_POOL_SHIFT |
             bytes << PROF_I_ALLOC_BYTES_SHIFT;
  words[2] = address;
  words[3] = counter;
  words[4] = tag | requested << PROF_I_ALLOC_BYTES_SHIFT;
  words[5] = stream;
  words[0] = capture_word0(chunk, ticks);
}

/* The long one; extra: of a collection, or a wrong call. */
static CAPTURE_UNUSED void capture_memory(prof_i_head *chunk, uint64_t ticks, prof_i_verb verb,
                                          uint32_t pool, uint64_t address, uint64_t bytes,
                                          uint64_t counter, uint64_t word7, uint64_t extra,
                                          uint32_t tag) {
  long_record r;
  long_begin(&r, PROF_I_KIND_MEMORY, ticks, 0, tag);
  long_word(&r, (uint64_t)verb | (uint64_t)pool << 32);
  long_word(&r, address);
  long_word(&r, bytes);
  long_word(&r, counter);
  long_word(&r, word7);
  if (verb == PROF_I_VERB_COLLECT || verb == PROF_I_VERB_WRONG) long_word(&r, extra);
  if (tag) {
    r.flags = PROF_I_FLAG_STREAM;
    long_word(&r, 7);
  }
  long_end(&r, chunk);
}

/* ---- slots ---- */

static CAPTURE_UNUSED prof_i_thread_slot *capture_slot(capture *c, uint64_t serial,
                                                       const char *name) {
  prof_i_thread_slot *const slot =
      (prof_i_thread_slot *)capture_extent(c, PROF_I_EXTENT_SLOT, PROF_I_SLOT_BYTES);
  slot->serial = serial;
  slot->head.owner = serial;
  slot->tid = 100 + serial;
  slot->thread_kind = serial == 1;
  slot->payload_top = PROF_I_TEXT_OFFSET;
  strncpy(slot->name, name, sizeof slot->name - 1);
  return slot;
}

static CAPTURE_UNUSED void capture_open(prof_i_thread_slot *slot, uint64_t start, uint32_t site) {
  slot->open[++slot->depth] = (prof_i_open_entry){start << 4, (uint64_t)site << 4};
}

/* An open scope with a payload: what long_end() would write from word 2 on. */
static CAPTURE_UNUSED void capture_open_long(prof_i_thread_slot *slot, const long_record *r) {
  uint64_t *const to = (uint64_t *)((unsigned char *)slot + slot->payload_top);
  const uint64_t words = r->count - 2;
  to[0] = long_word2(r);
  memcpy(to + 1, r->words + 3, (words - 1) * 8);
  slot->open[++slot->depth] = (prof_i_open_entry){
      r->start << 4, (uint64_t)r->site << 4 | 1 | slot->payload_top << 24 | words << 48};
  slot->payload_top += words * 8;
}

/* The chunk inside a slot, for scopes that were open when the arena became full. */
static CAPTURE_UNUSED prof_i_head *capture_reserve(capture *c, prof_i_thread_slot *slot) {
  prof_i_head *const head = (prof_i_head *)((unsigned char *)slot + PROF_I_RESERVE_OFFSET);
  const uint64_t offset = (uint64_t)((unsigned char *)head - c->bytes);
  *head = (prof_i_head){
      .cursor = PROF_I_HEAD_BYTES,
      .limit = PROF_I_UNIT_BYTES - 15,
      .generation = 1,
      .magic = PROF_I_EXTENT_MAGIC,
      .kind = PROF_I_EXTENT_CHUNK,
      .state = PROF_I_CHUNK_OWNED,
      .bytes = PROF_I_UNIT_BYTES,
      .sequence = ++c->sequence << 1,
      .owner = slot->serial,
      .check = offset ^ PROF_I_UNIT_BYTES ^ (uint64_t)PROF_I_EXTENT_CHUNK ^ PROF_I_MAGIC};
  return head;
}

#endif
