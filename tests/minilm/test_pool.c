/* The tensor pool: pieces never overlap, what comes back is used again and joined, and all of it
   goes back to the system. SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
/* cmocka.h wants the headers above it. */
#include <cmocka.h>

#include "pool_checks.h"

enum { BLOCK_BYTES = 1 << 16, SLOTS = 40, ROUNDS = 20000, THREADS = 4 };

typedef struct slot {
  unsigned char *memory;
  size_t bytes;
  unsigned char fill;
} slot;

static int has_foreign_bytes(const slot *s) {
  if (s->memory == NULL) return 0;
  for (size_t i = 0; i < s->bytes; i++)
    if (s->memory[i] != s->fill) return 1;
  return 0;
}

static int acquire_filled(pool *p, slot *s, size_t bytes, unsigned char fill) {
  *s = (slot){pool_acquire(p, bytes), bytes, fill};
  if (s->memory == NULL || (uintptr_t)s->memory % POOL_ALIGNMENT != 0) return 1;
  memset(s->memory, fill, bytes);
  return 0;
}

/* Each piece holds its own pattern from end to end: a piece that overlaps another is seen when
   either comes back. Returns the number of faults (the caller asserts: cmocka's jumps must not
   leave a thread). */
static int churn(pool *p, uint32_t seed) {
  slot slots[SLOTS] = {{NULL, 0, 0}};
  int fault_count = 0;
  for (int round = 0; round < ROUNDS; round++) {
    slot *s = &slots[next_random(&seed) % SLOTS];
    if (s->memory != NULL) {
      fault_count += has_foreign_bytes(s);
      pool_release(p, s->memory);
      s->memory = NULL;
      continue;
    }
    const size_t bytes = 1 + next_random(&seed) % (round % 50 == 0 ? 100000u : 5000u);
    fault_count += acquire_filled(p, s, bytes, (unsigned char)next_random(&seed));
  }
  for (int i = 0; i < SLOTS; i++) {
    fault_count += has_foreign_bytes(&slots[i]);
    pool_release(p, slots[i].memory);
  }
  return fault_count;
}

static void pieces_do_not_overlap_and_all_come_back(void **state) {
  (void)state;
  pool *p = pool_create(BLOCK_BYTES, &pool_host_memory);
  assert_int_equal(churn(p, 12345), 0);
  const pool_statistics s = statistics_of(p);
  print_message("  peak used %llu of %llu bytes reserved, %llu requests, %llu went to the system\n",
                (unsigned long long)s.used_peak_bytes, (unsigned long long)s.reserved_peak_bytes,
                (unsigned long long)s.request_count, (unsigned long long)s.reserve_count);
  assert_int_equal(s.used_bytes, 0);
  assert_int_equal(s.request_count, s.release_count);
  assert_int_equal(s.refused_count, 0);
  assert_true(s.used_peak_bytes <= s.reserved_peak_bytes);
  /* All pieces have been joined again: every block is one free piece and goes back. */
  assert_int_equal(pool_trim(p), s.reserve_count);
  assert_int_equal(statistics_of(p).reserved_bytes, 0);
  pool_destroy(p);
}

typedef struct job {
  pool *pool;
  uint32_t seed;
  int fault_count;
} job;

static void *churn_thread(void *argument) {
  job *j = argument;
  j->fault_count = churn(j->pool, j->seed);
  return NULL;
}

