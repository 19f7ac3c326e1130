/* Those who record for a while and do not know of each other: prof_level_want(). */
#include <prof/memory.h>
#include <prof/profiler.h>
#include <prof/trace.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "events.h"

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
  assert_int_equal(prof_stop(), PROF_OK); /* of all */
  assert_int_equal(prof_level_want(&b, 1), PROF_OK);
  assert_int_equal(prof_level_want(&b, 0), PROF_OK);
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
  assert_int_equal(scopes(), 5);
  assert_int_equal(prof_clear(), PROF_OK);
  assert_int_equal(prof_level_want(&a, 1), PROF_OK);
  scope();
  assert_int_equal(scopes(), 1);
}

static void a_child_begins_with_nobodys_wish(void **state) {
  (void)state;
  assert_int_equal(prof_level_want(&a, 1), PROF_OK);
  const pid_t child = fork();
  if (child == 0) {
    bool is_good = prof_level() == 1;
    scope();
    is_good &= prof_level_want(&b, 2) == PROF_OK && prof_level() == 2 && prof_level_want(&b, 0) == PROF_OK && prof_level() == 1;
    is_good &= prof_level_want(&a, 0) == PROF_OK && prof_level() == 1 && prof_stop() == PROF_OK;
    _exit(is_good ? 0 : 1);
  }
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_int_equal(prof_level_want(&a, 0), PROF_OK);
  assert_int_equal(prof_level(), 0);
}

static void what_is_wrong_changes_nothing(void **state) {
  enum { MOST = 1024 };
  static const char many[MOST];
  (void)state;
  assert_int_equal(prof_level_want(NULL, 1), PROF_E_INVALID);
  assert_int_equal(prof_level_want(&a, 3), PROF_E_LEVEL);
  assert_int_equal(prof_level_want(&a, -1), PROF_E_LEVEL);
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
      ENTRY(what_is_wrong_changes_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
