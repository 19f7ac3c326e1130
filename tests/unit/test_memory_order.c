/* The one order of all threads' events. Threads hammer one pool with nothing between them. The
   order that is read back must be the order of the pool's counter: each event's sum is the previous
   sum and its own bytes, and its number the next. Then the same with records taken away, and
   counters that wrap. */
#define _GNU_SOURCE
#include <prof/memory.h>
#include <prof/trace.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../src/analysis/memory.h"
#include "build_capture.h"

enum { THREADS = 4, PAIRS = 150000 };

static prof_pool *pool;

static void *hammer(void *of) {
  const uint64_t own = ((uint64_t)(uintptr_t)of + 1) << 32;
  for (uint64_t i = 0; i < PAIRS; i++) {
    const void *const address = (const void *)(uintptr_t)(own + i % 100 * 4096);
    prof_memory_alloc(pool, address, i % 1000 + 1, 0);
    if (i % 1000 == 0) sched_yield();
    prof_memory_free(pool, address, i % 1000 + 1);
  }
  return NULL;
}

/* The sum that is highest, as the records have it. */
static int64_t expect_in_order(const prof_memory *memory) {
  uint64_t number = 0;
  int64_t used = 0, highest = 0;
  for (uint32_t i = 0; i < memory->item_count; i++) {
    const prof_i_memory_record record = prof_i_memory_item_read(&memory->items[memory->order[i]]);
    used += record.verb == PROF_I_VERB_ALLOC ? (int64_t)record.bytes : -(int64_t)record.bytes;
    number = (number + 1) & 0xfffff;
    if (record.counter >> PROF_I_USED_BITS != number || prof_i_used_bytes(record.counter) != used)
      fail_msg("event %u of %u has number %u and %lld bytes; it should be %u and %lld", i,
               memory->item_count, (unsigned)(record.counter >> PROF_I_USED_BITS),
               (long long)prof_i_used_bytes(record.counter), (unsigned)number, (long long)used);
    if (used > highest) highest = used;
  }
  return highest;
}

static void threads_at_one_pool_are_put_into_its_order(void **state) {
  (void)state;
  prof_memory_max max = {.size = sizeof max};
  assert_int_equal(
      prof_start_with(&(prof_options){.size = sizeof(prof_options), .cap_bytes = 256 << 20}),
      PROF_OK);
  assert_int_equal(prof_pool_create(NULL, &pool), PROF_OK);
  pthread_t threads[THREADS];
  for (uintptr_t i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, hammer, (void *)i), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  assert_int_equal(prof_memory_max_get(PROF_HOST, PROF_MEMORY_ANY, &max), PROF_OK);
  assert_int_equal(prof_stop(), PROF_OK);
  prof_trace *trace;
  prof_memory *memory;
  assert_int_equal(prof_get(&trace), PROF_OK);
  assert_int_equal(prof_memory_read(trace, &memory), PROF_OK);
  assert_int_equal(memory->item_count, THREADS * PAIRS * 2);
  assert_int_equal(memory->pools[0].info.missing_count, 0);
  assert_int_equal(expect_in_order(memory), max.max_used_bytes);
  assert_int_equal(memory->pools[0].info.peak_used.used_bytes, max.max_used_bytes);
  assert_int_equal(memory->pools[0].info.end.live_count, 0);
  for (int i = 0; i < PROF_MEMORY_WRONG_COUNT; i++)
    assert_int_equal(memory->pools[0].info.wrong_count[i], 0);
  prof_memory_destroy(memory);
  prof_trace_destroy(trace);
  prof_pool_destroy(pool);
}

/* ---- threads that are kept from their records, and records that are lost ---- */

enum { EVENTS = 3000, LINES = 5 };

static uint64_t draw(uint64_t *seed, uint64_t below) {
  *seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
  return (*seed >> 33) % below;
}

/* Event i takes its place in the order at time 100 * i; its thread has looked at the clock some
   time before, but after its own last event. */
