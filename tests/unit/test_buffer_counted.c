/* Counts of full chunks are kept: prof_health() walks a chunk once, and again after a clear or when
   the chunk is another's. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <prof/profiler.h>

#include "core/buffer/arena.h"
#include "core/buffer/chunk.h"
#include "core/buffer/clock.h"
#include "format/layout.h"
#include "fresh_arena.h"
#include "health.h"

enum { SCOPES = 200000 }; /* 3 MiB of records: some chunks of 256 KiB and more are full */

/* Adds to what is known of the first chunk that is known. Its head, or NULL. */
static const prof_i_head *falsify_one(uint64_t more) {
  const prof_i_head *found = NULL;
  uint64_t offset = 0;
  const uint64_t end = prof_i_arena_readable_bytes();
  assert_true(prof_i_count_cache_acquire(prof_i_the_arena.number, prof_i_the_arena.cap_bytes));
  for (prof_i_head *head; !found && (head = prof_i_arena_next(&offset, end)) != NULL;) {
    prof_i_counted_chunk *const known =
        prof_i_count_cache_find(prof_i_arena_offset(head), head->bytes);
    if (!known || !known->sequence) continue;
    assert_int_equal(known->sequence, head->sequence);
    known->live += more;
    found = head;
  }
  prof_i_count_cache_release();
  return found;
}

static void a_full_chunk_is_walked_once(void **state) {
  (void)state;
  start(PROF_POLICY_KEEP, 64 << 20);
  record(SCOPES);
  assert_null(falsify_one(7)); /* nobody has asked yet */
  assert_int_equal(health_now().recorded_count, SCOPES);
  assert_non_null(falsify_one(7));
  assert_int_equal(health_now().recorded_count, SCOPES + 7);
  record(1000); /* the chunk that is written to is walked each time */
  assert_int_equal(health_now().recorded_count, SCOPES + 7 + 1000);
}

static void what_is_known_ends_with_a_clear(void **state) {
  (void)state;
  start(PROF_POLICY_KEEP, 64 << 20);
  record(SCOPES);
  assert_int_equal(health_now().recorded_count, SCOPES);
  assert_non_null(falsify_one(7));
  assert_int_equal(prof_clear(), PROF_OK);
  assert_int_equal(health_now().recorded_count, 0);
  assert_int_equal(health_now().lost_count[PROF_LOSS_CLEARED], SCOPES);
  record(SCOPES); /* partly into the same chunks */
  assert_int_equal(health_now().recorded_count, SCOPES);
  assert_int_equal(health_now().recorded_count, SCOPES);
}

/* As if a concurrent prof_clear() has not reached the chunk yet. */
static void what_had_ended_by_a_clear_is_not_walked_again(void **state) {
  (void)state;
  start(PROF_POLICY_KEEP, 64 << 20);
  record(SCOPES);
  assert_int_equal(health_now().recorded_count, SCOPES);
  const prof_i_head *const head = falsify_one(7);
  assert_non_null(head);
  uint64_t *const clear_ticks = &prof_i_arena_header()->clear_ticks;
  *clear_ticks = prof_i_clock_ticks();
  assert_int_equal(health_now().recorded_count, 0);
  assert_int_equal(health_now().lost_count[PROF_LOSS_CLEARED], SCOPES + 7);
  /* Some events of this chunk had ended, others had not: it is walked. */
  const uint64_t *const words =
      (const uint64_t *)((const char *)head + (head->bytes / 2 & ~UINT64_C(15)));
  *clear_ticks = (words[0] >> 4) + (words[1] >> PROF_I_DURATION_SHIFT);
  const prof_health health = health_now();
  assert_true(health.recorded_count > 0 && health.lost_count[PROF_LOSS_CLEARED] > 0);
  assert_int_equal(health.recorded_count + health.lost_count[PROF_LOSS_CLEARED], SCOPES);
  *clear_ticks = 0; /* as it was: what was found first is still known */
  assert_int_equal(health_now().recorded_count, SCOPES + 7);
}

static void what_is_known_ends_where_a_ring_comes_round(void **state) {
  (void)state;
  start(PROF_POLICY_RING, 16 << 20);
  for (uint64_t all = 0; all < 10 * (uint64_t)SCOPES;) {
    record(SCOPES);
    all += SCOPES;
    const prof_health health = health_now();
    assert_int_equal(health.recorded_count + health.lost_count[PROF_LOSS_OVERWRITTEN], all);
  }
  assert_non_null(falsify_one(7));
  record(16 << 16); /* each chunk is another one */
  const prof_health health = health_now();
  assert_int_equal(health.recorded_count + health.lost_count[PROF_LOSS_OVERWRITTEN],
                   10 * SCOPES + (16 << 16));
}

static void what_is_known_ends_with_the_capture(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++) {
    start(PROF_POLICY_KEEP, (32 << 20) + ((uint64_t)i << 20));
    record(SCOPES);
    assert_int_equal(health_now().recorded_count, SCOPES);
    assert_non_null(falsify_one(7));
    assert_int_equal(prof_stop(), PROF_OK);
  }
}

/* Somebody else has the table: everything is walked. */
static void who_finds_the_table_taken_walks(void **state) {
  (void)state;
  start(PROF_POLICY_KEEP, 64 << 20);
  record(SCOPES);
  assert_int_equal(health_now().recorded_count, SCOPES);
  assert_non_null(falsify_one(7));
  assert_true(prof_i_count_cache_acquire(prof_i_the_arena.number, prof_i_the_arena.cap_bytes));
  assert_int_equal(health_now().recorded_count, SCOPES);
  prof_i_count_cache_release();
  assert_int_equal(health_now().recorded_count, SCOPES + 7);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_full_chunk_is_walked_once),
      cmocka_unit_test(what_is_known_ends_with_a_clear),
      cmocka_unit_test(what_had_ended_by_a_clear_is_not_walked_again),
      cmocka_unit_test(what_is_known_ends_where_a_ring_comes_round),
      cmocka_unit_test(what_is_known_ends_with_the_capture),
      cmocka_unit_test(who_finds_the_table_taken_walks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
