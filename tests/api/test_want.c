/* Parts of a program that record for a while and do not know of each other: prof_level_want(). */
#define _GNU_SOURCE
#include <prof/memory.h>
#include <prof/profiler.h>
#include <prof/trace.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "events.h"
#include "hang_guard.h"

enum { FORKS = 300, TURNS = 3000 };

static const char a, b;

static void scope(void) { WITH_BASE_PROFILER(PROF_HOST, "scope", "test", PROF_NO_ARGS, {}); }

static uint64_t scopes(void) {
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  assert_int_equal(prof_get(&trace), PROF_OK);
  prof_trace_info_get(trace, &info);
  prof_trace_destroy(trace);
  return info.scope_count;
}

static int fresh(void **state) {
  (void)state;
  prof_level_want(&a, 0);
  prof_level_want(&b, 0);
  prof_stop();
  prof_clear();
  return 0;
}

static void the_highest_wish_counts_and_the_last_one_ends_it(void **state) {
  (void)state;
  assert_int_equal(prof_level_want(&a, 1), PROF_OK);
  assert_int_equal(prof_level(), 1);
  assert_int_equal(prof_level_want(&b, 2), PROF_OK);
  assert_int_equal(prof_level(), 2);
  assert_int_equal(prof_level_want(&b, 2), PROF_OK); /* once is enough */
  assert_int_equal(prof_level_want(&b, 0), PROF_OK);
  assert_int_equal(prof_level(), 1);
  assert_int_equal(prof_level_want(&a, 2), PROF_OK);
  assert_int_equal(prof_level_want(&a, 1), PROF_OK);
  assert_int_equal(prof_level(), 1);
  assert_int_equal(prof_level_want(&a, 0), PROF_OK);
  assert_int_equal(prof_level(), 0);
  assert_int_equal(prof_level_want(&a, 0), PROF_OK);
  assert_int_equal(prof_stop(), PROF_E_NOT_RUNNING);
}

static void what_was_started_by_name_goes_on(void **state) {
  (void)state;
  for (int before = 0; before < 2; before++) {
    if (before) assert_int_equal(prof_start(1), PROF_OK);
    assert_int_equal(prof_level_want(&a, before ? 2 : 1), PROF_OK);
    if (!before) assert_int_equal(prof_start(1), PROF_OK);
    assert_int_equal(prof_level_want(&a, 0), PROF_OK);
    assert_int_equal(prof_level(), 1);
    assert_int_equal(prof_stop(), PROF_OK);
  }
  assert_int_equal(prof_level_want(&a, 1), PROF_OK);
  assert_int_equal(prof_stop(), PROF_E_NOT_RUNNING); /* only owners that record for themselves do */
  assert_int_equal(prof_level(), 1);
  assert_int_equal(prof_start(1), PROF_OK);
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(prof_level(), 1);
  assert_int_equal(prof_start(2), PROF_OK);
  assert_int_equal(prof_level(), 2);
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(prof_level(), 1);
  assert_int_equal(prof_level_want(&b, 2), PROF_OK);
  assert_int_equal(prof_start(1), PROF_OK);
  assert_int_equal(prof_level(), 2); /* b's */
  assert_int_equal(prof_level_want(&b, 0), PROF_OK);
  assert_int_equal(prof_level(), 1);
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(prof_level(), 1); /* a's still stands */
  assert_int_equal(prof_start(2), PROF_OK);
  assert_int_equal(prof_level_want(&a, 0), PROF_OK);
  assert_int_equal(prof_level(), 2);
}

static void memory_alone_goes_on(void **state) {
  (void)state;
  assert_int_equal(prof_memory_start(), PROF_OK);
  assert_int_equal(prof_level_want(&a, 1), PROF_OK);
  assert_int_equal(prof_level_want(&a, 0), PROF_OK);
  assert_int_equal(prof_level(), 0);
  assert_true(prof_memory_is_on());
  assert_int_equal(prof_memory_stop(), PROF_OK);
  assert_int_equal(prof_level_want(&a, 1), PROF_OK);
  assert_true(prof_memory_is_on()); /* with the scopes, as by prof_start() */
  assert_int_equal(prof_memory_start(), PROF_OK);
  assert_int_equal(prof_level_want(&a, 0), PROF_OK);
  assert_true(prof_memory_is_on());
  assert_int_equal(prof_memory_stop(), PROF_OK);
  assert_int_equal(prof_stop(), PROF_E_NOT_RUNNING);
}

