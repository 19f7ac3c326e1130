/* Captures that are full of one kind of record each. Their numbers are chosen so that the reader
   keeps as much of each as it can. A thread for every owner, a table that reaches the highest site
   number, 64 open scopes a slot. */
#ifndef PROF_TESTS_HOSTILE_RECORD_KINDS_H
#define PROF_TESTS_HOSTILE_RECORD_KINDS_H

#include "unit/build_capture.h"

enum { MIB = 1 << 20, SITE_MAX = (1 << 20) - 1 };

/* Fills what is left of an extent with records that `make` makes of their number. */
static void fill_extent(prof_i_head *extent, void (*make)(prof_i_head *extent, uint64_t number),
                        uint64_t *number) {
  for (;;) {
    const uint64_t before = extent->cursor;
    if (before + 512 > extent->bytes) return;
    make(extent, ++*number);
  }
}

static void make_plain(prof_i_head *chunk, uint64_t n) {
  capture_plain(chunk, CAPTURE_START + n, 3, 1);
}
static void make_plain_backwards(prof_i_head *chunk, uint64_t n) {
  capture_plain(chunk, CAPTURE_START + (1 << 20) - n, 3, 1);
}
static void make_nested(prof_i_head *chunk, uint64_t n) {
  capture_plain(chunk, CAPTURE_START + (1 << 20) - n, 2 * n, 1);
}
static void make_overlapping(prof_i_head *chunk, uint64_t n) {
  capture_plain(chunk, CAPTURE_START + n, 1 << 10, 1);
}
static void make_owner(prof_i_head *chunk, uint64_t n) {
  capture_owner(chunk, n + 10, n, "o");
  capture_plain(chunk, CAPTURE_START + n, 1, 1);
}
static void make_owner_alone(prof_i_head *chunk, uint64_t n) {
  capture_owner(chunk, UINT64_MAX - n, n, "o");
}
static void make_exit(prof_i_head *chunk, uint64_t n) {
  capture_exit(chunk, n + 10, "x", PROF_LOSS_FULL, n);
}
static void make_name(prof_i_head *chunk, uint64_t n) {
  long_record r;
  char name[16];
  long_begin(&r, PROF_I_KIND_SCOPE, CAPTURE_START + n, 1, 1);
  r.flags = PROF_I_FLAG_NAME;
  snprintf(name, sizeof name, "%07u", (unsigned)n);
  long_text(&r, name);
  long_end(&r, chunk);
}
static void make_short_argument(prof_i_head *chunk, uint64_t n) {
  char text[16];
  snprintf(text, sizeof text, "%07u", (unsigned)n);
  capture_short_text(chunk, CAPTURE_START + n, 1, 1, 0, 2, text);
}
static void make_step(prof_i_head *chunk, uint64_t n) {
  long_record r;
  long_begin(&r, PROF_I_KIND_STEP, CAPTURE_START + n, 0, 0);
  long_word(&r, n);
  long_end(&r, chunk);
}
static void make_flow(prof_i_head *chunk, uint64_t n) {
  long_record r;
  long_begin(&r, PROF_I_KIND_FLOW, CAPTURE_START + n, 0, 0);
  long_word(&r, n / 2);
  long_word(&r, n % 2);
  long_text(&r, "f");
  long_end(&r, chunk);
}
static void make_tensor(prof_i_head *chunk, uint64_t n) {
  long_record r;
  long_begin(&r, PROF_I_KIND_SCOPE, CAPTURE_START + n, 1, 1);
  r.schema = 1;
  long_word(&r, 4 | (uint64_t)PROF_F32 << 32);
  for (uint64_t d = 0; d < 4; d++) long_word(&r, n << 8 | d);
  long_end(&r, chunk);
}
static void make_site(prof_i_head *meta, uint64_t n) {
  capture_site(meta, (uint32_t)(SITE_MAX - n), "", "", 1);
}
static void make_schema(prof_i_head *meta, uint64_t n) {
  capture_schema(meta, UINT32_MAX - (uint32_t)n, PROF_ARGS_PAIRS, "", 0, NULL, NULL);
}
static void make_track(prof_i_head *meta, uint64_t n) {
  capture_track(meta, (prof_device){PROF_DEVICE_CUDA, (int32_t)n}, n, "t");
}
static void make_session(prof_i_head *meta, uint64_t n) {
  capture_session(meta, CAPTURE_START + n, 1, n % 3);
}
static void make_clock(prof_i_head *meta, uint64_t n) {
  long_record r;
  long_begin(&r, PROF_I_KIND_CLOCK, CAPTURE_START + n, 0, 0);
  long_word(&r, CAPTURE_START + n);
  long_word(&r, 5000000 + n);
  long_word(&r, 1700000000000000000u + n);
  long_word(&r, 40);
  long_word(&r, n); /* each a segment of its own */
  long_end(&r, meta);
}

