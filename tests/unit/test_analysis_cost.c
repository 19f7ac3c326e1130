/* What recording took: its bounds, and rows without the cost of the scopes inside of them. */
#include "trace_checks.h"

enum { T0 = CAPTURE_START, CHUNK = PROF_I_UNIT_BYTES, SCOPE_NS = 20 };

static prof_row row_named(const prof_rows *rows, const char *name, prof_row_more *more_out) {
  *more_out = (prof_row_more){.size = sizeof *more_out};
  for (uint64_t i = 0; i < rows->row_count; i++) {
    if (strcmp(rows->rows[i].name, name) != 0) continue;
    assert_int_equal(prof_rows_more(rows, i, more_out), PROF_OK);
    return rows->rows[i];
  }
  fail_msg("no row is named %s", name);
  return (prof_row){0};
}

static prof_rows *aggregate(const prof_trace *const *traces, size_t count,
                            const prof_aggregate_options *options) {
  prof_rows *rows = NULL;
  if (prof_traces_aggregate(traces, count, options, &rows) != PROF_OK)
    fail_msg("%s", prof_last_error());
  return rows;
}

static char *table_of(const prof_trace *trace) {
  char *text = NULL;
  assert_int_equal(prof_trace_table(trace, NULL, &text), PROF_OK);
  return text;
}

static void check_net(const prof_rows *rows, const char *name, uint64_t children, uint64_t inner,
                      uint64_t self_net, uint64_t total_net) {
  prof_row_more more;
  row_named(rows, name, &more);
  assert_int_equal(more.child_count, children);
  assert_int_equal(more.inner_count, inner);
  assert_int_equal(more.self_net_ns, self_net);
  assert_int_equal(more.total_net_ns, total_net);
}

/* Records stand in the order in which scopes ended.
     a 0..10000 { b 100..1100 { c 200..210, c 300..310 }, c 2000..2010,
                  a 3000..4000 { c 3100..3110 } } */
static void put_nest(prof_i_head *chunk) {
  capture_plain(chunk, T0 + 200, 10, 3);
  capture_plain(chunk, T0 + 300, 10, 3);
  capture_plain(chunk, T0 + 100, 1000, 2);
  capture_plain(chunk, T0 + 2000, 10, 3);
  capture_plain(chunk, T0 + 3100, 10, 3);
  capture_plain(chunk, T0 + 3000, 1000, 1);
  capture_plain(chunk, T0, 10000, 1);
}

/* Self of a: 10000 - 1000 - 10 - 1000 outside, 990 of the inner call, less 3 + 1 direct children.
   Total of a: the outermost call, less all 6 scopes in it. */
static void a_row_without_the_scopes_inside(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 3);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  put_nest(chunk);
  capture_header(&c)->scope_cost_ps = SCOPE_NS * 1000;
  prof_trace *const trace = open_capture(&c);
  const prof_trace *const twice[] = {trace, trace};
  const prof_aggregate_options options[] = {
      {.size = sizeof *options},
      {.size = sizeof *options, .sort = PROF_SORT_FIRST}, /* one by one, by spans */
      {.size = sizeof *options, .group = PROF_GROUP_NAME | PROF_GROUP_THREAD},
  };
  for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
    prof_rows *const rows = aggregate(twice, 1, &options[i]);
    check_net(rows, "a", 4, 6, 7990 + 990 - 4 * SCOPE_NS, 10000 - 6 * SCOPE_NS);
    check_net(rows, "b", 2, 2, 980 - 2 * SCOPE_NS, 1000 - 2 * SCOPE_NS);
    check_net(rows, "c", 0, 0, 40, 40);
    prof_rows_destroy(rows);
  }
  prof_rows *const rows = aggregate(twice, 2, NULL);
  check_net(rows, "a", 8, 12, 2 * (7990 + 990 - 4 * SCOPE_NS), 2 * (10000 - 6 * SCOPE_NS));
  prof_rows_destroy(rows);
  /* 40 of 980 are more than 2 %, 80 of 8980 and 120 of 10000 are not. */
  char *const text = table_of(trace);
  assert_non_null(strstr(text, "Self Net"));
  assert_non_null(strstr(text, "0.940us"));
  assert_non_null(strstr(text, "0.960us"));
  assert_null(strstr(text, "9.880us"));
  prof_free(text);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void without_a_known_cost_there_are_no_net_columns(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 3);
  put_nest(capture_chunk(&c, CHUNK, 1));
  prof_trace *const trace = open_capture(&c);
  prof_rows *const rows = aggregate((const prof_trace *const[]){trace}, 1, NULL);
  check_net(rows, "a", 4, 6, 8980, 10000);
  prof_rows_destroy(rows);
  char *const text = table_of(trace);
  assert_null(strstr(text, "Net"));
  prof_free(text);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void a_net_time_is_never_negative(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 3);
  put_nest(capture_chunk(&c, CHUNK, 1));
  const uint64_t costs_ps[] = {10000000, UINT64_MAX};
  for (int i = 0; i < 2; i++) {
    capture_header(&c)->scope_cost_ps = costs_ps[i];
    prof_trace *const trace = open_capture(&c);
    prof_rows *const rows = aggregate((const prof_trace *const[]){trace}, 1, NULL);
    check_net(rows, "a", 4, 6, 0, 0);
    check_net(rows, "c", 0, 0, 40, 40);
    prof_rows_destroy(rows);
    prof_trace_destroy(trace);
  }
  capture_end(&c);
}

