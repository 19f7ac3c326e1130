/* Chunks: how they grow, when the last of the room is used, what the next thread takes over, what a
   ring and a clear give back. */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include <prof/memory.h>
#include <prof/profiler.h>

#include "../hang_guard.h"
#include "core/buffer/arena.h"
#include "format/layout.h"
#include "fresh_arena.h"
#include "health.h"

/* The sizes of the arena's chunks in the order in which they were made. */
static size_t chunk_sizes(uint64_t *sizes, size_t room) {
  size_t count = 0;
  uint64_t offset = 0;
  const uint64_t end = prof_i_arena_readable_bytes();
  for (prof_i_head *head; (head = prof_i_arena_next(&offset, end)) != NULL;)
    if (head->kind == PROF_I_EXTENT_CHUNK && count < room) sizes[count++] = head->bytes;
  return count;
}

static void chunks_grow_by_four_up_to_a_64th_of_the_arena(void **state) {
  (void)state;
  static const struct {
    uint64_t cap_mib, largest_kib;
  } cases[] = {{1, 64}, {16, 256}, {64, 1024}, {256, 1024}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    uint64_t sizes[8];
    start(PROF_POLICY_KEEP, cases[c].cap_mib << 20);
    record(40000); /* 640 KB and what chunks lose at their ends */
    const size_t count = chunk_sizes(sizes, 8);
    assert_true(count >= 2);
    uint64_t wanted = PROF_I_UNIT_BYTES;
    for (size_t i = 0; i < count; i++, wanted = wanted * 4 < cases[c].largest_kib << 10
                                                    ? wanted * 4
                                                    : cases[c].largest_kib << 10)
      assert_int_equal(sizes[i], wanted);
  }
}

static void the_largest_record_finds_a_chunk(void **state) {
  (void)state;
  static char huge[40000];
  memset(huge, 'h', sizeof huge - 1);
  for (uint32_t policy = PROF_POLICY_KEEP; policy <= PROF_POLICY_RING; policy++) {
    start(policy, 1 << 20);
    for (int i = 0; i < 10; i++) WITH_BASE_PROFILER(PROF_HOST, huge, "x", PROF_ARGS("n", i), {});
    assert_int_equal(health_now().recorded_count, 10);
  }
}

static void the_cap_is_used_up_to_its_last_unit(void **state) {
  (void)state;
  start(PROF_POLICY_KEEP, 1 << 20);
  record(100000);
  const prof_health health = health_now();
  assert_int_equal(health.is_full, 1);
  assert_int_equal(health.recorded_count + health.lost_count[PROF_LOSS_FULL], 100000);
  assert_in_range(health.arena_bytes, (1 << 20) - PROF_I_UNIT_BYTES + 1, 1 << 20);
  /* header, a slot, the meta extents; the rest holds records but for the chunks' heads and
     owners */
  assert_in_range(health.recorded_count, ((1 << 20) - 3 * PROF_I_SLOT_BYTES) / 16, (1 << 20) / 16);
}

/* A thread looked for room before a clear, and says only after it that there was none. */
static void who_was_late_does_not_make_a_cleared_capture_full(void **state) {
  (void)state;
  start(PROF_POLICY_KEEP, 1 << 20);
  const uint64_t era = prof_i_arena_room_epoch();
  record(100000);
  assert_int_equal(health_now().is_full, 1);
  assert_int_equal(prof_clear(), PROF_OK);
  prof_i_arena_set_full(PROF_LOSS_FULL, era);
  assert_int_equal(health_now().is_full, 0);
  assert_int_equal(prof_i_arena_header()->full_ticks, 0);
  const uint64_t before = health_now().recorded_count;
  record(1000);
  assert_int_equal(health_now().recorded_count, before + 1000);
}

