/* A program that has made 32 pthread keys and more before prof is loaded: pthread_setspecific() of
   glibc would allocate at a thread's first event. A thread's end is seen all the same. */
#define _GNU_SOURCE
#include <prof/profiler.h>
#include <prof/trace.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/buffer/thread.h"
#include "fault/support/skip.h"
#include "unit/threads.h"

enum { KEYS = 40, THREADS = 300, AT_ONCE = 8 };

/* Before prof's own, which has no priority. */
static void __attribute__((constructor(101))) make_keys(void) {
  pthread_key_t key;
  for (int i = 0; i < KEYS; i++)
    if (pthread_key_create(&key, NULL) != 0) abort();
}

#if defined(__GLIBC__) && !SKIP_SANITIZED
static __thread bool is_armed;
static int allocations; /* of armed threads; atomic */

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
static void count_one(void) {
  if (is_armed) __atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
}
void *malloc(size_t bytes) {
  count_one();
  return __libc_malloc(bytes);
}
void *calloc(size_t count, size_t bytes) {
  count_one();
  return __libc_calloc(count, bytes);
}

static void *record_armed(void *unused) {
  is_armed = true;
  WITH_BASE_PROFILER(PROF_HOST, "first", "thread", PROF_NO_ARGS, {});
  is_armed = false;
  return unused;
}

static void a_threads_first_scope_allocates_nothing(void **state) {
  pthread_t thread;
  (void)state;
  assert_int_equal(prof_start(1), PROF_OK);
  assert_int_equal(pthread_create(&thread, NULL, record_armed, NULL), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_int_equal(allocations, 0);
  assert_int_equal(prof_stop(), PROF_OK);
}
#endif

static void *record(void *unused) {
  WITH_BASE_PROFILER(PROF_HOST, "some", "thread", PROF_NO_ARGS, {});
  return unused;
}

static void record_on_threads(void) {
  for (int i = 0; i < THREADS; i += AT_ONCE) {
    pthread_t threads[AT_ONCE];
    for (int k = 0; k < AT_ONCE; k++)
      assert_int_equal(pthread_create(&threads[k], NULL, record, NULL), 0);
    for (int k = 0; k < AT_ONCE; k++) assert_int_equal(pthread_join(threads[k], NULL), 0);
  }
}

static void a_thread_that_has_ended_leaves_its_place_to_the_next(void **state) {
  enum { MADE = (THREADS + AT_ONCE - 1) / AT_ONCE * AT_ONCE };
  (void)state;
  const prof_options options = {.size = sizeof options, .level = 1, .cap_bytes = 16 << 20};
  assert_int_equal(prof_start_with(&options), PROF_OK);
  const int before = states_of_threads();
  WITH_BASE_PROFILER(PROF_HOST, "main", "thread", PROF_NO_ARGS, {});
  record_on_threads();
  assert_true(states_of_threads() <= before + AT_ONCE + 1);
  const prof_health health = health_now();
  assert_int_equal(health.recorded_count, MADE + 1);
  assert_int_equal(health.threads_seen_count, MADE + 1);
  assert_int_equal(health.threads_alive_count, 1);
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  assert_int_equal(prof_get(&trace), PROF_OK);
  prof_trace_info_get(trace, &info);
  prof_trace_destroy(trace);
  assert_int_equal(info.scope_count, MADE + 1);
  assert_int_equal(info.bad_count, 0);
  assert_int_equal(prof_stop(), PROF_OK);
}

static void a_forked_child_begins_with_its_own_thread_alone(void **state) {
  (void)state;
  assert_int_equal(prof_start(1), PROF_OK);
  WITH_BASE_PROFILER(PROF_HOST, "main", "thread", PROF_NO_ARGS, {});
  const pid_t child = fork();
  if (child == 0) {
    prof_health health = {.size = sizeof health};
    WITH_BASE_PROFILER(PROF_HOST, "main", "thread", PROF_NO_ARGS, {});
    record_on_threads();
    if (prof_health_get(&health) != PROF_OK) _exit(2);
    _exit(health.threads_alive_count == 1 && states_of_threads() <= AT_ONCE + 1 ? 0 : 3);
  }
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_int_equal(prof_stop(), PROF_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
#if defined(__GLIBC__) && !SKIP_SANITIZED
    cmocka_unit_test(a_threads_first_scope_allocates_nothing),
#endif
    cmocka_unit_test(a_thread_that_has_ended_leaves_its_place_to_the_next),
    cmocka_unit_test(a_forked_child_begins_with_its_own_thread_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
