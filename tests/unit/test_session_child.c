/* A forked child that has no capture of its own yet: what it calls, and what it leaves alone. */
#define _GNU_SOURCE
#include <errno.h>
#include <prof/memory.h>
#include <prof/profiler.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/session/control.h"
#include "fault/support/skip.h"
#include "hang_guard.h"

enum { PARENT_SCOPES = 100 };

static void record(int count) {
  for (int i = 0; i < count; i++) WITH_BASE_PROFILER(PROF_HOST, "a", "b", PROF_NO_ARGS, {});
}

static uint64_t recorded(void) {
  prof_health health = {.size = sizeof health};
  return prof_health_get(&health) == PROF_OK ? health.recorded_count : UINT64_MAX;
}

static void wait_for_success(pid_t child) {
  int status = -1;
  assert_true(child > 0);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

static pid_t bare_fork(void) { return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); }
static pid_t (*const forks[])(void) = {fork, bare_fork};
enum { FORKS = sizeof forks / sizeof *forks };

/* A crash there must end the child, not jump to the end of the parent's test. */
static pid_t begin_child(pid_t (*fork_so)(void)) {
  const pid_t child = fork_so();
  if (child) return child;
  signal(SIGSEGV, SIG_DFL);
  hang_guard();
  return 0;
}

/* ---- calls ---- */

static prof_pool *pool;
static uint32_t level; /* the parent's; 0: it records memory alone */

static uint64_t used_before(void) {
  prof_memory_max max = {.size = sizeof max};
  return prof_memory_max_get(PROF_HOST, PROF_MEMORY_ANY, &max) == PROF_OK ? max.used_bytes : 0;
}

static int two(void *unused, uint64_t *used, uint64_t *allocated) {
  (void)unused;
  *used = *allocated = 2;
  return 0;
}

/* Each returns 0 where all is as it should be. */
static int ends_memory(void) {
  if (prof_memory_stop() != PROF_OK || prof_memory_is_on()) return 1;
  if (prof_memory_stop() != PROF_E_NOT_RUNNING) return 2;
  prof_memory_alloc(pool, "", 16, 0);
  record(1);
  if (recorded() != level) return 3; /* its scopes go on, memory does not */
  if (prof_memory_start() != PROF_OK) return 4;
  prof_memory_alloc(pool, "", 16, 0);
  return recorded() == level + 1 ? 0 : 5;
}

static int ends_all(void) {
  if (prof_stop() != PROF_E_NOT_RUNNING || prof_memory_is_on() || prof_level()) return 1;
  if (prof_memory_stop() != PROF_E_NOT_RUNNING) return 2;
  if (prof_memory_reset() != PROF_E_NOT_RUNNING) return 3;
  prof_memory_alloc(pool, "", 16, 0);
  if (recorded() != 0) return 4;
  if (prof_start(1) != PROF_OK || !prof_memory_is_on()) return 5;
  prof_memory_alloc(pool, "", 16, 0);
  record(1);
  return recorded() == 2 ? 0 : 6;
}

static int resets_peaks(void) {
  prof_memory_max max = {.size = sizeof max};
  if (prof_memory_reset() != PROF_OK) return 1;
  if (prof_memory_max_get(PROF_HOST, PROF_MEMORY_ANY, &max) != PROF_OK) return 2;
  return max.used_bytes == 16 && max.max_used_bytes == 16 ? 0 : 3;
}

static int makes_a_pool(void) {
  prof_pool *fresh = NULL;
  if (prof_pool_create(NULL, &fresh) != PROF_OK) return 1;
  prof_memory_alloc(fresh, "", 8, 0);
  if (used_before() != 16 + 8) return 2;
  prof_pool_destroy(fresh);
  return recorded() == 1 ? 0 : 3;
}

static int sets_a_query(void) {
  if (prof_memory_set_query(PROF_HOST, two, NULL) != PROF_OK) return 1;
  prof_memory_sample(PROF_HOST, "", 0);
  if (recorded() != 1) return 2;
  return prof_memory_set_query(PROF_HOST, NULL, NULL) == PROF_OK ? 0 : 3;
}

static int destroys_a_pool(void) {
  prof_pool_destroy(pool);
  record(1);
  return recorded() == level ? 0 : 1;
}

static int clears(void) {
  if (prof_clear() != PROF_OK) return 1;
  prof_memory_alloc(pool, "", 16, 0);
  return recorded() == 1 && used_before() == 32 ? 0 : 2;
}