static void lose_and_delay(uint64_t seed, uint32_t lost_permille, uint32_t delay_max) {
  capture c;
  capture_begin(&c, 4 << 20);
  prof_i_head *const meta = capture_meta(&c);
  capture_session(meta, CAPTURE_START, 1, 1);
  prof_i_pool_state *const pool_state = capture_pool(&c, meta, 1, 1, "p", 0);
  prof_i_head *chunks[LINES];
  uint64_t last[LINES] = {0}, lost = 0;
  for (uint32_t i = 0; i < LINES; i++) chunks[i] = capture_chunk(&c, 1 << 18, i + 1u);
  static uint64_t kept[EVENTS];
  uint32_t kept_count = 0;
  uint64_t counter = PROF_I_USED_ZERO;
  for (uint64_t i = 0; i < EVENTS; i++) {
    const uint64_t thread = draw(&seed, LINES), reached = 100 * i + 50,
                   delay = draw(&seed, delay_max + 1);
    const uint64_t earliest = last[thread] + 1, wanted = reached > delay ? reached - delay : 0,
                   ticks = wanted > earliest ? wanted : earliest;
    last[thread] = reached;
    counter += PROF_I_USED_ONE_EVENT + 16;
    if (draw(&seed, 1000) < lost_permille) {
      lost++;
      continue;
    }
    kept[kept_count++] = counter;
    capture_piece(chunks[thread], CAPTURE_START + ticks, 1, 0, 0x1000 + i * 16, 16, 0, counter);
  }
  pool_state->used = counter;
  prof_trace *trace;
  prof_memory *memory;
  assert_int_equal(prof_trace_open_bytes(c.bytes, c.count, &trace), PROF_OK);
  assert_int_equal(prof_memory_read(trace, &memory), PROF_OK);
  assert_int_equal(memory->item_count, kept_count);
  for (uint32_t i = 0; i < kept_count; i++)
    assert_int_equal(prof_i_memory_item_read(&memory->items[memory->order[i]]).counter, kept[i]);
  assert_int_equal(memory->pools[0].info.missing_count, lost);
  assert_int_equal(memory->pools[0].info.end.live_count, kept_count);
  prof_memory_destroy(memory);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void a_thread_may_be_kept_from_its_record(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20; seed++) lose_and_delay(seed, 0, seed % 2 ? 1000 : 100000);
}

static void records_that_are_lost_are_counted_one_by_one(void **state) {
  (void)state;
  for (uint32_t seed = 1; seed <= 20; seed++)
    lose_and_delay(seed, seed * 40, seed % 2 ? 500 : 20000);
}

/* A handler came between the clock and the sum of an event, and took longer than clocks may be
   apart. Its events have later clocks and earlier places, in the chunk or the previous one. */
static void a_handler_may_take_its_time(void **state) {
  (void)state;
  enum { HANDLED = 6 };
  for (int split = 0; split <= HANDLED; split++) {
    capture c;
    capture_begin(&c, 4 << 20);
    prof_i_head *const meta = capture_meta(&c);
    capture_session(meta, CAPTURE_START, 1, 1);
    prof_i_pool_state *const states[] = {capture_pool(&c, meta, 1, 1, "p", 0),
                                         capture_pool(&c, meta, 2, 1, "q", 0)};
    prof_i_head *const first = capture_chunk(&c, 1 << 14, 1), *const second =
                                                                  capture_chunk(&c, 1 << 14, 1);
    uint64_t counters[2] = {PROF_I_USED_ZERO, PROF_I_USED_ZERO};
    for (int i = 0; i < HANDLED; i++) /* every other one at another pool */
      capture_piece(i < split ? first : second, CAPTURE_START + 2000000 + (uint64_t)i * 500000,
                    1 + (uint32_t)i % 2, 0, 0x1000 + (uint64_t)i * 16, 16, 0,
                    counters[i % 2] += PROF_I_USED_ONE_EVENT + 16);
    capture_piece(second, CAPTURE_START + 1000000, 2, 0, 0x9000, 16, 0,
                  counters[1] += PROF_I_USED_ONE_EVENT + 16);
    states[0]->used = counters[0];
    states[1]->used = counters[1];
    prof_trace *trace;
    prof_memory *memory;
    assert_int_equal(prof_trace_open_bytes(c.bytes, c.count, &trace), PROF_OK);
    assert_int_equal(prof_memory_read(trace, &memory), PROF_OK);
    assert_int_equal(memory->item_count, HANDLED + 1);
    uint64_t numbers[2] = {0, 0};
    for (uint32_t i = 0; i < memory->item_count; i++) {
      const prof_i_memory_record record = prof_i_memory_item_read(&memory->items[memory->order[i]]);
      assert_int_equal(record.counter >> PROF_I_USED_BITS, ++numbers[record.pool - 1]);
    }
    assert_int_equal(memory->pools[0].info.missing_count + memory->pools[1].info.missing_count, 0);
    prof_memory_destroy(memory);
    prof_trace_destroy(trace);
    capture_end(&c);
  }
}

