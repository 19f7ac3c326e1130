/* Shares of a table: none is above 100 %. Where calls overlap on their thread, so that they add up
   to more than the time that passed, a row has no share, and a line says why. */
#include "trace_checks.h"

enum { T0 = CAPTURE_START, CHUNK = PROF_I_UNIT_BYTES, A = 1, B };
static const char reason[] = "\nTotal % is empty where calls overlap on their thread";

static char *table_of(const prof_trace *trace, const prof_aggregate_options *options) {
  char *text = NULL;
  assert_int_equal(prof_trace_table(trace, options, &text), PROF_OK);
  return text;
}

/* Of all cells. */
static double largest_share(const char *text) {
  double largest = 0;
  for (const char *at = text; (at = strchr(at, '%')) != NULL; at++) {
    const char *from = at;
    while (from > text && strchr("0123456789.", from[-1])) from--;
    if (from < at && atof(from) > largest) largest = atof(from);
  }
  return largest;
}

/* The cell below "Total %", as it is aligned. */
static void assert_total_share(const char *text, const char *name, const char *share) {
  char cell[8], line_start[8];
  const char *const end = strstr(text, "Total %") + strlen("Total %");
  const char *titles = end;
  while (titles > text && titles[-1] != '\n') titles--;
  snprintf(line_start, sizeof line_start, "\n%s ", name);
  const char *const line = strstr(text, line_start);
  assert_non_null(line);
  snprintf(cell, sizeof cell, "%.7s", line + 1 + (end - titles) - 7);
  assert_string_equal(cell, share);
}

static uint64_t crosswise_count(const prof_rows *rows) {
  uint64_t count = 0;
  for (uint64_t i = 0; i < rows->row_count; i++) {
    prof_row_more more = {.size = sizeof more};
    assert_int_equal(prof_rows_more(rows, i, &more), PROF_OK);
    count += more.is_crosswise;
  }
  return count;
}

/* 100 tasks begin one after the other, and end so. */
static void overlapping_tasks_have_no_share_by_any_grouping(void **state) {
  (void)state;
  static const uint32_t groups[] = {0,
                                    PROF_GROUP_NAME,
                                    PROF_GROUP_CATEGORY,
                                    PROF_GROUP_DEVICE,
                                    PROF_GROUP_NAME | PROF_GROUP_THREAD,
                                    PROF_GROUP_NAME | PROF_GROUP_SHAPE,
                                    PROF_GROUP_NAME | PROF_GROUP_STACK,
                                    PROF_GROUP_NAME | PROF_GROUP_SCOPES,
                                    PROF_GROUP_NAME | PROF_GROUP_KERNEL,
                                    PROF_GROUP_NAME | PROF_GROUP_ANNOTATION};
  capture c;
  begin_with_sites(&c, 1 << 20, 1);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  for (uint64_t i = 0; i < 100; i++) capture_plain(chunk, T0 + i, 1000, A);
  prof_trace *const trace = open_capture(&c);
  for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
    const prof_aggregate_options options = {.size = sizeof options, .group = groups[i]};
    prof_rows *rows = NULL;
    assert_int_equal(prof_trace_aggregate(trace, &options, &rows), PROF_OK);
    assert_int_equal(rows->row_count, 1);
    assert_int_equal(rows->rows[0].total_ns, 100000);
    assert_int_equal(rows->all_self_ns, 1099);
    assert_int_equal(crosswise_count(rows), 1);
    prof_rows_destroy(rows);
    char *const text = table_of(trace, &options);
    assert_true(largest_share(text) <= 100);
    assert_non_null(strstr(text, reason));
    if (i < 2) assert_total_share(text, "a", "       ");
    prof_free(text);
  }
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* Two that cross once, in 1600 ns of which other scopes have 100. */
static void what_is_part_of_the_time_keeps_its_share(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 2);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  capture_plain(chunk, T0, 800, A);
  capture_plain(chunk, T0 + 500, 1000, B);
  capture_plain(chunk, T0 + 2000, 100, A);
  prof_trace *const trace = open_capture(&c);
  char *const text = table_of(trace, NULL);
  assert_total_share(text, "a", " 56.25%");
  assert_total_share(text, "b", " 62.50%");
  assert_null(strstr(text, reason));
  prof_free(text);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void asynchronous_rows_have_none(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 2);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  long_record r;
  long_begin(&r, PROF_I_KIND_ASYNC, T0 + 10, 40, A);
  long_end(&r, chunk);
  capture_plain(chunk, T0, 80, B);
  prof_trace *const trace = open_capture(&c);
  char *const text = table_of(trace, NULL);
  assert_total_share(text, "a", "       ");
  assert_total_share(text, "b", "100.00%");
  assert_non_null(strstr(text, reason));
  prof_free(text);
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* b begins behind the window that a begins in. It is part of a's time. */
static void a_window_has_the_time_of_what_its_scopes_hold(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 2);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  capture_plain(chunk, T0 + 300, 600, B);
  capture_plain(chunk, T0 + 100, 900, A);
  capture_plain(chunk, T0 + 2000, 500, B);
  prof_trace *const trace = open_capture(&c);
  const prof_aggregate_options options = {.size = sizeof options, .from_ns = 50, .to_ns = 200};
  prof_rows *rows = NULL;
  assert_int_equal(prof_trace_aggregate(trace, &options, &rows), PROF_OK);
  assert_int_equal(rows->total_self_ns, 300);
  assert_int_equal(rows->all_self_ns, 900);
  prof_rows_destroy(rows);
  char *const text = table_of(trace, &options);
  assert_total_share(text, "a", "100.00%");
  assert_null(strstr(text, reason));
  prof_free(text);
  prof_trace_destroy(trace);
  capture_end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(overlapping_tasks_have_no_share_by_any_grouping),
      cmocka_unit_test(what_is_part_of_the_time_keeps_its_share),
      cmocka_unit_test(asynchronous_rows_have_none),
      cmocka_unit_test(a_window_has_the_time_of_what_its_scopes_hold),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
