/* What a cleared capture holds: about as much as a fresh one, whatever came before the clear. */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <prof/profiler.h>
#include <prof/trace.h>

#include "fresh_arena.h"
#include "health.h"

enum { SMALL_CAP = 1100000, THREADS = 30 };

typedef struct recorder {
  pthread_t thread;
  uint64_t count;
  sem_t has_recorded, may_end;
} recorder;

static void *record_and_wait(void *data) {
  recorder *const r = data;
  record(r->count);
  sem_post(&r->has_recorded);
  sem_wait(&r->may_end);
  return NULL;
}

static void begin(recorder *r, uint64_t count) {
  r->count = count;
  assert_int_equal(sem_init(&r->has_recorded, 0, 0), 0);
  assert_int_equal(sem_init(&r->may_end, 0, 0), 0);
  assert_int_equal(pthread_create(&r->thread, NULL, record_and_wait, r), 0);
  sem_wait(&r->has_recorded);
}

static void end(recorder *r) {
  sem_post(&r->may_end);
  assert_int_equal(pthread_join(r->thread, NULL), 0);
}

/* One thread records after the other. All of them live until the last one has recorded. */
static void record_on_threads(uint32_t threads, uint64_t count) {
  recorder all[THREADS];
  for (uint32_t i = 0; i < threads; i++) begin(&all[i], count);
  for (uint32_t i = 0; i < threads; i++) end(&all[i]);
}

static void record_on_threads_in_turn(uint32_t threads, uint64_t count) {
  for (uint32_t i = 0; i < threads; i++) record_on_threads(1, count);
}

static void a_thread_without_room_does_not_keep_later_ones_from_a_free_place(void **state) {
  (void)state;
  for (uint32_t policy = PROF_POLICY_KEEP; policy <= PROF_POLICY_RING; policy++) {
    start(policy, SMALL_CAP);
    record_on_threads(THREADS, 100);
    const prof_health before = health_now();
    assert_in_range(before.lost_count[PROF_LOSS_NO_THREAD], 1, THREADS * 100);
    assert_int_equal(prof_clear(), PROF_OK);
    record_on_threads_in_turn(THREADS, 100);
    const prof_health after = health_now();
    assert_int_equal(after.lost_count[PROF_LOSS_NO_THREAD], before.lost_count[PROF_LOSS_NO_THREAD]);
    assert_int_equal(after.recorded_count, THREADS * 100);
  }
}

/* As much as two caps hold, on one thread. */
static void record_until_full(void) { record_on_threads(1, 2 * SMALL_CAP / 16); }
static void record_on_all_threads(void) { record_on_threads(THREADS, 100); }
static void record_in_turn(void) { record_on_threads_in_turn(THREADS, 100); }

static void record_and_clear(void (*first)(void), int times) {
  for (int i = 0; i < times; i++) {
    first();
    assert_int_equal(prof_clear(), PROF_OK);
  }
}

static void a_cleared_capture_holds_as_much_as_a_fresh_one(void **state) {
  (void)state;
  static const struct {
    void (*first)(void), (*then)(void);
  } cases[] = {{record_until_full, record_until_full},
               {record_until_full, record_on_all_threads},
               {record_until_full, record_in_turn},
               {record_in_turn, record_until_full},
               {record_in_turn, record_on_all_threads},
               {record_in_turn, record_in_turn},
               {record_on_all_threads, record_on_all_threads},
               {record_on_all_threads, record_in_turn}};
  for (uint32_t policy = PROF_POLICY_KEEP; policy <= PROF_POLICY_RING; policy++)
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
      for (int times = 1; times <= 4; times++) {
        start(policy, SMALL_CAP);
        cases[c].then();
        const uint64_t fresh = health_now().recorded_count;
        start(policy, SMALL_CAP);
        record_and_clear(cases[c].first, times);
        cases[c].then();
        const uint64_t after = health_now().recorded_count;
        if (after * 10 < fresh * 9)
          fail_msg("policy %u, case %zu, %d clears: %llu of %llu", policy, c, times,
                   (unsigned long long)after, (unsigned long long)fresh);
      }
}

/* Every begin counts once, also where a ring's chunk has become a thread's slot. */
static void nothing_is_uncounted_where_a_chunk_becomes_a_slot(void **state) {
  (void)state;
  start(PROF_POLICY_RING, SMALL_CAP);
  record_until_full();
  record_on_all_threads();
  const prof_health health = health_now();
  uint64_t sum = health.recorded_count;
  sum += health_lost(&health);
  assert_int_equal(sum, 2 * SMALL_CAP / 16 + THREADS * 100);
  prof_trace *trace = NULL;
  assert_int_equal(prof_get(&trace), PROF_OK);
  prof_trace_info info = {.size = sizeof info};
  assert_int_equal(prof_trace_info_get(trace, &info), PROF_OK);
  uint64_t sum_in_trace = info.event_count;
  for (int i = 0; i < PROF_LOSS_COUNT; i++) sum_in_trace += info.lost_count[i];
  assert_int_equal(sum_in_trace, sum);
  prof_trace_destroy(trace);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_thread_without_room_does_not_keep_later_ones_from_a_free_place),
      cmocka_unit_test(a_cleared_capture_holds_as_much_as_a_fresh_one),
      cmocka_unit_test(nothing_is_uncounted_where_a_chunk_becomes_a_slot),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
