/* A budget of events: how far threads that record as fast as they can get past it. */
#define _GNU_SOURCE
#include <pthread.h>
#include <time.h>

#include "../hang_guard.h"
#include "events.h"

enum { THREADS = 2, BUDGET = 10000, CHUNK_EVENTS = 4096, MUTED_ENOUGH = 100000, ROUND = 200000 };

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static prof_health health(void) {
  prof_health h = {.size = sizeof h};
  assert_status(prof_health(&h), PROF_OK);
  return h;
}

static bool is_over(void) { return health().lost_count[PROF_LOSS_MUTED] >= MUTED_ENOUGH; }

static void *record_operators(void *unused) {
  while (!is_over())
    for (int i = 0; i < ROUND; i++)
      WITH_BASE_PROFILER(PROF_HOST, "operator", "operator", PROF_NO_ARGS, {});
  return unused;
}

static void *record_runtime(void *unused) {
  while (!is_over())
    for (int i = 0; i < ROUND; i++)
      WITH_BASE_PROFILER_LEVEL(2, PROF_HOST, "dispatch", "vm", PROF_NO_ARGS, {});
  return unused;
}

/* A second's share is no excess, before each step down anew: the level, then the mute. Beyond it
   come two chunks of each thread at most. */
static void fast_threads_stay_near_the_budget(void **state) {
  enum { WINDOWS = 3, CHUNKS = 2 * CHUNK_EVENTS };
  (void)state;
  pthread_t one, two;
  const prof_options options = {.size = sizeof options, .level = 2, .budget_events = BUDGET};
  const uint64_t begun_ns = now_ns();
  assert_status(prof_start_with(&options), PROF_OK);
  assert_int_equal(pthread_create(&one, NULL, record_operators, NULL), 0);
  assert_int_equal(pthread_create(&two, NULL, record_runtime, NULL), 0);
  pthread_join(one, NULL);
  pthread_join(two, NULL);
  const uint64_t seconds = (now_ns() - begun_ns) / 1000000000;
  const uint64_t most = (WINDOWS + seconds) * BUDGET + WINDOWS * THREADS * CHUNKS;
  const uint64_t recorded = health().recorded_count;
  if (recorded > most)
    fail_msg("%llu recorded in %llu s, not %llu", (unsigned long long)recorded,
             (unsigned long long)seconds, (unsigned long long)most);
  prof_stop();
}

int main(void) {
  hang_guard();
  const struct CMUnitTest tests[] = {cmocka_unit_test(fast_threads_stay_near_the_budget)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
