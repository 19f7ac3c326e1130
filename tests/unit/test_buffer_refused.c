/* A thread for which the capture has no place. Each of its scopes is counted as lost, and only few
   ask for a place again. When another thread ends, its next scope is recorded. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <prof/profiler.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "health.h"

enum { HOLDERS = 64, SCOPES = 6410, RETRY_EVERY = 64, CAP_BYTES = 1 << 20 };

/* Each attempt to get a place asks for the process, once or twice. Any thread; relaxed. */
static uint64_t attempt_count;
static uint64_t attempts_so_far(void) { return __atomic_load_n(&attempt_count, __ATOMIC_RELAXED); }
pid_t getpid(void) {
  __atomic_add_fetch(&attempt_count, 1, __ATOMIC_RELAXED);
  return (pid_t)syscall(SYS_getpid);
}

static pthread_barrier_t first_there, all_there, first_ends, others_end;

static void record(void) { WITH_BASE_PROFILER(PROF_HOST, "some", "thread", PROF_NO_ARGS, {}); }

/* The first thread has a place. Those after it have one as long as there are any. */
static void *hold_a_place(void *number) {
  record();
  if ((intptr_t)number == 0) pthread_barrier_wait(&first_there);
  pthread_barrier_wait(&all_there);
  pthread_barrier_wait((intptr_t)number == 0 ? &first_ends : &others_end);
  return NULL;
}

static uint64_t lost_as_no_thread(void) { return health_now().lost_count[PROF_LOSS_NO_THREAD]; }

static void a_refused_thread_seldom_asks_again(void **state) {
  (void)state;
  const prof_options options = {.size = sizeof options, .level = 1, .cap_bytes = CAP_BYTES};
  pthread_t threads[HOLDERS];
  assert_int_equal(pthread_barrier_init(&first_there, NULL, 2), 0);
  assert_int_equal(pthread_barrier_init(&all_there, NULL, HOLDERS + 1), 0);
  assert_int_equal(pthread_barrier_init(&first_ends, NULL, 2), 0);
  assert_int_equal(pthread_barrier_init(&others_end, NULL, HOLDERS), 0);
  assert_int_equal(prof_start_with(&options), PROF_OK);
  for (intptr_t i = 0; i < HOLDERS; i++) {
    assert_int_equal(pthread_create(&threads[i], NULL, hold_a_place, (void *)i), 0);
    if (i == 0) pthread_barrier_wait(&first_there);
  }
  pthread_barrier_wait(&all_there);
  const uint64_t before = lost_as_no_thread(), asked = attempts_so_far();
  for (int i = 0; i < SCOPES; i++) record();
  assert_in_range(attempts_so_far() - asked, 1, 2 * SCOPES / RETRY_EVERY);
  assert_int_equal(lost_as_no_thread() - before, SCOPES);
  pthread_barrier_wait(&first_ends);
  pthread_join(threads[0], NULL);
  record();
  assert_int_equal(lost_as_no_thread() - before, SCOPES);
  pthread_barrier_wait(&others_end);
  for (int i = 1; i < HOLDERS; i++) pthread_join(threads[i], NULL);
  assert_int_equal(prof_stop(), PROF_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_refused_thread_seldom_asks_again)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
