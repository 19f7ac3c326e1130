/* What a profile of one thread has of a trace, beside profiles of other threads; and what tables
   count as torch.profiler's do. */
#include "trace_checks.h"

#include <prof/python.h>

#include "../../src/format/layout.h"

enum { MINE = 1, OTHER = 2, CHUNK = PROF_I_UNIT_BYTES };

static uint64_t at(uint64_t ns) { return CAPTURE_START + ns; }

/* A site without a file, as those of operators. */
static void put_site(prof_i_head *meta, uint32_t number, const char *name, const char *category,
                     uint32_t line) {
  long_record r;
  long_begin(&r, PROF_I_KIND_SITE, 0, 0, number);
  long_word(&r, line | UINT64_C(1) << 32);
  long_text(&r, name);
  long_text(&r, category);
  long_text(&r, "");
  long_text(&r, "");
  long_end(&r, meta);
}

static prof_i_head *begin(capture *c) {
  capture_begin(c, 4 << 20);
  prof_i_head *const meta = capture_meta(c);
  put_site(meta, 1, "add", "cpu_op", prof_i_observed_line(0, MINE));
  put_site(meta, 2, "add", "cpu_op", prof_i_observed_line(0, OTHER));
  put_site(meta, 3, "mul", "cpu_op", prof_i_observed_line(1, PROF_I_OBSERVED_FOR_ALL));
  put_site(meta, 4, "range", "user_annotation", 0);
  put_site(meta, 5, "ProfilerStep#3", "user_annotation", 0);
  put_site(meta, 6, "fast", "cpu_op", 0);
  put_site(meta, 7, "nn.Module: Linear_0", "python_function", 0);
  put_site(meta, 8, "f", "python_function", 0);
  capture_site(meta, 9, "op", "cpu_op", 1);
  capture_clock(c, meta, 0, 0, 0);
  capture_clock(c, meta, 1000000, 1000000, 0);
  return meta;
}

/* One of each on either thread, 100 ns long, 1000 ns apart. The sites from 1 to 9. */
static prof_trace *make(capture *c) {
  begin(c);
  for (uint64_t serial = 1; serial <= 2; serial++) {
    prof_i_head *const chunk = capture_chunk(c, CHUNK, serial);
    for (uint32_t site = 1; site <= 9; site++) capture_plain(chunk, at(site * 1000), 100, site);
    long_record r; /* as Python's scopes whose names come seldom */
    long_begin(&r, PROF_I_KIND_SCOPE, at(10000) + 100, 0, 100);
    r.flags = PROF_I_FLAG_NAME | PROF_I_FLAG_CATEGORY;
    long_text(&r, "ProfilerStep#4");
    long_text(&r, "user_annotation");
    long_end(&r, chunk);
  }
  return open_capture(c);
}

static prof_trace *view_of(prof_trace *trace, prof_i_view_wish wish) {
  static const uint64_t others[] = {102}; /* the second thread */
  prof_trace *view = NULL;
  wish.size = sizeof wish;
  wish.others = others;
  wish.other_count = 1;
  assert_int_equal(prof_i_trace_view_1(trace, &wish, &view), PROF_OK);
  return view;
}

/* The names on that thread, by time, each followed by a space. */
static void names_on(const prof_trace *trace, uint32_t thread, char *to, size_t room) {
  prof_cursor *cursor = NULL;
  prof_event event;
  to[0] = '\0';
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  while (prof_cursor_next(cursor, &event) == 1) {
    const size_t used = strlen(to);
    if (event.thread == thread)
      snprintf(to + used, room - used, "%.*s ", (int)event.name_bytes, event.name);
  }
  prof_cursor_destroy(cursor);
}

static void has_names(const prof_trace *trace, uint32_t thread, const char *expected) {
  char found[512];
  names_on(trace, thread, found, sizeof found);
  assert_string_equal(found, expected);
}

static const char all[] =
    "add add mul range ProfilerStep#3 fast nn.Module: Linear_0 f op ProfilerStep#4 ";

static prof_rows *rows_of(const prof_trace *trace, const prof_aggregate_options *options) {
  prof_rows *rows = NULL;
  assert_int_equal(prof_trace_aggregate(trace, options, &rows), PROF_OK);
  return rows;
}

