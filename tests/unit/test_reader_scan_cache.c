/* Traces of the process's own capture, one after another. The next trace reuses what a scan has
   found, and each trace says what one that scans all would say. */
#include <prof/profiler.h>
#include <pthread.h>

#include "../../src/reader/capture.h"
#include "trace_checks.h"

enum { MANY = 300000 };

static void start(uint32_t policy, uint64_t cap_bytes) {
  const prof_options options = {
      .size = sizeof options, .level = 1, .policy = policy, .cap_bytes = cap_bytes};
  assert_int_equal(prof_start_with(&options), PROF_OK);
}

/* One in so many has an argument, so how many a chunk holds depends on that. */
static void record_mixed(unsigned count, unsigned every) {
  for (unsigned i = 0; i < count; i++) {
    if (i % every) {
      PROF_SCOPE("plain");
    } else {
      WITH_BASE_PROFILER(PROF_HOST, "detailed", "op", PROF_ARGS("i", i), {});
    }
  }
}

static void record(unsigned count) { record_mixed(count, 8); }

static prof_trace *now(void) {
  prof_trace *trace = NULL;
  if (prof_get(&trace) != PROF_OK) fail_msg("%s", prof_last_error());
  return trace;
}

/* How many chunks the cache has for the trace, of those that are shared. */
static unsigned kept_chunks(const prof_trace *trace) {
  unsigned count = 0;
  for (uint32_t i = 0; i < trace->source.head_count; i++) {
    const prof_i_cached_head *const kept = &trace->source.heads[i];
    const prof_i_scan_key key = prof_i_scan_key_of(
        trace->header.start_ticks, trace->header.start_monotonic_ns, kept->offset, &kept->head);
    count += prof_i_scan_cache_has(&key);
  }
  return count;
}

/* As far as both go they say the same, event by event. Times may differ by a nanosecond: a later
   trace knows the clock's rate better. */
static void check_same(const prof_trace *one, const prof_trace *other) {
  prof_cursor *cursors[2];
  prof_event *const both = calloc(2, sizeof *both);
  assert_non_null(both);
  assert_int_equal(prof_cursor_create(one, &cursors[0]), PROF_OK);
  assert_int_equal(prof_cursor_create(other, &cursors[1]), PROF_OK);
  for (uint64_t i = 0; i < info_of(one).event_count; i++) {
    for (int k = 0; k < 2; k++) assert_int_equal(prof_cursor_next(cursors[k], &both[k]), 1);
    assert_int_equal(both[0].name_bytes, both[1].name_bytes);
    assert_int_equal(both[0].arg_count, both[1].arg_count);
    if (both[0].arg_count) assert_int_equal(both[0].args[0].value.u64, both[1].args[0].value.u64);
  }
  for (int k = 0; k < 2; k++) prof_cursor_destroy(cursors[k]);
  free(both);
}

static void later_traces_say_the_same(void **state) {
  (void)state;
  start(PROF_POLICY_KEEP, 0);
  record(MANY);
  prof_trace *const first = now();
  assert_true(kept_chunks(first) > 0);
  prof_trace *const second = now();
  assert_int_equal(info_of(first).event_count, MANY);
  assert_int_equal(info_of(second).event_count, MANY);
  assert_int_equal(info_of(second).scope_count, MANY);
  assert_int_equal(info_of(second).bad_count, 0);
  check_same(first, second);
  record(MANY);
  prof_trace *const third = now();
  assert_int_equal(info_of(third).event_count, 2 * MANY);
  assert_true(kept_chunks(third) > kept_chunks(second));
  check_same(second, third);
  assert_int_equal(prof_stop(), PROF_OK);
  prof_trace *const last = now();
  assert_int_equal(info_of(last).event_count, 2 * MANY);
  check_same(third, last);
  prof_trace_destroy(first);
  prof_trace_destroy(second);
  prof_trace_destroy(third);
  prof_trace_destroy(last);
}

static void a_clear_and_another_capture_have_nothing_of_before(void **state) {
  (void)state;
  start(PROF_POLICY_KEEP, 0);
  record(MANY);
  prof_trace_destroy(now());
  assert_int_equal(prof_clear(), PROF_OK);
  record(5);
  prof_trace *trace = now();
  assert_int_equal(info_of(trace).event_count, 5);
  prof_trace_destroy(trace);
  for (unsigned round = 0; round < 3; round++) {
    assert_int_equal(prof_stop(), PROF_OK);
    start(PROF_POLICY_KEEP, (uint64_t)(64 + round) << 20); /* another bound: another capture */
    record(MANY / 2 + round);
    prof_trace_destroy(now());
    trace = now();
    assert_int_equal(info_of(trace).event_count, MANY / 2 + round);
    prof_trace_destroy(trace);
  }
  assert_int_equal(prof_stop(), PROF_OK);
}

/* Room that was cleared and is taken again has other records. */
static void room_that_is_taken_again_is_scanned_again(void **state) {
  (void)state;
  start(PROF_POLICY_KEEP, (uint64_t)80 << 20);
  for (unsigned round = 0; round < 4; round++) {
    record_mixed(MANY + round, 8 - 2 * round);
    prof_trace *const trace = now(), *const again = now();
    assert_true(kept_chunks(again) > 0);
    assert_int_equal(info_of(trace).event_count, MANY + round);
    assert_int_equal(info_of(again).event_count, MANY + round);
    check_same(trace, again);
    prof_trace_destroy(trace);
    prof_trace_destroy(again);
    assert_int_equal(prof_clear(), PROF_OK);
    prof_trace *const empty = now();
    assert_int_equal(info_of(empty).event_count, 0);
    assert_int_equal(info_of(empty).lost_count[PROF_LOSS_CLEARED],
                     (round + 1) * MANY + round * (round + 1) / 2);
    prof_trace_destroy(empty);
  }
  assert_int_equal(prof_stop(), PROF_OK);
}

/* Traces that are made at once: one has the cache, the others do without. */
static void *look_often(void *user) {
  for (int i = 0; i < 20; i++) {
    prof_trace *const trace = now();
    if (info_of(trace).event_count != MANY) *(uint32_t *)user = 1;
    prof_trace_destroy(trace);
  }
  return NULL;
}

static void traces_that_are_made_at_once(void **state) {
  (void)state;
  enum { THREADS = 3 };
  pthread_t threads[THREADS];
  uint32_t wrong[THREADS] = {0};
  start(PROF_POLICY_KEEP, (uint64_t)96 << 20);
  record(MANY);
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, look_often, &wrong[i]), 0);
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  for (int i = 0; i < THREADS; i++) assert_int_equal(wrong[i], 0);
  assert_int_equal(prof_stop(), PROF_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(later_traces_say_the_same),
      cmocka_unit_test(a_clear_and_another_capture_have_nothing_of_before),
      cmocka_unit_test(room_that_is_taken_again_is_scanned_again),
      cmocka_unit_test(traces_that_are_made_at_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
