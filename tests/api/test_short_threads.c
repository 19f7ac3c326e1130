/* What recording took threads that live for a few scopes only. */
#define _GNU_SOURCE
#include <pthread.h>

#include "../hang_guard.h"
#include "events.h"

enum { THREADS = 200, SCOPES = 10 };

static void *record_a_few(void *unused) {
  for (int i = 0; i < SCOPES; i++) WITH_BASE_PROFILER(PROF_HOST, "short", "op", PROF_NO_ARGS, {});
  return unused;
}

/* The trace's sum and the threads' are counted apart: the one where a chunk is taken, the others
   where their threads end. */
static void short_threads_have_their_part_of_the_time(void **state) {
  (void)state;
  const prof_options options = {.size = sizeof options, .level = 1, .cap_bytes = 16 << 20};
  assert_status(prof_start_with(&options), PROF_OK);
  for (int i = 0; i < THREADS; i++) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, record_a_few, NULL), 0);
    pthread_join(thread, NULL);
  }
  assert_status(prof_stop(), PROF_OK);
  prof_trace *trace = NULL;
  assert_status(prof_get(&trace), PROF_OK);
  prof_trace_info info = {.size = sizeof info};
  assert_status(prof_trace_info_get(trace, &info), PROF_OK);
  uint64_t sum = 0, with_scopes = 0;
  for (uint32_t i = 0; i < info.thread_count; i++) {
    prof_trace_thread thread = {.size = sizeof thread};
    assert_status(prof_trace_thread_get(trace, i, &thread), PROF_OK);
    sum += thread.own_ns;
    with_scopes += thread.event_count == SCOPES;
  }
  assert_int_equal(with_scopes, THREADS);
  if (sum < info.own_ns / 2)
    fail_msg("the threads have %llu ns of %llu", (unsigned long long)sum,
             (unsigned long long)info.own_ns);
  prof_trace_destroy(trace);
}

int main(void) {
  hang_guard();
  const struct CMUnitTest tests[] = {cmocka_unit_test(short_threads_have_their_part_of_the_time)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