static void threads_share_a_pool(void **state) {
  (void)state;
  pool *p = pool_create(BLOCK_BYTES, &pool_host_memory);
  pthread_t threads[THREADS];
  job jobs[THREADS];
  for (int i = 0; i < THREADS; i++) {
    jobs[i] = (job){p, 100u + (uint32_t)i, 0};
    assert_int_equal(pthread_create(&threads[i], NULL, churn_thread, &jobs[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    assert_int_equal(jobs[i].fault_count, 0);
  }
  assert_int_equal(statistics_of(p).used_bytes, 0);
  assert_int_equal(pool_trim(p), statistics_of(p).reserve_count);
  pool_destroy(p);
}

static void released_memory_is_handed_out_again(void **state) {
  (void)state;
  pool *p = pool_create(BLOCK_BYTES, &pool_host_memory);
  void *a = pool_acquire(p, 1000), *b = pool_acquire(p, 1000), *c = pool_acquire(p, 1000);
  pool_release(p, b);
  assert_ptr_equal(pool_acquire(p, 1000), b);
  /* Two neighbours joined hold what neither could alone. */
  pool_release(p, a);
  pool_release(p, b);
  assert_ptr_equal(pool_acquire(p, 2000), a);
  assert_int_equal(statistics_of(p).reserve_count, 1);
  pool_release(p, a);
  pool_release(p, c);
  pool_destroy(p);
}

static void the_smallest_hole_that_fits_is_taken(void **state) {
  (void)state;
  pool *p = pool_create(BLOCK_BYTES, &pool_host_memory);
  void *wide = pool_acquire(p, 8000), *wall = pool_acquire(p, 64), *narrow = pool_acquire(p, 2000);
  void *end = pool_acquire(p, 64);
  pool_release(p, wide);
  pool_release(p, narrow);
  assert_ptr_equal(pool_acquire(p, 1900), narrow);
  pool_release(p, narrow);
  pool_release(p, wall);
  pool_release(p, end);
  pool_destroy(p);
}

static void a_request_larger_than_a_block_gets_its_own(void **state) {
  (void)state;
  pool *p = pool_create(BLOCK_BYTES, &pool_host_memory);
  unsigned char *large = pool_acquire(p, 10 * BLOCK_BYTES);
  assert_non_null(large);
  memset(large, 1, 10 * BLOCK_BYTES);
  void *small = pool_acquire(p, 1);
  assert_int_equal(statistics_of(p).used_bytes, 10 * BLOCK_BYTES + POOL_ALIGNMENT);
  pool_release(p, large);
  /* The block with the small piece stays. */
  assert_int_equal(pool_trim(p), 1);
  pool_release(p, small);
  pool_destroy(p);
}

static void requests_that_cannot_be_met_are_refused_and_counted(void **state) {
  (void)state;
  pool *p = pool_create(BLOCK_BYTES, &pool_host_memory);
  assert_null(pool_acquire(p, 0));
  assert_null(pool_acquire(p, SIZE_MAX));
  assert_null(pool_acquire(p, SIZE_MAX - POOL_ALIGNMENT));
  assert_int_equal(statistics_of(p).refused_count, 3);
  assert_int_equal(statistics_of(p).reserved_bytes, 0);
  pool_release(p, NULL);
  pool_destroy(p);
  pool_destroy(NULL);
}

/* What one stream gave back its device may still be at work on: nobody else gets it. */
static void streams_do_not_share_what_came_back(void **state) {
  (void)state;
  pool *p = pool_create(BLOCK_BYTES, &pool_host_memory);
  void *const first = pool_acquire_for(p, 1000, (pool_purpose){0, 1});
  assert_non_null(first);
  pool_release(p, first);
  void *const others = pool_acquire_for(p, 1000, (pool_purpose){0, 2}), *const nobodys =
                                                                            pool_acquire(p, 1000);
  assert_ptr_not_equal(others, first);
  assert_ptr_not_equal(nobodys, first);
  assert_int_equal(statistics_of(p).reserve_count, 3);
  assert_ptr_equal(pool_acquire_for(p, 1000, (pool_purpose){0, 1}), first);
  pool_release(p, others);
  pool_release(p, first);
  pool_release(p, nobodys);
  assert_int_equal(pool_trim(p), 3);
  pool_destroy(p);
}

static void what_the_pool_has_not_handed_out_is_ignored(void **state) {
  (void)state;
  char foreign[64];
  pool *p = pool_create(BLOCK_BYTES, &pool_host_memory);
  char *const memory = pool_acquire(p, 1000);
  pool_release(p, foreign);
  pool_release(p, memory + 64);
  assert_int_equal(statistics_of(p).release_count, 0);
  pool_release(p, memory);
  pool_release(p, memory);
  assert_int_equal(statistics_of(p).release_count, 1);
  assert_int_equal(statistics_of(p).used_bytes, 0);
  pool_destroy(p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(streams_do_not_share_what_came_back),
      cmocka_unit_test(what_the_pool_has_not_handed_out_is_ignored),
      cmocka_unit_test(pieces_do_not_overlap_and_all_come_back),
      cmocka_unit_test(threads_share_a_pool),
      cmocka_unit_test(released_memory_is_handed_out_again),
      cmocka_unit_test(the_smallest_hole_that_fits_is_taken),
      cmocka_unit_test(a_request_larger_than_a_block_gets_its_own),
      cmocka_unit_test(requests_that_cannot_be_met_are_refused_and_counted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
