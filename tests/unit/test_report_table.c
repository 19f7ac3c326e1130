/* The table, the loss line, and text made fit for a terminal. */
#include "analysis/filter.h"
#include "base/display.h"
#include "device_capture.h"
#include "report/table_columns.h"
#include "rows.h"

static void the_table_is_aligned_and_harmless(void **state) {
  (void)state;
  capture c;
  capture_begin(&c, 1 << 20);
  prof_i_head *const meta = capture_meta(&c);
  capture_site(meta, 1, "evil\x1b[2J\r\n\xe2\x80\xaename", "cat", 1);
  capture_site(meta, 2, "broken \xff\xc3 utf-8", "cat", 1);
  /* four wide characters */
  capture_site(meta, 3, "\xe5\xbc\xb5\xe9\x87\x8f\xe6\xbc\x94\xe7\xae\x97", "cat", 1);
  capture_site(
      meta, 4,
      "a name that is much longer than a column of a terminal can be without a cut at its end",
      "cat", 1);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  for (uint32_t i = 1; i <= 4; i++) capture_plain(chunk, T0 + i * 10000000, 123456 * i * i, i);
  capture_slot(&c, 2, "x")->lost[PROF_LOSS_DISK] = 12;
  prof_trace *const trace = open_capture(&c);
  const prof_aggregate_options options = {.size = sizeof options,
                                          .group = PROF_GROUP_NAME | PROF_GROUP_CATEGORY |
                                                   PROF_GROUP_DEVICE | PROF_GROUP_THREAD |
                                                   PROF_GROUP_SHAPE};
  char *text = NULL;
  assert_int_equal(prof_trace_table(trace, &options, &text), PROF_OK);
  size_t width = 0;
  int lines = 0;
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), lines++) {
    for (const char *at = line; *at; at++) assert_true((unsigned char)*at >= 0x20 && *at != 0x7f);
    if (lines == 0) width = strlen(line);
    if (lines == 2 || lines == 7) assert_int_equal(strlen(line), width); /* the rules */
    if (lines >= 3 && lines <= 6) assert_true(prof_i_display_width(line, strlen(line)) <= width);
    if (lines == 3)
      assert_non_null(strstr(line, "a name that is much longer than a column of a termin..."));
    if (lines == 3) assert_non_null(strstr(line, "1.975ms"));
    if (lines == 6) assert_non_null(strstr(line, "evil\\x1b[2J\\x0d\\x0a\\u202ename"));
    if (lines == 6) assert_non_null(strstr(line, "123.456us"));
    if (lines == 5) assert_non_null(strstr(line, "broken \xef\xbf\xbd\xef\xbf\xbd utf-8"));
    if (lines == 8) assert_string_equal(line, "Self time total: 3.704ms in 4 calls, 4 groups");
    if (lines == 9) assert_string_equal(line, "4 recorded; lost 12: 12 disk");
  }
  assert_int_equal(lines, 10);
  free(text);
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* Does a table of at most so many columns of text have both? */
static bool table_has(const prof_trace *trace, uint32_t width, const char *first,
                      const char *second) {
  const prof_aggregate_options options = {.size = sizeof options, .text_width = width};
  char *text = NULL;
  const int status = prof_trace_table(trace, &options, &text);
  const bool has_both = status == PROF_OK && strstr(text, first) && strstr(text, second);
  free(text);
  return has_both;
}

