/* A capture of 1 ms with memory in it, whose figures are known. It has a pool whose peaks are 12
   MiB used at 300 us and 16 MiB allocated at 100 us, and a query with two samples. */
#ifndef PROF_TESTS_MEMORY_CAPTURE_H
#define PROF_TESTS_MEMORY_CAPTURE_H

#include <prof/memory.h>

#include "build_capture.h"

enum { MEMORY_MIB = 1 << 20, MEMORY_US = 1000 };

/* ---- pools that count themselves ---- */

/* On the first CUDA device; its counts stand at 0. */
static CAPTURE_UNUSED prof_i_pool_state *memory_pool(const capture *c, prof_i_head *meta,
                                                     uint32_t number, uint32_t source,
                                                     uint64_t session, const char *name) {
  uint64_t *const words = (uint64_t *)((unsigned char *)meta + meta->cursor);
  prof_i_pool_state *const state = capture_pool(c, meta, number, source, name, 0);
  words[4] = (uint64_t)PROF_DEVICE_CUDA;
  words[5] = number | session << 32;
  state->used_peaks[0] = (prof_i_peak){source == PROF_MEMORY_QUERY ? 0 : PROF_I_USED_ZERO,
                                       CAPTURE_START, 0, CAPTURE_START};
  state->allocated_peaks[0] = (prof_i_peak){PROF_I_USED_ZERO, CAPTURE_START, 0, CAPTURE_START};
  return state;
}

/* A piece handed out, or come back: of the pool's next number. */
static CAPTURE_UNUSED void memory_piece(prof_i_head *chunk, prof_i_pool_state *state,
                                        uint64_t ticks, bool is_free, uint64_t address,
                                        uint64_t bytes) {
  state->used += PROF_I_USED_ONE_EVENT + (is_free ? 0 - bytes : bytes);
  if (prof_i_used_bytes(state->used) > prof_i_used_bytes(state->used_peaks[0].peak))
    state->used_peaks[0].peak = state->used, state->used_peaks[0].peak_ticks = ticks;
  capture_piece(chunk, ticks, (uint32_t)state->number, is_free, address, bytes, 0, state->used);
}

/* Any other event of a pool: what is then allocated; of a sample, bytes are used. */
static CAPTURE_UNUSED void memory_event(prof_i_head *chunk, prof_i_pool_state *state,
                                        uint64_t ticks, prof_i_verb verb, uint32_t tag,
                                        uint64_t bytes, uint64_t allocated) {
  state->used += verb == PROF_I_VERB_SAMPLE ? 1 : PROF_I_USED_ONE_EVENT;
  state->allocated = PROF_I_USED_ZERO + allocated;
  if (state->allocated > state->allocated_peaks[0].peak)
    state->allocated_peaks[0].peak = state->allocated, state->allocated_peaks[0].peak_ticks = ticks;
  if (verb == PROF_I_VERB_SAMPLE && bytes > state->used_peaks[0].peak)
    state->used_peaks[0].peak = bytes, state->used_peaks[0].peak_ticks = ticks;
  capture_memory(chunk, ticks, verb, (uint32_t)state->number, 0x1000000, bytes, state->used,
                 state->allocated, 0, tag);
}

/* ---- the capture ---- */

static CAPTURE_UNUSED void memory_sites(capture *c, prof_i_head *meta) {
  capture_session(meta, CAPTURE_START, 2, 1);
  capture_clock(c, meta, 0, 0, 0);
  capture_site(meta, 1, "load", "vm", 2);
  capture_site(meta, 2, "forward", "vm", 2);
  capture_site(meta, 3, "tail", "vm", 2);
  capture_site(meta, 4, "loaded", "", 0);
  capture_clock(c, meta, 1000 * MEMORY_US, 1000 * MEMORY_US, 0);
}

static CAPTURE_UNUSED uint64_t memory_at(uint64_t us) { return CAPTURE_START + us * MEMORY_US; }

static CAPTURE_UNUSED void memory_events(prof_i_head *chunk, prof_i_pool_state *pool,
                                         prof_i_pool_state *query) {
  memory_event(chunk, pool, memory_at(100), PROF_I_VERB_RESERVE, 0, 16 * MEMORY_MIB,
               16 * MEMORY_MIB);
  memory_piece(chunk, pool, memory_at(200), false, 0x1000000, 4 * MEMORY_MIB);
  capture_plain(chunk, memory_at(150), 100 * MEMORY_US, 1);
  memory_event(chunk, query, memory_at(260), PROF_I_VERB_SAMPLE, 4, 4 * MEMORY_MIB,
               16 * MEMORY_MIB);
  memory_piece(chunk, pool, memory_at(300), false, 0x1800000, 8 * MEMORY_MIB);
  memory_piece(chunk, pool, memory_at(500), true, 0x1800000, 8 * MEMORY_MIB);
  capture_plain(chunk, memory_at(280), 240 * MEMORY_US, 2);
  memory_event(chunk, query, memory_at(550), PROF_I_VERB_SAMPLE, 0, 1536, 16 * MEMORY_MIB);
  memory_piece(chunk, pool, memory_at(600), false, 0x1900000, MEMORY_MIB);
  memory_piece(chunk, pool, memory_at(700), true, 0x7000000, 512);
  capture_plain(chunk, memory_at(900), 100 * MEMORY_US, 3);
}

static CAPTURE_UNUSED void memory_capture(capture *c, const char *name) {
  capture_begin(c, 192 << 10);
  prof_i_head *const meta = capture_meta(c);
  memory_sites(c, meta);
  prof_i_pool_state *const pool = memory_pool(c, meta, 1, PROF_MEMORY_POOL, 1, name);
  prof_i_pool_state *const query = memory_pool(c, meta, 2, PROF_MEMORY_QUERY, 1, "query");
  memory_events(capture_chunk(c, PROF_I_UNIT_BYTES, 1), pool, query);
}

#endif