static void each_recording_has_a_fresh_capture_unless_somebody_asked_for_one(void **state) {
  (void)state;
  prof_trace *held = NULL;
  prof_trace_info info = {.size = sizeof info};
  for (int i = 0; i < 3; i++) {
    assert_int_equal(prof_level_want(&a, 1), PROF_OK);
    scope();
    assert_int_equal(prof_level_want(&b, 1), PROF_OK); /* beside it: the same */
    scope();
    assert_int_equal(prof_level_want(&a, 0), PROF_OK);
    scope();
    if (i == 0) assert_int_equal(prof_get(&held), PROF_OK);
    assert_int_equal(prof_level_want(&b, 0), PROF_OK);
    assert_int_equal(scopes(), 3);
  }
  assert_int_equal(prof_trace_info_get(held, &info), PROF_OK);
  assert_int_equal(info.scope_count, 3); /* who holds it has it */
  prof_trace_destroy(held);
  assert_int_equal(prof_start(1), PROF_OK);
  scope();
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(prof_level_want(&a, 1), PROF_OK);
  scope();
  assert_int_equal(prof_level_want(&a, 0), PROF_OK);
  assert_int_equal(scopes(), 2);
  assert_int_equal(prof_clear(), PROF_OK);
  assert_int_equal(prof_level_want(&a, 1), PROF_OK);
  scope();
  assert_int_equal(scopes(), 1);
}

/* memory_asked: prof_memory_start() says so; the level asked for goes on in the child, and a's wish
   does not. */
static bool child_is_good(int level_asked, bool memory_asked) {
  const bool has_memory = level_asked || memory_asked;
  bool is_good = prof_level() == level_asked;
  scope();
  is_good &= (prof_memory_is_on() != 0) == has_memory;
  is_good &= prof_level_want(&b, 2) == PROF_OK && prof_level() == 2 && prof_memory_is_on();
  scope();
  is_good &= scopes() == (level_asked ? 2 : 1);
  is_good &= prof_level_want(&b, 0) == PROF_OK && prof_level() == level_asked &&
             (prof_memory_is_on() != 0) == has_memory;
  is_good &= prof_level_want(&a, 0) == PROF_OK && prof_level() == level_asked;
  return is_good && prof_stop() == (has_memory ? PROF_OK : PROF_E_NOT_RUNNING);
}

static void a_child_begins_with_nobodys_wish(void **state) {
  (void)state;
  for (int i = 0; i < 6; i++) {
    const int level_asked = i % 2;
    const bool memory_asked = i / 2 == 1, is_above = i / 2 == 2;
    if (level_asked) assert_int_equal(prof_start(1), PROF_OK);
    if (memory_asked) assert_int_equal(prof_memory_start(), PROF_OK);
    assert_int_equal(prof_level_want(&a, is_above ? 2 : 1), PROF_OK);
    scope();
    const pid_t child = fork();
    if (child == 0) _exit(child_is_good(level_asked, memory_asked) ? 0 : 1);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(prof_level_want(&a, 0), PROF_OK);
    assert_int_equal(prof_level(), level_asked);
    prof_stop();
  }
}

static void a_stop_of_memory_takes_back_its_start(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    assert_int_equal(prof_level_want(&a, 1), PROF_OK);
    assert_int_equal(prof_memory_start(), PROF_OK);
    assert_int_equal(prof_memory_stop(), PROF_OK);
    assert_int_equal(prof_level(), 1);
    assert_true(prof_memory_is_on()); /* a's goes on */
    assert_int_equal(prof_level_want(&a, 0), PROF_OK);
    assert_false(prof_memory_is_on());
    assert_int_equal(prof_stop(), PROF_E_NOT_RUNNING);
    assert_int_equal(prof_level_want(&b, 1), PROF_OK);
    assert_true(prof_memory_is_on());
    assert_int_equal(prof_level_want(&b, 0), PROF_OK);
    assert_false(prof_memory_is_on());
  }
  assert_int_equal(prof_start(1), PROF_OK); /* not what prof_start() asked for */
  assert_int_equal(prof_memory_start(), PROF_OK);
  assert_int_equal(prof_memory_stop(), PROF_OK);
  assert_int_equal(prof_level_want(&a, 2), PROF_OK);
  assert_int_equal(prof_level_want(&a, 0), PROF_OK);
  assert_int_equal(prof_level(), 1);
}