static void scopes_open_when_the_arena_fills_are_recorded(void **state) {
  (void)state;
  start(PROF_POLICY_KEEP, 1 << 20);
  WITH_BASE_PROFILER(PROF_HOST, "outer", "x", PROF_ARGS("n", 1), {
    WITH_BASE_PROFILER(PROF_HOST, "middle", "x", PROF_NO_ARGS, {
      WITH_BASE_PROFILER(PROF_HOST, "inner", "x", PROF_NO_ARGS, { record(100000); });
    });
  });
  uint64_t count = 0;
  static const char *const names[] = {"outer", "middle", "inner"};
  for (int i = 0; i < 3; i++) {
    assert_int_equal(prof_get_duration(names[i], NULL, NULL, &count), PROF_OK);
    assert_int_equal(count, 1);
  }
  const prof_health health = health_now();
  assert_int_equal(health.recorded_count + health.lost_count[PROF_LOSS_FULL], 100003);
}

static void a_ring_keeps_the_newest_and_counts_the_rest(void **state) {
  (void)state;
  start(PROF_POLICY_RING, 1 << 20);
  record(500000);
  PROF_INSTANT("the last", "x", PROF_NO_ARGS);
  const prof_health health = health_now();
  assert_int_equal(health.is_full, 0);
  assert_int_equal(health.recorded_count + health.lost_count[PROF_LOSS_OVERWRITTEN], 500001);
  assert_in_range(health.recorded_count, (1 << 20) / 16 / 2, (1 << 20) / 16);
  uint64_t sizes[64];
  const size_t count = chunk_sizes(sizes, 64);
  assert_int_equal(sizes[0], 16 << 10); /* the first is small, as for any thread */
  for (size_t i = 1; i < count; i++) assert_int_equal(sizes[i], 64 << 10);
}

/* Words of a chunk's free room at which a record may begin. A reader would take them for a record
   of the chunk's generation if the room were claimed and not yet marked. */
static uint64_t misleading_words(uint64_t *looked_at) {
  uint64_t count = 0, offset = 0;
  const uint64_t end = prof_i_arena_readable_bytes();
  for (prof_i_head *head; (head = prof_i_arena_next(&offset, end)) != NULL;) {
    if (head->kind != PROF_I_EXTENT_CHUNK) continue;
    for (uint64_t at = head->cursor; at < head->bytes; at += 16, ++*looked_at) {
      const uint64_t word = *(const uint64_t *)(const void *)((const char *)head + at);
      count += (word & PROF_I_GENERATION_MASK) == head->generation ||
               ((word & 15) == 0 && (word >> 4 & 15) == head->generation);
    }
  }
  return count;
}

static void no_word_of_what_a_ring_held_is_taken_for_a_record(void **state) {
  (void)state;
  prof_pool *pool;
  uint64_t misleading = 0, looked_at = 0;
  start(PROF_POLICY_RING, 1 << 20);
  assert_int_equal(prof_pool_create(NULL, &pool), PROF_OK);
  const uint32_t tag = prof_memory_tag("tagged");
  for (uintptr_t i = 1; i < 400000; i++) {
    const void *const address = (const void *)(i * 4097); /* ends as any generation may */
    if (i % 7 == 0)
      prof_memory_alloc_for(pool, address, 1, 100, tag, i);
    else
      prof_memory_alloc(pool, address, 100, 100);
    if (i % 11 == 0) record(1);
    if (i % 13 == 0) prof_memory_reserve(pool, address, i);
    if (i % 17 == 0)
      WITH_BASE_PROFILER(PROF_HOST, "with a text", "x",
                         PROF_ARGS("key", "a value of some length", "number", i), {});
    prof_memory_free(pool, address, 100);
    if (i % 10007 == 0) misleading += misleading_words(&looked_at);
  }
  prof_pool_destroy(pool);
  /* round more often than there are generations */
  assert_true(health_now().lost_count[PROF_LOSS_OVERWRITTEN] > 20 * 30000);
  assert_true(looked_at > 10000);
  assert_int_equal(misleading, 0);
}

static uint32_t is_enough; /* atomic */

static void *record_until_enough(void *attempted_pointer) {
  uint64_t attempted = 0;
  for (; !__atomic_load_n(&is_enough, __ATOMIC_RELAXED); attempted++)
    WITH_BASE_PROFILER(PROF_HOST, "a", "b", PROF_NO_ARGS, {});
  *(uint64_t *)attempted_pointer = attempted;
  return NULL;
}