static void a_view_has_its_own_threads_and_what_is_of_all(void **state) {
  (void)state;
  capture c;
  prof_trace *const trace = make(&c);
  prof_trace *const view = view_of(trace, (prof_i_view_wish){.number = MINE});
  has_names(view, 0, "add mul range ProfilerStep#3 fast nn.Module: Linear_0 f op ProfilerStep#4 ");
  has_names(view, 1, "add range f op ");
  has_names(trace, 0, all);
  has_names(trace, 1, all);
  prof_rows *const rows = rows_of(view, NULL);
  for (uint64_t i = 0; i < rows->row_count; i++)
    if (strcmp(rows->rows[i].name, "add") == 0) assert_int_equal(rows->rows[i].calls_count, 2);
  assert_int_equal(rows->calls_count, 13);
  prof_rows_destroy(rows);
  prof_trace_destroy(view);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void a_view_hides_functions_where_they_are_others(void **state) {
  (void)state;
  capture c;
  prof_trace *const trace = make(&c);
  prof_trace *const view =
      view_of(trace, (prof_i_view_wish){.number = OTHER, .hides_functions = 1, .hides_modules = 1});
  has_names(view, 0, "add mul range ProfilerStep#3 fast op ProfilerStep#4 ");
  has_names(view, 1, "add range op ");
  prof_trace_destroy(view);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void a_view_lives_longer_than_its_trace(void **state) {
  (void)state;
  capture c;
  prof_trace *const trace = make(&c);
  prof_trace *const one = view_of(trace, (prof_i_view_wish){.number = MINE});
  prof_trace *const two = view_of(trace, (prof_i_view_wish){.number = OTHER});
  prof_trace_destroy(one);
  prof_trace_destroy(trace);
  has_names(two, 1, "add range f op ");
  prof_trace_destroy(two);
  capture_end(&c);
}

static void a_view_without_others_has_its_number_alone(void **state) {
  (void)state;
  capture c;
  prof_trace *const trace = make(&c);
  const prof_i_view_wish wish = {.size = sizeof wish, .number = MINE};
  prof_trace *view = NULL, *none = NULL;
  assert_int_equal(prof_i_trace_view_1(trace, &wish, &view), PROF_OK);
  has_names(view, 1, "add mul range ProfilerStep#3 fast nn.Module: Linear_0 f op ProfilerStep#4 ");
  assert_int_equal(prof_i_trace_view_1(view, &wish, &none), PROF_E_INVALID);
  assert_int_equal(prof_i_trace_view_1(trace, NULL, &none), PROF_E_INVALID);
  assert_null(none);
  prof_trace_destroy(view);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void open_scopes_are_calls_where_asked_for(void **state) {
  (void)state;
  capture c;
  begin(&c);
  prof_i_thread_slot *const slot = capture_slot(&c, 1, "main");
  capture_open(slot, at(500), 4);
  capture_plain(capture_chunk(&c, CHUNK, 1), at(1000), 100, 3);
  prof_trace *const trace = open_capture(&c);
  for (uint32_t rules = 0; rules < 2; rules++) {
    const prof_aggregate_options options = {.size = sizeof options,
                                            .group = PROF_GROUP_NAME | PROF_GROUP_ANNOTATION,
                                            .sort = PROF_SORT_FIRST,
                                            .to_ns = 2500,
                                            .rules = rules};
    prof_rows *const rows = rows_of(trace, &options);
    assert_int_equal(rows->row_count, 2);
    const prof_row *const row = &rows->rows[0];
    prof_row_more more = {.size = sizeof more};
    assert_int_equal(prof_rows_more(rows, 0, &more), PROF_OK);
    assert_string_equal(row->name, "range");
    assert_int_equal(row->calls_count, rules);
    assert_int_equal(row->self_ns, 0);
    assert_int_equal(row->is_async, rules);
    assert_int_equal(more.open_count, 1);
    assert_true(rules ? row->total_ns > 0 && row->total_ns <= 2000 : row->total_ns == 0);
    assert_int_equal(rows->total_self_ns, 100);
    assert_int_equal(prof_rows_more(rows, 1, &more), PROF_OK);
    assert_int_equal(more.record_scope, 1);
    prof_rows_destroy(rows);
  }
  const prof_aggregate_options wrong = {.size = sizeof wrong, .rules = 8};
  prof_rows *rows = NULL;
  assert_int_equal(prof_trace_aggregate(trace, &wrong, &rows), PROF_E_INVALID);
  prof_trace_destroy(trace);
  capture_end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_view_has_its_own_threads_and_what_is_of_all),
      cmocka_unit_test(a_view_hides_functions_where_they_are_others),
      cmocka_unit_test(a_view_lives_longer_than_its_trace),
      cmocka_unit_test(a_view_without_others_has_its_number_alone),
      cmocka_unit_test(open_scopes_are_calls_where_asked_for),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