static void who_pauses_goes_on_in_the_same_capture(void **state) {
  (void)state;
  assert_int_equal(prof_level_want(&a, 1), PROF_OK);
  scope();
  assert_int_equal(prof_level_want(&b, 2), PROF_OK);
  assert_int_equal(prof_level_want(&b, PROF_LEVEL_PAUSED), PROF_OK);
  assert_int_equal(prof_level(), 1); /* a's goes on */
  assert_int_equal(prof_level_want(&a, PROF_LEVEL_PAUSED), PROF_OK);
  assert_int_equal(prof_level(), 0);
  scope();
  assert_int_equal(prof_level_want(&a, 1), PROF_OK);
  scope();
  WITH_BASE_PROFILER(PROF_HOST, "open all the while", "test", PROF_NO_ARGS, {
    assert_int_equal(prof_level_want(&a, PROF_LEVEL_PAUSED), PROF_OK);
    scope();
    assert_int_equal(prof_level_want(&a, 1), PROF_OK);
  });
  assert_int_equal(scopes(), 3);
  assert_int_equal(prof_level_want(&a, 0), PROF_OK);
  assert_int_equal(prof_level_want(&b, 2), PROF_OK); /* it stood there all the while */
  assert_int_equal(scopes(), 3);
  assert_int_equal(prof_level_want(&b, 0), PROF_OK);
  assert_int_equal(prof_level_want(&b, PROF_LEVEL_PAUSED), PROF_OK); /* also before anything */
  assert_int_equal(prof_level(), 0);
  assert_int_equal(prof_level_want(&b, 1), PROF_OK);
  assert_int_equal(prof_level_want(&b, 0), PROF_OK);
}

static void a_start_by_name_forgets_what_wishes_left(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++) {
    assert_int_equal(prof_level_want(&a, 1), PROF_OK);
    scope();
    assert_int_equal(prof_level_want(&a, 0), PROF_OK);
    const prof_options options = {.size = sizeof options, .level = 1};
    assert_int_equal(i == 0   ? prof_start(1)
                     : i == 1 ? prof_start_with(&options)
                              : prof_memory_start(),
                     PROF_OK);
    assert_int_equal(scopes(), 0);
    scope();
    assert_int_equal(prof_stop(), PROF_OK);
    assert_int_equal(prof_start(1), PROF_OK); /* its own it does not forget */
    assert_int_equal(scopes(), i < 2);
    assert_int_equal(prof_stop(), PROF_OK);
    assert_int_equal(prof_clear(), PROF_OK);
  }
  assert_int_equal(prof_level_want(&a, 1), PROF_OK);
  scope();
  assert_int_equal(prof_level_want(&a, PROF_LEVEL_PAUSED), PROF_OK);
  assert_int_equal(prof_start(1), PROF_OK); /* a is there yet */
  assert_int_equal(scopes(), 1);
}

static void whoever_lowered_the_level_the_last_one_ends_the_recording(void **state) {
  (void)state;
  char path[] = "/tmp/prof-want-XXXXXX.prof";
  const int made = mkstemps(path, 5);
  assert_true(made >= 0);
  close(made);
  unlink(path);
  const prof_options options = {.size = sizeof options, .level = 1, .path = path};
  prof_health health = {.size = sizeof health};
  assert_int_equal(prof_start_with(&options), PROF_OK);
  assert_int_equal(prof_health_get(&health), PROF_OK);
  assert_int_equal(prof_stop(), PROF_OK);
  for (int level = 0; level < 2; level++) {
    assert_int_equal(prof_level_want(&a, 2), PROF_OK);
    assert_int_equal(prof_health_get(&health), PROF_OK);
    /* as prof level does */
    assert_int_equal(prof_trace_set_level(health.capture_path, level, NULL), PROF_OK);
    assert_int_equal(prof_level(), level);
    const pid_t child = fork();
    if (child == 0)
      _exit(prof_level() == 0 && !prof_memory_is_on() && prof_stop() == PROF_E_NOT_RUNNING ? 0 : 1);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(prof_level_want(&a, 0), PROF_OK);
    assert_int_equal(prof_stop(), PROF_E_NOT_RUNNING);
    assert_false(prof_memory_is_on());
  }
  unlink(health.capture_path);
  const prof_options in_memory = {.size = sizeof in_memory, .level = 1};
  assert_int_equal(prof_start_with(&in_memory), PROF_OK); /* for the tests to come */
}

