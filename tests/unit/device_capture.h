/* A small capture with a device: what mutation tests and the fuzzer's seed of devices start
   from. */
#ifndef PROF_TESTS_DEVICE_CAPTURE_H
#define PROF_TESTS_DEVICE_CAPTURE_H

#include "build_capture.h"

static CAPTURE_UNUSED void put_device(prof_i_head *meta, const prof_i_device_state *state) {
  long_record r;
  long_begin(&r, PROF_I_KIND_DEVICE, CAPTURE_START, 0, 0);
  memcpy(r.words + r.count, state, sizeof *state);
  r.count += sizeof *state / 8;
  long_end(&r, meta);
}

static CAPTURE_UNUSED void put_device_scope(prof_i_head *chunk, uint64_t start, uint64_t duration,
                                            uint32_t flags, uint64_t launched_by,
                                            uint64_t launched) {
  long_record r;
  long_begin(&r, PROF_I_KIND_SCOPE, CAPTURE_START + start, duration, 1);
  r.flags = flags;
  if (flags & PROF_I_FLAG_DEVICE) long_word(&r, 4 | UINT64_C(1) << 32);
  if (flags & PROF_I_FLAG_STREAM) long_word(&r, 0x7000);
  if (flags & PROF_I_FLAG_NAME) long_text(&r, "made at run time");
  if (launched_by) {
    long_word(&r, launched_by);
    long_word(&r, CAPTURE_START + launched);
    long_word(&r, 1000 + start);
    long_word(&r, 1000 + start + duration);
  }
  long_end(&r, chunk);
}

/* Those of the thread, two in each other, across the edges of its scopes; and one of a thread that
   has nothing else. */
static CAPTURE_UNUSED void put_calls(capture *c) {
  static const uint64_t of[] = {1, PROF_I_SERIAL_OF_KERNELS | 4711};
  for (uint64_t i = 0; i < sizeof of / sizeof *of; i++) {
    long_record r;
    prof_i_head *const line = capture_extent(c, PROF_I_EXTENT_CHUNK, PROF_I_UNIT_BYTES);
    line->sequence = ++c->sequence << 1;
    capture_owner_as(line, 3 + i, of[i], PROF_I_KIND_OF_CALLS, "calls");
    long_begin(&r, PROF_I_KIND_CALL, CAPTURE_START + 9, 3, 1);
    long_end(&r, line);
    long_begin(&r, PROF_I_KIND_CALL, CAPTURE_START + 8, 9, 1);
    long_end(&r, line);
  }
}

/* A thread, a stream of a device, one of a device that has no back end. Scopes in each other,
   launches that are in no scope, of no thread, and at one moment. */
static CAPTURE_UNUSED void device_capture(capture *c) {
  enum { SIDE = PROF_I_FLAG_DEVICE | PROF_I_FLAG_STREAM };
  capture_begin(c, 160 << 10);
  prof_i_head *const meta = capture_meta(c);
  capture_site(meta, 1, "kernel", "operator", 1);
  capture_track(meta, (prof_device){4, 1}, 0x7000, "compute");
  put_device(meta, &(prof_i_device_state){.type = 4,
                                          .index = 1,
                                          .flags = PROF_I_DEVICE_READ,
                                          .scope_count = 5,
                                          .clock_error_ns = 7,
                                          .early_count = 1,
                                          .early_ns = 3,
                                          .name = "a device",
                                          .back_end = "opencl"});
  put_device(meta, &(prof_i_device_state){.type = 2, .result = -1, .reason = "cuda: nowhere"});
  prof_i_head *const chunk = capture_chunk(c, PROF_I_UNIT_BYTES, 1), *const stream = capture_extent(
                                                                         c, PROF_I_EXTENT_CHUNK,
                                                                         PROF_I_UNIT_BYTES);
  stream->sequence = ++c->sequence << 1;
  capture_owner_as(stream, 2, 0x7000,
                   PROF_I_KIND_OF_STREAM | 4 << PROF_I_THREAD_KIND_TYPE_SHIFT |
                       UINT64_C(1) << PROF_I_THREAD_KIND_INDEX_SHIFT,
                   "stream 0x7000");
  put_device_scope(chunk, 12, 3, SIDE, 0, 0);
  put_device_scope(chunk, 16, 1, SIDE | PROF_I_FLAG_NAME, 0, 0);
  put_device_scope(chunk, 10, 10, SIDE, 0, 0);
  capture_plain(chunk, CAPTURE_START + 5, 40, 1);
  put_device_scope(stream, 20, 5, SIDE, 1, 12);
  put_device_scope(stream, 18, 12, SIDE, 1, 10);
  put_device_scope(stream, 31, 4, SIDE | PROF_I_FLAG_NAME, 1, 16);
  put_device_scope(stream, 40, 4, SIDE, 1, 400);
  put_device_scope(stream, 50, 4, SIDE, 77, 16);
  put_device_scope(stream, 60, 4, SIDE, 0, 0);
  put_calls(c);
}

#endif