static const struct {
  const char *name;
  prof_i_extent_kind kind;
  void (*make)(prof_i_head *extent, uint64_t number);
} kinds[] = {
    {"plain scopes", PROF_I_EXTENT_CHUNK, make_plain},
    {"plain scopes out of order", PROF_I_EXTENT_CHUNK, make_plain_backwards},
    {"scopes nested as deep as they are many", PROF_I_EXTENT_CHUNK, make_nested},
    {"scopes that overlap a thousand others", PROF_I_EXTENT_CHUNK, make_overlapping},
    {"owners, each of a scope", PROF_I_EXTENT_CHUNK, make_owner},
    {"owners of nothing", PROF_I_EXTENT_CHUNK, make_owner_alone},
    {"exits", PROF_I_EXTENT_CHUNK, make_exit},
    {"names, no two the same", PROF_I_EXTENT_CHUNK, make_name},
    {"short arguments, no two the same", PROF_I_EXTENT_CHUNK, make_short_argument},
    {"steps", PROF_I_EXTENT_CHUNK, make_step},
    {"flows", PROF_I_EXTENT_CHUNK, make_flow},
    {"shapes, no two the same", PROF_I_EXTENT_CHUNK, make_tensor},
    {"sites from the highest number down", PROF_I_EXTENT_META, make_site},
    {"schemas from the highest number down", PROF_I_EXTENT_META, make_schema},
    {"tracks", PROF_I_EXTENT_META, make_track},
    {"sessions", PROF_I_EXTENT_META, make_session},
    {"clocks, each a segment", PROF_I_EXTENT_META, make_clock},
    {"slots, all entries open", PROF_I_EXTENT_SLOT, NULL},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

/* A capture of so many bytes. */
static void build(capture *c, size_t kind, uint64_t most) {
  static const uint32_t types[] = {PROF_ARG_TENSOR, PROF_ARG_STRING};
  static const char *const keys[] = {"text"};
  uint64_t number = 0;
  capture_begin(c, most);
  prof_i_head *const meta = capture_meta(c);
  capture_session(meta, CAPTURE_START, 2, 1);
  capture_site(meta, 1, "outer", "vm", 1);
  capture_schema(meta, 1, PROF_ARGS_SHAPES, "", 1, types, NULL);
  capture_schema(meta, 2, PROF_ARGS_PAIRS, "", 1, types + 1, keys);
  const uint64_t bytes = kinds[kind].kind == PROF_I_EXTENT_CHUNK  ? most - c->count
                         : kinds[kind].kind == PROF_I_EXTENT_META ? 4 * PROF_I_UNIT_BYTES
                                                                  : PROF_I_SLOT_BYTES;
  while (c->count + bytes <= most) {
    if (kinds[kind].kind == PROF_I_EXTENT_SLOT) {
      prof_i_thread_slot *const slot = capture_slot(c, ++number, "slot");
      while (slot->depth < PROF_I_OPEN_COUNT) capture_open(slot, CAPTURE_START + slot->depth, 1);
    } else {
      prof_i_head *const extent = capture_extent(c, kinds[kind].kind, bytes);
      extent->sequence = ++c->sequence << 1;
      extent->owner = 1;
      fill_extent(extent, kinds[kind].make, &number);
    }
  }
}

#endif