/* One thread's pieces, of which some are missing between the tenth and the next. A second thread's
   begin with the first of them and get their place behind all. */
static void skip_numbers(uint64_t missing, bool is_overtaken) {
  capture c;
  enum { SEEN = 20 };
  capture_begin(&c, 1 << 20);
  prof_i_head *const meta = capture_meta(&c);
  capture_session(meta, CAPTURE_START, 1, 1);
  prof_i_pool_state *const state = capture_pool(&c, meta, 1, 1, "p", 0);
  prof_i_head *const chunk = capture_chunk(&c, 1 << 14, 1), *const other =
                                                                capture_chunk(&c, 1 << 14, 2);
  uint64_t number = 0;
  for (uint64_t i = 0; i < SEEN; i++) {
    number += i == SEEN / 2 ? missing + 1 : 1;
    capture_piece(chunk, CAPTURE_START + 1000000 + i * 1000000, 1, 0, 0x1000 + i * 16, 16, 0,
                  PROF_I_USED_ZERO + (i + 1) * 16 + number * PROF_I_USED_ONE_EVENT);
  }
  number++;
  if (is_overtaken)
    capture_piece(other, CAPTURE_START + 500000, 1, 0, 0x90000, 16, 0,
                  PROF_I_USED_ZERO + (SEEN + 1) * 16 + number * PROF_I_USED_ONE_EVENT);
  else
    number--;
  state->used =
      PROF_I_USED_ZERO + (SEEN + (is_overtaken ? 1u : 0u)) * 16 + number * PROF_I_USED_ONE_EVENT;
  state->rounds = number >> (64 - PROF_I_USED_BITS);
  prof_trace *trace;
  prof_memory *memory;
  assert_int_equal(prof_trace_open_bytes(c.bytes, c.count, &trace), PROF_OK);
  assert_int_equal(prof_memory_read(trace, &memory), PROF_OK);
  assert_int_equal(memory->pools[0].info.missing_count, missing);
  for (uint32_t i = 0; i < SEEN; i++)
    assert_int_equal(prof_i_memory_item_read(&memory->items[memory->order[i]]).address,
                     0x1000 + i * 16);
  prof_memory_destroy(memory);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void however_many_are_missing_they_are_counted(void **state) {
  (void)state;
  static const uint64_t missing[] = {0,
                                     1,
                                     500000,
                                     524288,
                                     700000,
                                     1000000,
                                     (1 << 20) - 1,
                                     1 << 20,
                                     (1 << 20) + 1,
                                     3000000,
                                     UINT64_C(5) << 30};
  for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) skip_numbers(missing[i], false);
}

static void a_thread_may_be_overtaken_by_nearly_a_round(void **state) {
  (void)state;
  static const uint64_t missing[] = {0, 1000, 500000, 600000, 900000};
  for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) skip_numbers(missing[i], true);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(threads_at_one_pool_are_put_into_its_order),
                                     cmocka_unit_test(a_thread_may_be_kept_from_its_record),
                                     cmocka_unit_test(records_that_are_lost_are_counted_one_by_one),
                                     cmocka_unit_test(a_handler_may_take_its_time),
                                     cmocka_unit_test(however_many_are_missing_they_are_counted),
                                     cmocka_unit_test(a_thread_may_be_overtaken_by_nearly_a_round)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
