/* What is counted while no thread, or no capture, has a place for it. */
#define _GNU_SOURCE
#include <prof/memory.h>
#include <prof/profiler.h>
#include <prof/trace.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "export/exporter.h"

/* Recorded and lost as that, and nothing else. */
static bool has(uint64_t recorded, int loss, uint64_t lost) {
  prof_health health = {.size = sizeof health};
  prof_health_get(&health);
  bool is_right = health.recorded_count == recorded;
  for (int i = 0; i < PROF_LOSS_COUNT; i++)
    is_right &= health.lost_count[i] == (i == loss ? lost : 0);
  return is_right;
}

static void losses_that_wait_for_a_capture_are_counted_in_one_process(void **state) {
  (void)state;
  assert_int_equal(prof_start(1), PROF_OK);
  const uint64_t open = prof_scope_begin(1, "open across the fork", "x", NULL);
  const pid_t child = fork();
  if (child == 0) {
    prof_scope_end(open); /* no capture of the child's own yet */
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      WITH_BASE_PROFILER(PROF_HOST, "a", "b", PROF_NO_ARGS, {});
      _exit(has(1, -1, 0) ? 0 : 2);
    }
    int status = 0;
    if (waitpid(grandchild, &status, 0) != grandchild || status) _exit(1);
    WITH_BASE_PROFILER(PROF_HOST, "a", "b", PROF_NO_ARGS, {});
    _exit(has(1, PROF_LOSS_FORKED, 1) ? 0 : 3);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  prof_scope_end(open);
  assert_true(has(1, -1, 0));
  prof_stop();
}

static int query(void *unused, uint64_t *used, uint64_t *allocated) {
  (void)unused;
  *used = 12345;
  *allocated = 99999;
  return 0;
}

static void a_pool_without_a_thread_makes_valid_json(void **state) {
  (void)state;
  prof_pool *pool;
  char *text;
  size_t bytes, at = 0;
  /* another capture: without a thread */
  const prof_options options = {.size = sizeof options, .level = 1, .cap_bytes = 16 << 20};
  const prof_pool_options of_pool = {.size = sizeof of_pool, .name = "tensors", .query = query};
  assert_int_equal(prof_pool_create(&of_pool, &pool), PROF_OK);
  assert_int_equal(prof_start_with(&options), PROF_OK);
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(prof_get_json(&text, &bytes), PROF_OK);
  assert_non_null(strstr(text, "12345"));
  if (!prof_i_json_is_value(text, &at)) fail_msg("no JSON at %zu: %.80s", at, text + at);
  prof_free(text);
  prof_pool_destroy(pool);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(losses_that_wait_for_a_capture_are_counted_in_one_process),
      cmocka_unit_test(a_pool_without_a_thread_makes_valid_json),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
