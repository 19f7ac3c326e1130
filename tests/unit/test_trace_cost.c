/* What recording took, and its bounds. */
#include "trace_checks.h"

enum { T0 = CAPTURE_START, CHUNK = PROF_I_UNIT_BYTES, SCOPE_NS = 20 };

static char *table_of(const prof_trace *trace) {
  char *text = NULL;
  assert_int_equal(prof_trace_table(trace, NULL, &text), PROF_OK);
  return text;
}

/* One event at 20 ns and 3000 ns beyond it, 1000 of them of an earlier thread; the spread is 2 us. */
static void what_recording_took_has_bounds(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 1);
  capture_plain(capture_chunk(&c, CHUNK, 1), T0, 100000, 1);
  prof_i_slot *const slot = capture_slot(&c, 1, "first");
  capture_header(&c)->scope_cost_ps = SCOPE_NS * 1000;
  slot->own_ns = 500;
  prof_trace *trace = open_capture(&c);
  prof_trace_info info = info_of(trace);
  assert_int_equal(info.own_ns, 520);
  assert_int_equal(info.own_least_ns, 520);
  assert_int_equal(info.own_most_ns, 520);
  assert_int_equal(info.is_own_apart, 0);
  char *text = table_of(trace);
  assert_non_null(strstr(text, "Recording took: 0.520us\n"));
  prof_free(text);
  prof_trace_destroy(trace);

  slot->beyond_ps = 2000000;
  slot->in_place_ns = 1000;
  slot->spread_us2 = 4;
  trace = open_capture(&c);
  info = info_of(trace);
  assert_int_equal(info.own_ns, 3520);
  assert_int_equal(info.own_least_ns, 520);
  assert_int_equal(info.own_most_ns, 3520 + 3000 + 2 * 2000);
  assert_int_equal(info.is_own_apart, 1);
  assert_int_equal(thread_of(trace, 0).own_ns, 520 + 2000);
  text = table_of(trace);
  assert_non_null(strstr(text, "Recording took: 0.520us to 10.520us\n"));
  prof_free(text);
  prof_trace_destroy(trace);

  slot->beyond_ps = -2000000; /* no more than in warm caches */
  slot->in_place_ns = slot->spread_us2 = 0;
  trace = open_capture(&c);
  info = info_of(trace);
  assert_int_equal(info.own_ns, 520);
  assert_int_equal(info.own_most_ns, 520);
  prof_trace_destroy(trace);
  capture_end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_recording_took_has_bounds),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