static void a_child_without_a_capture_may_call_what_its_parent_may(void **state) {
  (void)state;
  int (*const calls[])(void) = {ends_memory,  ends_all,        resets_peaks, makes_a_pool,
                                sets_a_query, destroys_a_pool, clears};
  assert_int_equal(prof_pool_create(NULL, &pool), PROF_OK);
  for (level = 0; level < 2; level++) {
    for (size_t i = 0; i < FORKS * sizeof calls / sizeof *calls; i++) {
      if (level) assert_int_equal(prof_start(1), PROF_OK);
      assert_int_equal(prof_memory_start(), PROF_OK);
      prof_memory_alloc(pool, "", 16, 0);
      const pid_t child = begin_child(forks[i % FORKS]);
      if (child == 0) _exit(calls[i / FORKS]());
      wait_for_success(child);
      prof_memory_free(pool, "", 16);
      assert_true(prof_memory_is_on());
      assert_int_equal(prof_memory_stop(), PROF_OK);
      if (level) assert_int_equal(prof_stop(), PROF_OK);
    }
  }
  prof_pool_destroy(pool);
}

/* ---- limits ---- */

/* There the child gets no page for its level over its parent's. */
static void fork_under_limit(int limit, pid_t (*fork_so)(void)) {
  struct rlimit was;
  assert_int_equal(getrlimit(limit, &was), 0);
  const struct rlimit low = {4096, was.rlim_max}; /* 0 is let through, for valgrind */
  assert_int_equal(setrlimit(limit, &low), 0);
  const pid_t child = begin_child(fork_so);
  if (child == 0) {
    record(1);
    const pid_t grandchild = begin_child(fork_so);
    if (grandchild == 0) _exit(prof_stop() == PROF_E_NOT_RUNNING ? 0 : 1);
    int status = -1;
    if (grandchild > 0 && (waitpid(grandchild, &status, 0) != grandchild || status)) _exit(2);
    if (prof_stop() != PROF_E_NOT_RUNNING || prof_level() != 0) _exit(3);
    if (setrlimit(limit, &was) != 0 || prof_start(2) != PROF_OK || prof_level() != 2) _exit(4);
    record(1);
    _exit(recorded() == 1 ? 0 : 5);
  }
  assert_int_equal(setrlimit(limit, &was), 0);
  wait_for_success(child);
}

static void a_child_under_a_limit_leaves_its_parents_level_alone(void **state) {
  (void)state;
  const int limits[] = {RLIMIT_DATA, RLIMIT_AS};
  if (SKIP_SANITIZED) {
    print_message("skip: a sanitizer cannot do without memory\n");
    skip();
  }
  for (int i = 0; i < 2 * FORKS; i++) {
    for (uint32_t policy = PROF_POLICY_KEEP; policy <= PROF_POLICY_RING; policy++) {
      const prof_options options = {
          .size = sizeof options, .level = 1, .cap_bytes = 32 << 20, .policy = policy};
      assert_int_equal(prof_start_with(&options), PROF_OK);
      prof_clear();
      record(PARENT_SCOPES);
      fork_under_limit(limits[i / FORKS], forks[i % FORKS]);
      assert_int_equal(prof_level(), 1);
      record(PARENT_SCOPES);
      assert_int_equal(recorded(), 2 * PARENT_SCOPES);
      assert_int_equal(prof_stop(), PROF_OK);
    }
  }
}

/* ---- errno ---- */

static uint32_t has_lock, is_let_go; /* atomic */

static void *hold_lock(void *unused) {
  prof_i_control_lock();
  __atomic_store_n(&has_lock, 1, __ATOMIC_SEQ_CST);
  WAIT_WHILE(!__atomic_load_n(&is_let_go, __ATOMIC_SEQ_CST));
  prof_i_control_unlock();
  return unused;
}

static void a_fork_that_waits_for_another_threads_call_keeps_errno(void **state) {
  enum { MINE = 77 };
  (void)state;
  pthread_t thread;
  assert_int_equal(prof_start(1), PROF_OK);
  assert_int_equal(pthread_create(&thread, NULL, hold_lock, NULL), 0);
  WAIT_WHILE(!__atomic_load_n(&has_lock, __ATOMIC_SEQ_CST));
  errno = MINE;
  const pid_t child = fork();
  if (child == 0) _exit(errno == MINE ? 0 : 1);
  const int after = errno;
  __atomic_store_n(&is_let_go, 1, __ATOMIC_SEQ_CST);
  pthread_join(thread, NULL);
  assert_int_equal(after, MINE);
  wait_for_success(child);
  assert_int_equal(prof_stop(), PROF_OK);
}

int main(void) {
  hang_guard();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_child_without_a_capture_may_call_what_its_parent_may),
      cmocka_unit_test(a_child_under_a_limit_leaves_its_parents_level_alone),
      cmocka_unit_test(a_fork_that_waits_for_another_threads_call_keeps_errno),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