static struct {
  uint32_t ends; /* relaxed */
  uint64_t missed;
  int status, level, memory; /* of the first that was missed */
} other;

static void *want_and_leave(void *unused) {
  (void)unused;
  while (!__atomic_load_n(&other.ends, __ATOMIC_RELAXED)) {
    const int status = prof_level_want(&b, 1), level = prof_level(), memory = prof_memory_is_on();
    if ((status != PROF_OK || level != 1 || !memory) && other.missed++ == 0) {
      other.status = status;
      other.level = level;
      other.memory = memory;
    }
    prof_level_want(&b, 0);
  }
  return NULL;
}

static void forks_beside_a_thread_that_wants_and_leaves(void **state) {
  (void)state;
  pthread_t thread;
  other.ends = 0;
  assert_int_equal(pthread_create(&thread, NULL, want_and_leave, NULL), 0);
  for (int i = 0; i < FORKS; i++) {
    const pid_t child = fork();
    if (child == 0) {
      hang_guard();
      scope();
      _exit(prof_level() == 0 && !prof_memory_is_on() && prof_stop() == PROF_E_NOT_RUNNING ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
  }
  __atomic_store_n(&other.ends, 1, __ATOMIC_RELAXED);
  pthread_join(thread, NULL);
}

static void memory_alone_ends_beside_a_thread_that_wants_and_leaves(void **state) {
  (void)state;
  pthread_t thread;
  other.ends = 0;
  other.missed = 0;
  assert_int_equal(pthread_create(&thread, NULL, want_and_leave, NULL), 0);
  for (int i = 0; i < TURNS; i++) {
    prof_memory_start();
    prof_memory_stop();
  }
  __atomic_store_n(&other.ends, 1, __ATOMIC_RELAXED);
  pthread_join(thread, NULL);
  if (other.missed)
    fail_msg("missed %lu times; first: status %d, level %d, memory %d", (unsigned long)other.missed,
             other.status, other.level, other.memory);
  assert_int_equal(prof_stop(), PROF_E_NOT_RUNNING);
}

static void what_is_wrong_changes_nothing(void **state) {
  enum { MOST = 1024 };
  static const char many[MOST];
  (void)state;
  assert_int_equal(prof_level_want(NULL, 1), PROF_E_INVALID);
  assert_int_equal(prof_level_want(&a, 3), PROF_E_LEVEL);
  assert_int_equal(prof_level_want(&a, -2), PROF_E_LEVEL);
  assert_int_equal(prof_level(), 0);
  for (int i = 0; i < MOST; i++) assert_int_equal(prof_level_want(&many[i], 1), PROF_OK);
  assert_int_equal(prof_level_want(&a, 2), PROF_E_TOO_LARGE);
  assert_int_equal(prof_level(), 1);
  assert_int_equal(prof_level_want(&many[7], 0), PROF_OK);
  assert_int_equal(prof_level_want(&a, 2), PROF_OK);
  assert_int_equal(prof_level_want(&a, 0), PROF_OK);
  for (int i = 0; i < MOST; i++) assert_int_equal(prof_level_want(&many[i], 0), PROF_OK);
  assert_int_equal(prof_level(), 0);
}

int main(void) {
#define ENTRY(name) cmocka_unit_test_setup_teardown(name, fresh, fresh)
  const struct CMUnitTest tests[] = {
      ENTRY(the_highest_wish_counts_and_the_last_one_ends_it),
      ENTRY(what_was_started_by_name_goes_on),
      ENTRY(memory_alone_goes_on),
      ENTRY(each_recording_has_a_fresh_capture_unless_somebody_asked_for_one),
      ENTRY(a_child_begins_with_nobodys_wish),
      ENTRY(a_stop_of_memory_takes_back_its_start),
      ENTRY(who_pauses_goes_on_in_the_same_capture),
      ENTRY(a_start_by_name_forgets_what_wishes_left),
      ENTRY(whoever_lowered_the_level_the_last_one_ends_the_recording),
      ENTRY(forks_beside_a_thread_that_wants_and_leaves),
      ENTRY(memory_alone_ends_beside_a_thread_that_wants_and_leaves),
      ENTRY(what_is_wrong_changes_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