static void empty_columns_go_first_where_it_is_narrow(void **state) {
  (void)state;
  capture c;
  capture_begin(&c, 1 << 20);
  prof_i_head *const meta = capture_meta(&c);
  capture_site(meta, 1, "a name without a category", "", 1);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  capture_plain(chunk, T0 + 10, 123456, 1);
  prof_trace *const trace = open_capture(&c);
  uint32_t width = 20; /* the least that has the column */
  while (!table_has(trace, width, "Category", "p99") && width < 1000) width++;
  assert_true(width < 1000);
  assert_true(table_has(trace, width - 1, "Mean", "p99")); /* only the empty one has gone */
  assert_false(table_has(trace, width - 1, "", "No room"));
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void no_loss_reads_as_no_loss(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 2);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  capture_plain(chunk, T0 + 10, 5, 1);
  prof_trace *trace = open_capture(&c);
  char *text = NULL;
  assert_int_equal(prof_trace_loss_text(trace, &text), PROF_OK);
  assert_string_equal(text, "1 recorded; no loss");
  free(text);
  prof_trace_destroy(trace);
  /* as long as it gets */
  for (int i = 0; i < PROF_I_LOSS_WORDS; i++) capture_header(&c)->unattributed[i] = UINT64_MAX;
  trace = open_capture(&c);
  assert_int_equal(prof_trace_loss_text(trace, &text), PROF_OK);
  assert_in_range(strlen(text), 300, 1000);
  free(text);
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* The table of two captures, or of the first one. */
static char *filtered_table(const prof_trace *const *traces, size_t count,
                            const prof_i_filter_words *words) {
  prof_i_filter *filter = NULL;
  prof_i_table_form form = {.kind = PROF_I_TABLE_TEXT};
  char *text = NULL;
  assert_int_equal(prof_i_filter_create(words, &filter), PROF_OK);
  form.more.filter = filter;
  assert_int_equal(prof_i_traces_table(traces, count, NULL, &form, &text), PROF_OK);
  prof_i_filter_destroy(filter);
  return text;
}

static void check_lines(const prof_trace *const *traces, size_t count,
                        const prof_i_filter_words *words, const char *wanted,
                        const char *unwanted) {
  char *const text = filtered_table(traces, count, words);
  if (!strstr(text, wanted)) fail_msg("no '%s' in:\n%s", wanted, text);
  if (unwanted && strstr(text, unwanted)) fail_msg("'%s' in:\n%s", unwanted, text);
  free(text);
}

/* Each process has the threads "main" and one more; the losses differ. */
static void lines_below_the_table_are_of_the_threads_that_pass(void **state) {
  (void)state;
  static const char *const others[] = {"worker", "loader"};
  capture c[2];
  prof_trace *traces[2];
  for (uint32_t i = 0; i < 2; i++) {
    begin_with_sites(&c[i], 1 << 20, 2);
    prof_i_thread_slot *const first = capture_slot(&c[i], 1, "main"), *const second = capture_slot(
                                                                          &c[i], 2, others[i]);
    prof_i_head *const own = capture_chunk(&c[i], CHUNK, 1);
    capture_plain(own, T0 + 10, 5, 1);
    capture_plain(own, T0 + 20, 5, 1);
    capture_plain(capture_chunk(&c[i], CHUNK, 2), T0 + 30, 5, 2);
    first->lost[PROF_LOSS_FULL] = 3;
    second->lost[PROF_LOSS_DISK] = i;
    if (i == 0) capture_open(second, T0 + 40, 2);
    if (i == 0) capture_header(&c[i])->unattributed[PROF_LOSS_NO_THREAD] = 4;
    capture_header(&c[i])->pid = 100 + i;
    traces[i] = open_capture(&c[i]);
  }
  const prof_trace *const both[] = {traces[0], traces[1]};
  const prof_i_filter_words all = {.min = "1ns"}, first = {.process = "100"},
                            second = {.process = "101"}, none = {.process = "7"},
                            main_thread = {.thread = "main"}, worker = {.thread = "worker"},
                            loader = {.thread = "loader"};
  check_lines(both, 2, &all, "\n2 processes: 6 recorded; 2 of them not whole; 1 scope had not",
              NULL);
  check_lines(both, 2, &first,
              "\n3 recorded; lost 7: 3 full, 4 no_thread; 1 scope had not ended yet\n",
              "processes");
  check_lines(both, 2, &second, "\n3 recorded; lost 4: 3 full, 1 disk\n", "not ended");
  check_lines(both, 2, &none, "in 0 calls", "recorded");
  check_lines(both, 2, &main_thread, "\n2 processes: 4 recorded; 2 of them not whole:\n",
              "not ended");
  check_lines(both, 2, &main_thread, "(101): 2 recorded; lost 3: 3 full\n", "disk");
  check_lines(
      both, 2, &worker,
      "\n1 recorded; no loss; 1 scope had not ended yet; 4 more lost by threads that are not "
      "known\n",
      "full");
  check_lines(both, 2, &loader, "\n1 recorded; lost 1: 1 disk\n", "full");
  check_lines(both, 1, &worker, "\n1 recorded; no loss; 1 scope had not ended yet; ", "full");
  for (uint32_t i = 0; i < 2; i++) {
    prof_trace_destroy(traces[i]);
    capture_end(&c[i]);
  }
}

static void lines_of_devices_are_of_those_that_pass(void **state) {
  (void)state;
  capture c;
  device_capture(&c);
  prof_trace *const trace = open_capture(&c);
  const prof_trace *const one[] = {trace};
  check_lines(one, 1, &(prof_i_filter_words){.min = "1ns"}, "\nopencl:", NULL);
  check_lines(one, 1, &(prof_i_filter_words){.min = "1ns"}, "\ncuda:", NULL);
  check_lines(one, 1, &(prof_i_filter_words){.device = "opencl"}, "\nopencl:", "\ncuda:");
  check_lines(one, 1, &(prof_i_filter_words){.device = "cuda"}, "\ncuda:", "\nopencl:");
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void check_repaired(const char *bytes, size_t count, const char *expected) {
  char out[256];
  const size_t wanted = prof_i_sanitize_utf8(out, sizeof out, bytes, count);
  assert_int_equal(wanted, strlen(expected));
  assert_memory_equal(out, expected, wanted);
  for (size_t room = 0; room < wanted; room++) {
    memset(out, '#', sizeof out);
    assert_int_equal(prof_i_sanitize_utf8(out, room, bytes, count), wanted);
    assert_int_equal(out[room], '#');
  }
}

static void utf8_is_repaired_as_unicode_recommends(void **state) {
  (void)state;
  check_repaired("plain", 5, "plain");
  check_repaired("a\0b", 3,
                 "a\xe2\x90\x80"
                 "b");
  check_repaired("\xc0\xaf", 2, "\xef\xbf\xbd\xef\xbf\xbd");
  check_repaired("\xe2\x82", 2, "\xef\xbf\xbd");
  check_repaired("\xed\xa0\x80", 3, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
  check_repaired("\xf0\x9f\x98\x80\xf4\x90", 6, "\xf0\x9f\x98\x80\xef\xbf\xbd\xef\xbf\xbd");
  assert_int_equal(prof_i_display_width("ae\xcc\x81\xe5\xbc\xb5\xf0\x9f\x98\x80", 11), 6);
  assert_int_equal(prof_i_display_cut("\xe5\xbc\xb5\xe9\x87\x8f", 6, 3), 3);
}

/* As torch.profiler's table has them: all of their time, none of it their own, and no share. Beside
   a thread's own scopes of the same name they count as those. */
static void asynchronous_scopes_have_no_share(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 2);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  long_record r;
  for (uint64_t i = 0; i < 2; i++) {
    long_begin(&r, i ? PROF_I_KIND_SCOPE : PROF_I_KIND_ASYNC, T0 + 10 + i * 100, 40, 1);
    r.flags = i ? PROF_I_FLAG_OTHER_THREAD : 0;
    long_end(&r, chunk);
  }
  capture_plain(chunk, T0 + 200, 80, 2);
  prof_trace *trace = open_capture(&c);
  prof_rows *rows = NULL;
  assert_int_equal(prof_trace_aggregate(trace, NULL, &rows), PROF_OK);
  const prof_row *a = row_named(rows, "a");
  assert_int_equal(a->calls_count, 2);
  assert_int_equal(a->total_ns, 80);
  assert_int_equal(a->self_ns, 0);
  assert_int_equal(a->is_async, 1);
  assert_int_equal(row_named(rows, "b")->is_async, 0);
  assert_int_equal(rows->total_self_ns, 80);
  prof_rows_destroy(rows);
  char *text = NULL;
  assert_int_equal(prof_trace_table(trace, NULL, &text), PROF_OK);
  char *const line = strstr(text, "\na ");
  assert_non_null(line);
  *strchr(line + 1, '\n') = '\0';
  assert_non_null(strstr(line, " 0.00%"));
  assert_null(strstr(line, "100.00%")); /* which b has of both: a takes as long */
  prof_free(text);
  prof_trace_destroy(trace);

  capture_plain(chunk, T0 + 300, 5, 1);
  trace = open_capture(&c);
  assert_int_equal(prof_trace_aggregate(trace, NULL, &rows), PROF_OK);
  a = row_named(rows, "a");
  assert_int_equal(a->calls_count, 3);
  assert_int_equal(a->self_ns, 5);
  assert_int_equal(a->is_async, 0);
  prof_rows_destroy(rows);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static char *line_of(char *text, const char *name) {
  char *const line = strstr(text, name);
  assert_non_null(line);
  *strchr(line + 1, '\n') = '\0';
  return line;
}

/* 47 ns in 3 calls are 15.67 ns each, 46 in 3 are 15.33, 33 in 2 are 16.5. */
static void a_mean_is_rounded(void **state) {
  (void)state;
  static const struct {
    uint64_t ns[3];
    const char *mean;
  } cases[] = {{{15, 16, 16}, " 0.016us"}, {{15, 15, 16}, " 0.015us"}, {{16, 17, 0}, " 0.017us"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    capture c;
    begin_with_sites(&c, 1 << 20, 1);
    prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
    for (uint64_t n = 0; n < 3 && cases[i].ns[n]; n++)
      capture_plain(chunk, T0 + n * 100, cases[i].ns[n], 1);
    prof_trace *const trace = open_capture(&c);
    const prof_aggregate_options options = {.size = sizeof options, .time_unit = 6};
    char *text = NULL, mean[16], title[16] = "";
    assert_int_equal(prof_trace_table(trace, &options, &text), PROF_OK);
    const char *const titles = strstr(text, "Name"), *const end = strstr(titles, " Mean") + 5;
    const char *const line = line_of(text, "\na ") + 1;
    snprintf(title, sizeof title, "%.5s", end - 5);
    snprintf(mean, sizeof mean, "%.8s", line + (end - titles) - 8);
    assert_string_equal(title, " Mean");
    assert_string_equal(mean, cases[i].mean);
    prof_free(text);
    prof_trace_destroy(trace);
    capture_end(&c);
  }
}

/* Each level is half of a: what it holds is of the other level. */
static void shares_are_of_all_self_time_whatever_has_rows(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 3);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  capture_plain(chunk, T0 + 110, 300, 2); /* level 2, in a */
  long_record late;
  long_begin(&late, PROF_I_KIND_SCOPE, T0 + 450, 300, 2);
  late.flags = PROF_I_FLAG_NAME;
  long_text(&late, "late");
  long_end(&late, chunk);
  capture_plain(chunk, T0 + 100, 900, 1); /* level 1 */
  prof_trace *const trace = open_capture(&c);
  const prof_aggregate_options options[] = {{.size = sizeof *options, .level = 1},
                                            {.size = sizeof *options, .level = 2},
                                            {.size = sizeof *options, .category = "cat"}};
  const char *const names[] = {"\na ", "\nb ", "\na "}, *const totals[] = {" 100.00%", " 33.33%",
                                                                           " 100.00%"};
  for (size_t i = 0; i < 3; i++) {
    prof_rows *rows = NULL;
    char *text = NULL;
    assert_int_equal(prof_trace_aggregate(trace, &options[i], &rows), PROF_OK);
    assert_int_equal(rows->all_self_ns, 900);
    assert_int_equal(rows->total_self_ns, i == 0 ? 300 : i == 1 ? 600 : 900);
    prof_rows_destroy(rows);
    assert_int_equal(prof_trace_table(trace, &options[i], &text), PROF_OK);
    if (i == 0) assert_non_null(strstr(text, "Self time total: 0.300us of 0.900us in 1 call"));
    if (i == 2) assert_non_null(strstr(text, "Self time total: 0.900us in 3 calls"));
    assert_non_null(strstr(line_of(text, names[i]), totals[i]));
    prof_free(text);
  }
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void a_net_time_that_is_2_percent_less_differs(void **state) {
  (void)state;
  assert_true(prof_i_table_net_differs(1000, 979));
  assert_false(prof_i_table_net_differs(1000, 981));
  assert_false(prof_i_table_net_differs(0, 0));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_mean_is_rounded),
      cmocka_unit_test(a_net_time_that_is_2_percent_less_differs),
      cmocka_unit_test(shares_are_of_all_self_time_whatever_has_rows),
      cmocka_unit_test(asynchronous_scopes_have_no_share),
      cmocka_unit_test(the_table_is_aligned_and_harmless),
      cmocka_unit_test(empty_columns_go_first_where_it_is_narrow),
      cmocka_unit_test(no_loss_reads_as_no_loss),
      cmocka_unit_test(lines_below_the_table_are_of_the_threads_that_pass),
      cmocka_unit_test(lines_of_devices_are_of_those_that_pass),
      cmocka_unit_test(utf8_is_repaired_as_unicode_recommends),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
