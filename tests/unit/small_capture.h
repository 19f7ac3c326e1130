/* One small capture with a little of everything: what mutation tests and the fuzzer's seeds start
   from. */
#ifndef PROF_TESTS_SMALL_CAPTURE_H
#define PROF_TESTS_SMALL_CAPTURE_H

#include "build_capture.h"

static CAPTURE_UNUSED void small_meta(capture *c) {
  static const uint32_t types[] = {PROF_ARG_I64, PROF_ARG_STRING, PROF_ARG_F64};
  static const uint32_t tensors[] = {PROF_ARG_TENSOR, PROF_ARG_TENSOR};
  static const char *const keys[] = {"count", "shape", "ratio"};
  prof_i_head *const meta = capture_meta(c);
  capture_session(meta, CAPTURE_START, 2, 1);
  capture_clock(c, meta, 0, 0, 0);
  capture_site(meta, 1, "outer", "vm", 2);
  capture_site(meta, 2, "matmul", "operator", 1);
  capture_site(meta, 3, "copy", "MemoryRequest", 1);
  capture_schema(meta, 1, PROF_ARGS_PAIRS, "", 3, types, keys);
  capture_schema(meta, 2, PROF_ARGS_SHAPES, "", 2, tensors, NULL);
  capture_schema(meta, 3, PROF_ARGS_FORMAT, "%d of %-10s at %6.2f", 3, types, NULL);
  capture_track(meta, (prof_device){PROF_DEVICE_CUDA, 0}, 7, "compute");
  capture_clock(c, meta, 5000000, 5000100, 0);
  capture_clock(c, meta, 9000000, 6000000, 1);
}

static CAPTURE_UNUSED void small_details(prof_i_head *chunk) {
  long_record r;
  long_begin(&r, PROF_I_KIND_SCOPE, CAPTURE_START + 2000, 500, 3);
  r.flags = PROF_I_FLAG_DEVICE | PROF_I_FLAG_STREAM | PROF_I_FLAG_NAME | PROF_I_FLAG_CATEGORY;
  r.schema = 1;
  long_word(&r, PROF_DEVICE_CUDA);
  long_word(&r, 7);
  long_text(&r, "run-time");
  long_text(&r, "kernel");
  long_word(&r, 12);
  long_text(&r, "[2, 3]");
  long_word(&r, 0x3ff8000000000000u);
  long_end(&r, chunk);
  long_begin(&r, PROF_I_KIND_SCOPE, CAPTURE_START + 2600, 0, 2);
  r.flags = PROF_I_FLAG_LONG;
  r.schema = 2;
  long_word(&r, 300);
  for (uint64_t i = 0; i < 2; i++) {
    long_word(&r, 2 | (uint64_t)PROF_F32 << 32);
    long_word(&r, 4 + i);
    long_word(&r, 5 + i);
  }
  long_end(&r, chunk);
  long_begin(&r, PROF_I_KIND_SCOPE, CAPTURE_START + 2950, 10, 2);
  r.flags = PROF_I_FLAG_OTHER_THREAD;
  r.schema = 3;
  long_word(&r, 3);
  long_text(&r, "many");
  long_word(&r, 0x4008000000000000u);
  long_end(&r, chunk);
}

static CAPTURE_UNUSED void small_marks(prof_i_head *chunk) {
  long_record r;
  long_begin(&r, PROF_I_KIND_INSTANT, CAPTURE_START + 3000, 0, 1);
  long_end(&r, chunk);
  long_begin(&r, PROF_I_KIND_COUNTER, CAPTURE_START + 3010, 0, 3);
  long_word(&r, 0x4008000000000000u);
  long_end(&r, chunk);
  for (uint64_t end = 0; end < 2; end++) {
    long_begin(&r, PROF_I_KIND_FLOW, CAPTURE_START + 3020 + end, 0, 0);
    long_word(&r, 5);
    long_word(&r, end);
    long_text(&r, "flow");
    long_end(&r, chunk);
  }
  for (uint64_t step = 0; step < 2; step++) {
    long_begin(&r, PROF_I_KIND_STEP, CAPTURE_START + 3100 + step * 50, 0, 0);
    long_word(&r, step);
    long_end(&r, chunk);
  }
}

static CAPTURE_UNUSED void small_slot(capture *c) {
  long_record r;
  prof_i_thread_slot *const slot = capture_slot(c, 1, "main");
  capture_open(slot, CAPTURE_START + 100, 1);
  long_begin(&r, PROF_I_KIND_SCOPE, CAPTURE_START + 3900, 0, 2);
  r.flags = PROF_I_FLAG_NAME;
  long_text(&r, "still open");
  capture_open_long(slot, &r);
  capture_open(slot, CAPTURE_START + 4000, 3); /* its record stands below */
  slot->lost[PROF_LOSS_FULL] = 2;
  prof_i_head *const reserve = capture_reserve(c, slot);
  capture_owner(reserve, 1, 101, "main");
  capture_plain(reserve, CAPTURE_START + 4600, 900, 2);
}

static CAPTURE_UNUSED void small_capture(capture *c) {
  capture_begin(c, 192 << 10);
  small_meta(c);
  prof_i_head *const chunk = capture_chunk(c, PROF_I_UNIT_BYTES, 1);
  for (uint64_t i = 0; i < 6; i++)
    capture_plain(chunk, CAPTURE_START + 200 + i * 100, 50, 2 + i % 2);
  capture_plain(chunk, CAPTURE_START + 150, 800, 1);
  small_details(chunk);
  capture_claim(chunk, 2);
  *capture_claim(chunk, 8) = 4 << PROF_I_PENDING_SLOTS_SHIFT | 1 << 4;
  small_marks(chunk);
  *capture_claim(chunk, 4) = 2 << PROF_I_PENDING_SLOTS_SHIFT | 1 << 4 | 1ull << PROF_I_FILLER_BIT;
  capture_plain(chunk, CAPTURE_START + 4000, 400, 3);
  capture_exit(chunk, 3, "gone", PROF_LOSS_LATE, 4);
  capture_owner(chunk, 2, 102, "taker");
  capture_plain(chunk, CAPTURE_START + 4200, 100, 2);
  capture_plain(chunk, CAPTURE_START + 4100, 150, 3); /* overlaps */
  capture_plain(chunk, CAPTURE_START + 4150, 20, 2);  /* out of order */
  chunk->owner = 2;
  small_slot(c);
  capture_header(c)->clear_ticks = CAPTURE_START + 260;
  capture_header(c)->unattributed[PROF_LOSS_LATE] = 4;
}

#endif