/* The helper reads without the gate when the last clear was. */
static void a_clear_may_come_while_the_helper_takes_the_oldest_chunk(void **state) {
  enum { CLEARS = 100, SOME = 5000 };
  (void)state;
  const prof_options options = {.size = sizeof options,
                                .level = 1,
                                .cap_bytes = 3 << 20,
                                .policy = PROF_POLICY_RING,
                                .helper_thread = 1};
  uint64_t attempted = 0, counted = 0;
  pthread_t thread;
  is_enough = 0;
  prof_stop();
  assert_int_equal(prof_start_with(&options), PROF_OK);
  assert_int_equal(pthread_create(&thread, NULL, record_until_enough, &attempted), 0);
  for (int i = 0; i < CLEARS; i++) {
    assert_int_equal(prof_clear(), PROF_OK);
    WAIT_WHILE(health_now().recorded_count < SOME); /* some chunks are full */
  }
  __atomic_store_n(&is_enough, 1, __ATOMIC_RELAXED);
  pthread_join(thread, NULL);
  assert_int_equal(prof_stop(), PROF_OK);
  const prof_health health = health_now();
  counted += health_lost(&health);
  assert_int_equal(health.recorded_count + counted, attempted);
}

static void clear_gives_the_room_back(void **state) {
  (void)state;
  start(PROF_POLICY_KEEP, 4 << 20);
  uint64_t after_first = 0;
  for (int round = 0; round < 20; round++) {
    record(100000); /* 1.6 MB of 4 */
    const prof_health health = health_now();
    assert_int_equal(health.recorded_count, 100000);
    assert_int_equal(health.is_full, 0);
    /* from now on it uses the same pieces again */
    if (round == 2) after_first = health.arena_bytes;
    /* records of the clock and of clears take a unit now and then: a slow machine has more of
       them */
    if (round > 2) assert_in_range(health.arena_bytes, 0, after_first + 4 * PROF_I_UNIT_BYTES);
    assert_int_equal(prof_clear(), PROF_OK);
    assert_int_equal(health_now().recorded_count, 0);
  }
  record(400000); /* full, and a clear opens it again */
  assert_int_equal(health_now().is_full, 1);
  assert_int_equal(prof_clear(), PROF_OK);
  assert_int_equal(health_now().is_full, 0);
  record(10);
  assert_int_equal(health_now().recorded_count, 10);
}

static void *record_ten(void *argument) {
  (void)argument;
  record(10);
  return NULL;
}

static void a_part_filled_chunk_is_taken_over(void **state) {
  (void)state;
  enum { THREADS = 200 };
  start(PROF_POLICY_KEEP, 4 << 20);
  for (int i = 0; i < THREADS; i++) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, record_ten, NULL), 0);
    pthread_join(thread, NULL);
  }
  assert_int_equal(health_now().recorded_count, 10 * THREADS);
  uint64_t sizes[64];
  /* 200 threads of 10 records and what says whose they are: 60 KB */
  assert_in_range(chunk_sizes(sizes, 64), 1, 8);
}

static void *record_100(void *unused) {
  record(100);
  return unused;
}

/* In the smallest arena, too: what the helper has ready is a part of it, and no thread is without a
   slot. */