static void put_step(prof_i_head *chunk, uint64_t end) {
  long_record r;
  long_begin(&r, PROF_I_KIND_STEP, end, 0, 0);
  long_end(&r, chunk);
}

/* In a, the plain scope alone counts. What is in a step is in what holds the step. Asynchronous
   work and calls from a vendor's tracing are no scopes of the thread. */
static void what_counts_as_inside(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 3);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  long_record r;
  put_step(chunk, T0 + 20);
  capture_plain(chunk, T0 + 100, 10, 3);
  long_begin(&r, PROF_I_KIND_ASYNC, T0 + 50, 500, 3);
  long_end(&r, chunk);
  long_begin(&r, PROF_I_KIND_CALL, T0 + 600, 10, 2);
  long_end(&r, chunk);
  put_step(chunk, T0 + 800); /* it begins at 20 */
  capture_plain(chunk, T0, 1000, 1);
  capture_header(&c)->scope_cost_ps = SCOPE_NS * 1000;
  prof_trace *const trace = open_capture(&c);
  prof_rows *const rows = aggregate((const prof_trace *const[]){trace}, 1, NULL);
  check_net(rows, "a", 1, 1, 980 - SCOPE_NS, 1000 - SCOPE_NS);
  prof_rows_destroy(rows);
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* One event at 20 ns, and 3000 ns beyond it, 1000 of these of an earlier thread. Spread: 2 us.
   Chunk changes: 500 ns, and 700 without a processor. */
static void what_recording_took_has_bounds(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 1);
  capture_plain(capture_chunk(&c, CHUNK, 1), T0, 100000, 1);
  prof_i_thread_slot *const slot = capture_slot(&c, 1, "first");
  capture_header(&c)->scope_cost_ps = SCOPE_NS * 1000;
  slot->own_ns = 500;
  prof_trace *trace = open_capture(&c);
  prof_trace_info info = info_of(trace);
  assert_int_equal(info.own_ns, 520);
  assert_int_equal(info.own_least_ns, 520);
  assert_int_equal(info.own_most_ns, 520);
  assert_int_equal(info.is_own_apart, 0);
  assert_int_equal(info.is_own_sampled, 0);
  char *text = table_of(trace);
  assert_non_null(strstr(text, "Recording took: at least 0.520us\n"));
  prof_free(text);
  prof_trace_destroy(trace);

  slot->window_count = 1;
  trace = open_capture(&c);
  assert_int_equal(info_of(trace).is_own_sampled, 1);
  text = table_of(trace);
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
  assert_int_equal(info.own_most_ns, 3520 + 3000 * 3 / 2 + 2 * 2000);
  assert_int_equal(info.is_own_apart, 1);
  assert_int_equal(thread_of(trace, 0).own_ns, 520 + 2000);
  text = table_of(trace);
  assert_non_null(strstr(text, "Recording took: 0.520us to 12.020us\n"));
  prof_free(text);
  prof_trace_destroy(trace);

  slot->beyond_ps = -2000000; /* no more than in warm caches */
  slot->in_place_ns = slot->spread_us2 = 0;
  slot->wait_ns = 700;
  trace = open_capture(&c);
  info = info_of(trace);
  assert_int_equal(info.own_ns, 520);
  assert_int_equal(info.own_least_ns, 520);
  assert_int_equal(info.own_most_ns, 520 + 700);
  assert_int_equal(thread_of(trace, 0).own_ns, 520);
  prof_trace_destroy(trace);
  capture_end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_row_without_the_scopes_inside),
      cmocka_unit_test(without_a_known_cost_there_are_no_net_columns),
      cmocka_unit_test(a_net_time_is_never_negative),
      cmocka_unit_test(what_counts_as_inside),
      cmocka_unit_test(what_recording_took_has_bounds),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
