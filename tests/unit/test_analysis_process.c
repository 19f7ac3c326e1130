/* Rows by process: of captures together, and of an imported trace, whose threads may be of several
   processes. */
#include "analysis/internal.h"
#include "build_capture.h"
#include "trace_checks.h"

enum { T0 = CAPTURE_START, CHUNK = PROF_I_UNIT_BYTES, BY_NAME = PROF_GROUP_NAME };

static void begin(capture *c, uint32_t pid, const char *name) {
  begin_with_sites(c, 1 << 20, 2);
  capture_header(c)->pid = pid;
  snprintf(capture_header(c)->process_name, sizeof capture_header(c)->process_name, "%s", name);
}

static void put_process(prof_i_head *meta, uint64_t serial, int64_t pid, const char *name) {
  long_record r;
  long_begin(&r, PROF_I_KIND_PROCESS, 0, 0, 0);
  long_word(&r, serial);
  long_word(&r, (uint64_t)pid);
  long_text(&r, name);
  long_end(&r, meta);
}

static prof_rows *aggregate(const prof_trace *const *traces, size_t count, uint32_t group) {
  const prof_aggregate_options options = {
      .size = sizeof options, .group = group, .rows_limit = UINT32_MAX, .sort = PROF_SORT_NAME};
  prof_rows *rows = NULL;
  assert_int_equal(prof_traces_aggregate(traces, count, &options, &rows), PROF_OK);
  return rows;
}

static prof_row_more more_of(const prof_rows *rows, uint64_t index) {
  prof_row_more more = {.size = sizeof more};
  assert_int_equal(prof_rows_more(rows, index, &more), PROF_OK);
  return more;
}

static void check_row(const prof_rows *rows, uint64_t index, const char *name, uint64_t total,
                      int64_t pid, const char *process) {
  const prof_row_more more = more_of(rows, index);
  assert_string_equal(rows->rows[index].name, name);
  assert_int_equal(rows->rows[index].total_ns, total);
  assert_int_equal(more.has_process, 1);
  assert_int_equal(more.process_pid, pid);
  assert_string_equal(more.process_name, process);
}

static void captures_together_have_a_row_for_each_process(void **state) {
  (void)state;
  capture c[2];
  prof_trace *traces[2];
  for (int i = 0; i < 2; i++) {
    begin(&c[i], 100 + (uint32_t)i, "python");
    prof_i_head *const chunk = capture_chunk(&c[i], CHUNK, 1);
    capture_plain(chunk, T0 + 500, 300 - 100 * (uint64_t)i, 1);
    capture_plain(chunk, T0 + 900, 10, 1);
    traces[i] = open_capture(&c[i]);
  }
  const prof_trace *const both[] = {traces[0], traces[1]};
  prof_rows *rows = aggregate(both, 2, BY_NAME | PROF_GROUP_PROCESS);
  assert_int_equal(rows->row_count, 2);
  check_row(rows, 0, "a", 310, 100, "python");
  check_row(rows, 1, "a", 210, 101, "python");
  assert_int_equal(rows->rows[0].thread, UINT32_MAX);
  prof_rows_destroy(rows);

  rows = aggregate(both, 2, PROF_GROUP_PROCESS);
  assert_int_equal(rows->row_count, 2);
  check_row(rows, 0, "", 310, 100, "python");
  assert_int_equal(rows->rows[0].calls_count, 2);
  prof_rows_destroy(rows);

  rows = aggregate(both, 2, BY_NAME);
  assert_int_equal(rows->row_count, 1);
  assert_int_equal(more_of(rows, 0).has_process, 0);
  assert_string_equal(more_of(rows, 0).process_name, "");
  prof_rows_destroy(rows);

  const prof_aggregate_options options = {.size = sizeof options, .group = PROF_GROUP_PROCESS};
  char *text = NULL;
  assert_int_equal(prof_traces_table(both, 2, &options, &text), PROF_OK);
  assert_non_null(strstr(text, "\nProcess "));
  assert_non_null(strstr(text, "\npython (100) "));
  assert_non_null(strstr(text, "\npython (101) "));
  prof_free(text);
  for (int i = 0; i < 2; i++) {
    prof_trace_destroy(traces[i]);
    capture_end(&c[i]);
  }
}

/* Threads 1 and 4 are the capture's own process's. 3 has two threads in one row. */
static void a_trace_has_the_processes_that_its_records_name(void **state) {
  (void)state;
  capture c;
  begin(&c, 100, "");
  prof_i_head *const meta = capture_meta(&c);
  put_process(meta, 5, 300, "rank 3");
  put_process(meta, 2, 300, "rank 3");
  put_process(meta, 3, -7, "worker");
  for (uint64_t serial = 1; serial <= 5; serial++)
    capture_plain(capture_chunk(&c, CHUNK, serial), T0 + 500, serial, 1);
  prof_trace *const trace = open_capture(&c);
  assert_int_equal(info_of(trace).bad_count, 0);
  const prof_trace *const traces[] = {trace};
  prof_rows *rows = aggregate(traces, 1, BY_NAME | PROF_GROUP_PROCESS);
  assert_int_equal(rows->row_count, 3);
  check_row(rows, 0, "a", 5, 100, ""); /* in the order of the processes' names */
  check_row(rows, 1, "a", 7, 300, "rank 3");
  check_row(rows, 2, "a", 3, -7, "worker");
  prof_rows_destroy(rows);

  rows = aggregate(traces, 1, BY_NAME | PROF_GROUP_PROCESS | PROF_GROUP_THREAD);
  assert_int_equal(rows->row_count, 5);
  check_row(rows, 0, "a", 1, 100, "");
  check_row(rows, 2, "a", 2, 300, "rank 3");
  check_row(rows, 3, "a", 5, 300, "rank 3");
  prof_rows_destroy(rows);

  const prof_aggregate_options options = {.size = sizeof options, .group = PROF_GROUP_PROCESS};
  char *text = NULL;
  assert_int_equal(prof_trace_table(trace, &options, &text), PROF_OK);
  assert_non_null(strstr(text, "\nrank 3 (300) "));
  assert_non_null(strstr(text, "\nprocess 100 "));
  assert_non_null(strstr(text, "\nworker "));
  prof_free(text);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void a_record_without_a_name_is_damage(void **state) {
  (void)state;
  capture c;
  begin(&c, 100, "");
  prof_i_head *const meta = capture_meta(&c);
  long_record r;
  long_begin(&r, PROF_I_KIND_PROCESS, 0, 0, 0);
  long_word(&r, 1);
  long_end(&r, meta);
  long_begin(&r, PROF_I_KIND_PROCESS, 0, 0, 0);
  long_word(&r, 1);
  long_word(&r, 200);
  long_word(&r, 1000); /* bytes of the name */
  long_end(&r, meta);
  capture_plain(capture_chunk(&c, CHUNK, 1), T0 + 500, 10, 1);
  prof_trace *const trace = open_capture(&c);
  assert_int_equal(info_of(trace).bad_count, 2);
  const prof_trace *const traces[] = {trace};
  prof_rows *const rows = aggregate(traces, 1, PROF_GROUP_PROCESS);
  check_row(rows, 0, "", 10, 100, "");
  prof_rows_destroy(rows);
  prof_trace_destroy(trace);
  capture_end(&c);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(captures_together_have_a_row_for_each_process),
      cmocka_unit_test(a_trace_has_the_processes_that_its_records_name),
      cmocka_unit_test(a_record_without_a_name_is_damage),
  };
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  return cmocka_run_group_tests_name("rows by process", tests, NULL, NULL);
}