static void a_helper_leaves_room_for_threads(void **state) {
  (void)state;
  enum { THREADS = 5 };
  for (uint32_t policy = PROF_POLICY_KEEP; policy <= PROF_POLICY_RING; policy++) {
    const prof_options options = {
        .size = sizeof options, .policy = policy, .cap_bytes = 1 << 20, .helper_thread = 1};
    uint64_t sizes[64];
    start(policy, 2 << 20); /* so that the arena is a new one */
    assert_int_equal(prof_stop(), PROF_OK);
    assert_int_equal(prof_start_with(&options), PROF_OK);
    WAIT_WHILE(policy != PROF_POLICY_RING && chunk_sizes(sizes, 64) < 2); /* the helper is at it */
    record(100);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
      assert_int_equal(pthread_create(&threads[i], NULL, record_100, NULL), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    const prof_health health = health_now();
    assert_int_equal(health.recorded_count + health.lost_count[PROF_LOSS_NO_CHUNK],
                     100 * (THREADS + 1));
    assert_true(health.recorded_count > 0);
    assert_int_equal(health.lost_count[PROF_LOSS_NO_THREAD], 0);
    assert_int_equal(prof_stop(), PROF_OK);
  }
}

/* Threads that exist at the same time, one more when the previous one has recorded. */
enum { AT_ONCE_MAX = 16, EACH = 100 };
typedef struct at_once {
  pthread_t threads[AT_ONCE_MAX];
  sem_t has_recorded, may_end;
} at_once;

static void *record_and_wait(void *of) {
  at_once *const all = of;
  record(EACH);
  sem_post(&all->has_recorded);
  sem_wait(&all->may_end);
  return NULL;
}

static uint64_t record_at_once(int count) {
  at_once all;
  sem_init(&all.has_recorded, 0, 0);
  sem_init(&all.may_end, 0, 0);
  for (int i = 0; i < count; i++) {
    assert_int_equal(pthread_create(&all.threads[i], NULL, record_and_wait, &all), 0);
    sem_wait(&all.has_recorded);
  }
  for (int i = 0; i < count; i++) sem_post(&all.may_end);
  for (int i = 0; i < count; i++) pthread_join(all.threads[i], NULL);
  sem_destroy(&all.has_recorded);
  sem_destroy(&all.may_end);
  return health_now().recorded_count;
}

/* As many threads as have room without a helper: each takes a slot of 64 KiB and a chunk, of 16 KiB
   but in a ring. */
static void a_helper_loses_nothing_in_a_small_arena(void **state) {
  (void)state;
  static const struct {
    uint32_t policy;
    int threads;
  } rows[] = {{PROF_POLICY_KEEP, 11}, {PROF_POLICY_RING, 6}};
  for (int i = 0; i < 4; i++) {
    const uint32_t has_helper = (uint32_t)i % 2;
    const prof_options options = {.size = sizeof options,
                                  .policy = rows[i / 2].policy,
                                  .cap_bytes = 1 << 20,
                                  .helper_thread = has_helper};
    uint64_t sizes[64];
    start(options.policy, 2 << 20); /* so that the arena is a new one */
    assert_int_equal(prof_stop(), PROF_OK);
    assert_int_equal(prof_start_with(&options), PROF_OK);
    WAIT_WHILE(has_helper && options.policy == PROF_POLICY_KEEP && chunk_sizes(sizes, 64) < 2);
    assert_int_equal(record_at_once(rows[i / 2].threads), EACH * rows[i / 2].threads);
    assert_int_equal(prof_stop(), PROF_OK);
  }
}

/* Nor is one thread refused a chunk because the helper is behind. */
static void a_helper_that_is_behind_loses_nothing_there(void **state) {
  (void)state;
  const prof_options options = {
      .size = sizeof options, .policy = PROF_POLICY_KEEP, .cap_bytes = 1 << 20, .helper_thread = 1};
  enum { BEFORE_FULL = 40000 }; /* 640 KB of 1 MiB, which has a slot and the meta data as well */
  uint64_t sizes[64];
  start(options.policy, 2 << 20);
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(prof_start_with(&options), PROF_OK);
  WAIT_WHILE(chunk_sizes(sizes, 64) < 2);
  record(BEFORE_FULL);
  assert_int_equal(health_now().recorded_count, BEFORE_FULL);
  assert_int_equal(prof_stop(), PROF_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(chunks_grow_by_four_up_to_a_64th_of_the_arena),
      cmocka_unit_test(the_largest_record_finds_a_chunk),
      cmocka_unit_test(the_cap_is_used_up_to_its_last_unit),
      cmocka_unit_test(who_was_late_does_not_make_a_cleared_capture_full),
      cmocka_unit_test(scopes_open_when_the_arena_fills_are_recorded),
      cmocka_unit_test(a_ring_keeps_the_newest_and_counts_the_rest),
      cmocka_unit_test(no_word_of_what_a_ring_held_is_taken_for_a_record),
      cmocka_unit_test(a_clear_may_come_while_the_helper_takes_the_oldest_chunk),
      cmocka_unit_test(clear_gives_the_room_back),
      cmocka_unit_test(a_part_filled_chunk_is_taken_over),
      cmocka_unit_test(a_helper_leaves_room_for_threads),
      cmocka_unit_test(a_helper_loses_nothing_in_a_small_arena),
      cmocka_unit_test(a_helper_that_is_behind_loses_nothing_there),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
