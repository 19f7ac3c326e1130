/* What a recursion adds up to, open scopes in a table, and where rows are in the source. */
#include <malloc.h>

#include "trace_checks.h"

enum { T0 = CAPTURE_START, CHUNK = PROF_I_UNIT_BYTES };
enum { BY_NAME = PROF_GROUP_NAME };

static prof_rows *aggregate(const prof_trace *trace, const prof_aggregate_options *options) {
  prof_rows *rows = NULL;
  if (prof_trace_aggregate(trace, options, &rows) != PROF_OK) fail_msg("%s", prof_last_error());
  return rows;
}

static prof_rows *aggregate_by(const prof_trace *trace, uint32_t group) {
  return aggregate(
      trace, &(prof_aggregate_options){.size = sizeof(prof_aggregate_options), .group = group});
}

static uint64_t index_of(const prof_rows *rows, const char *name) {
  for (uint64_t i = 0; i < rows->row_count; i++)
    if (strcmp(rows->rows[i].name, name) == 0) return i;
  fail_msg("no row is named %s", name);
  return 0;
}

static void check_row(const prof_rows *rows, const char *name, uint64_t calls, uint64_t total,
                      uint64_t self) {
  const prof_row *const row = &rows->rows[index_of(rows, name)];
  assert_int_equal(row->memory_bytes, 0);
  assert_int_equal(row->device_total_ns, 0);
  if (row->calls_count != calls || row->total_ns != total || row->self_ns != self)
    fail_msg("%s: %llu calls, total %llu, self %llu", name, (unsigned long long)row->calls_count,
             (unsigned long long)row->total_ns, (unsigned long long)row->self_ns);
}

/* f { g { f {} } f {} } f {} on one thread, and one more f on another; a mark makes the segment one
   of mixed records. */
static prof_trace *open_recursion(capture *c, bool is_mixed) {
  begin_with_sites(c, 1 << 20, 3);
  prof_i_head *const one = capture_chunk(c, CHUNK, 1), *const two = capture_chunk(c, CHUNK, 2);
  capture_plain(one, T0 + 1010, 10, 1);
  if (is_mixed) {
    long_record r;
    long_begin(&r, PROF_I_KIND_INSTANT, T0 + 1025, 0, 3);
    long_end(&r, one);
  }
  capture_plain(one, T0 + 1005, 25, 2);
  capture_plain(one, T0 + 1040, 20, 1);
  capture_plain(one, T0 + 1000, 100, 1);
  capture_plain(one, T0 + 1200, 7, 1);
  capture_plain(two, T0 + 1000, 300, 1);
  return open_capture(c);
}

static void a_total_counts_the_outermost_call_of_a_recursion(void **state) {
  (void)state;
  static const uint32_t groups[] = {0,
                                    BY_NAME,
                                    BY_NAME | PROF_GROUP_STACK,
                                    BY_NAME | PROF_GROUP_SHAPE,
                                    BY_NAME | PROF_GROUP_DEVICE,
                                    BY_NAME | PROF_GROUP_ANNOTATION};
  for (int is_mixed = 0; is_mixed < 2; is_mixed++) {
    capture c;
    prof_trace *const trace = open_recursion(&c, is_mixed);
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
      prof_rows *const rows = aggregate_by(trace, groups[i]);
      assert_int_equal(rows->row_count, 2);
      check_row(rows, "a", 5, 100 + 7 + 300, 10 + 20 + (100 - 25 - 20) + 7 + 300);
      check_row(rows, "b", 1, 25, 15);
      assert_int_equal(rows->total_self_ns, 407);
      prof_rows_destroy(rows);
    }
    prof_rows *rows = aggregate_by(trace, PROF_GROUP_CATEGORY); /* all of it is one group */
    assert_int_equal(rows->row_count, 1);
    check_row(rows, "", 6, 407, 407);
    prof_rows_destroy(rows);
    rows = aggregate_by(trace, BY_NAME | PROF_GROUP_THREAD);
    assert_int_equal(rows->row_count, 3);
    assert_int_equal(rows->rows[0].total_ns, 300);
    assert_int_equal(rows->rows[1].total_ns, 107);
    assert_int_equal(rows->rows[1].thread, 0);
    prof_rows_destroy(rows);
    const prof_aggregate_options by_first = {.size = sizeof by_first, .sort = PROF_SORT_FIRST};
    rows = aggregate(trace, &by_first);
    check_row(rows, "a", 5, 407, 392);
    prof_rows_destroy(rows);
    /* The outermost began before the window, and is not in it. */
    const prof_aggregate_options window = {.size = sizeof window, .from_ns = 1002, .to_ns = 1150};
    rows = aggregate(trace, &window);
    check_row(rows, "a", 2, 30, 30);
    prof_rows_destroy(rows);
    char *text = NULL;
    assert_int_equal(prof_trace_table(trace, NULL, &text), PROF_OK);
    assert_non_null(strstr(text, "100.00%"));
    assert_null(strstr(text, "114.")); /* 464 of 407 */
    prof_free(text);
    prof_trace_destroy(trace);
    capture_end(&c);
  }
}

/* A name that was made at run time is of the group that its text says, whatever its site. */
static void a_recursion_goes_by_what_names_say(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 2);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  long_record r;
  capture_plain(chunk, T0 + 1020, 10, 1);
  long_begin(&r, PROF_I_KIND_SCOPE, T0 + 1010, 30, 2);
  r.flags = PROF_I_FLAG_NAME;
  long_text(&r, "a");
  long_end(&r, chunk);
  capture_plain(chunk, T0 + 1005, 50, 2);
  long_begin(&r, PROF_I_KIND_SCOPE, T0 + 1000, 100, 2);
  r.flags = PROF_I_FLAG_NAME;
  long_text(&r, "a");
  long_end(&r, chunk);
  prof_trace *const trace = open_capture(&c);
  for (uint32_t group = BY_NAME; group <= (BY_NAME | PROF_GROUP_STACK); group += PROF_GROUP_STACK) {
    prof_rows *const rows = aggregate_by(trace, group);
    check_row(rows, "a", 3, 100, 10 + 20 + 50);
    check_row(rows, "b", 1, 50, 20);
    prof_rows_destroy(rows);
  }
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* Of a random tree the totals are those of an independent sum. */
static uint64_t put_tree(prof_i_head *chunk, uint64_t *seed, uint64_t at, int depth,
                         const bool is_around[3], uint64_t total[3]) {
  const uint64_t begin = at;
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  const uint32_t site = 1 + (uint32_t)(*seed >> 40) % 3,
                 children = depth ? (uint32_t)(*seed >> 50) % 4 : 0;
  bool around[3] = {is_around[0], is_around[1], is_around[2]};
  around[site - 1] = true;
  at += 5;
  for (uint32_t i = 0; i < children; i++)
    at = put_tree(chunk, seed, at, depth - 1, around, total) + 3;
  capture_plain(chunk, begin, at - begin, site);
  if (!is_around[site - 1]) total[site - 1] += at - begin;
  return at;
}

static void totals_equal_an_independent_sum(void **state) {
  (void)state;
  static const char *const names[] = {"a", "b", "c"};
  for (uint64_t seed = 1, n = 0; n < 50; n++) {
    capture c;
    uint64_t total[3] = {0}, at = T0 + 10;
    begin_with_sites(&c, 1 << 20, 3);
    prof_i_head *const chunk = capture_chunk(&c, 4 * CHUNK, 1);
    for (int i = 0; i < 8; i++)
      at = put_tree(chunk, &seed, at, 5, (const bool[3]){false, false, false}, total) + 2;
    prof_trace *const trace = open_capture(&c);
    prof_rows *const rows = aggregate_by(trace, BY_NAME);
    for (uint64_t i = 0; i < rows->row_count; i++) {
      const uint32_t which = (uint32_t)(rows->rows[i].name[0] - 'a');
      assert_string_equal(rows->rows[i].name, names[which]);
      assert_int_equal(rows->rows[i].total_ns, total[which]);
      assert_true(rows->rows[i].total_ns <= rows->total_self_ns);
    }
    prof_rows_destroy(rows);
    prof_trace_destroy(trace);
    capture_end(&c);
  }
}

/* An open scope has columns of its own; what has ended inside of it is outermost. */
static void open_scopes_have_columns_of_their_own(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 3);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  capture_plain(chunk, T0 + 2000, 500, 1);
  capture_plain(chunk, T0 + 3000, 500, 2);
  prof_i_thread_slot *const slot = capture_slot(&c, 1, "thread 1");
  capture_open(slot, T0 + 1000, 1);
  capture_open(slot, T0 + 1500, 1);
  capture_open(slot, T0 + 3200, 3);
  prof_trace *const trace = open_capture(&c);
  prof_rows *rows = aggregate_by(trace, BY_NAME);
  prof_row_more more = {.size = sizeof more};
  assert_int_equal(rows->open_count, 3);
  assert_int_equal(rows->calls_count, 2);
  assert_int_equal(rows->total_self_ns, 1000);
  check_row(rows, "a", 1, 500, 500);
  check_row(rows, "c", 0, 0, 0);
  assert_int_equal(prof_rows_more(rows, index_of(rows, "a"), &more), PROF_OK);
  assert_int_equal(more.open_count, 2);
  assert_int_equal(more.open_ns, 2500);
  assert_int_equal(more.calls_ns, 500);
  assert_string_equal(rows->rows[2].name, "c");
  prof_rows_destroy(rows);
  char *text = NULL;
  assert_int_equal(prof_trace_table(trace, NULL, &text), PROF_OK);
  assert_non_null(strstr(text, "Calls  Open  Open for"));
  assert_non_null(strstr(text, "    1     2   2.500us"));
  assert_non_null(strstr(text, "Self time total: 1.000us in 2 calls, 3 groups\n"));
  prof_free(text);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void put_site(prof_i_head *meta, uint32_t number, const char *name, const char *category,
                     const char *file, uint32_t line, const char *function) {
  long_record r;
  long_begin(&r, PROF_I_KIND_SITE, 0, 0, number);
  long_word(&r, line | UINT64_C(1) << 32);
  long_text(&r, name);
  long_text(&r, category);
  long_text(&r, file);
  long_text(&r, function);
  long_end(&r, meta);
}

/* Functions are distinguished by their places, names that a user chose are not. */
static void two_lambdas_are_two_rows(void **state) {
  (void)state;
  capture c;
  capture_begin(&c, 1 << 20);
  prof_i_head *const meta = capture_meta(&c);
  put_site(meta, 1, "operator()", "function", "/home/somebody/project/source/a_file_of_c.cpp", 10,
           "operator()");
  put_site(meta, 2, "operator()", "function", "b.cpp", 10, "operator()");
  put_site(meta, 3, "operator()", "function", "b.cpp", 20, "operator()");
  put_site(meta, 4, "matmul", "operator", "b.cpp", 30, "f");
  put_site(meta, 5, "matmul", "operator", "c.cpp", 40, "g");
  put_site(meta, 6, "outer.<locals>.<lambda>", "python_function", "x.py", 1,
           "outer.<locals>.<lambda>");
  put_site(meta, 7, "outer.<locals>.<lambda>", "python_function", "x.py", 2,
           "outer.<locals>.<lambda>");
  put_site(meta, 8, "len", "c_function", "<built-in function len>", 0, "len");
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  for (uint32_t i = 1; i <= 8; i++) capture_plain(chunk, T0 + i * 1000, 900 - i, i);
  prof_trace *const trace = open_capture(&c);
  static const struct {
    const char *name, *file;
    uint32_t line, has_more;
  } wanted[] = {{"matmul", "b.cpp", 30, 1},
                {"operator()", "/home/somebody/project/source/a_file_of_c.cpp", 10, 0},
                {"operator()", "b.cpp", 10, 0},
                {"operator()", "b.cpp", 20, 0},
                {"outer.<locals>.<lambda>", "x.py", 1, 0},
                {"outer.<locals>.<lambda>", "x.py", 2, 0},
                {"len", "", 0, 0}};
  enum { WANTED = sizeof wanted / sizeof *wanted };
  prof_rows *const rows = aggregate_by(trace, BY_NAME);
  assert_int_equal(rows->row_count, WANTED);
  for (uint64_t i = 0; i < WANTED; i++) {
    prof_row_more more = {.size = sizeof more};
    assert_int_equal(prof_rows_more(rows, i, &more), PROF_OK);
    assert_string_equal(rows->rows[i].name, wanted[i].name);
    assert_string_equal(more.file, wanted[i].file);
    assert_int_equal(more.line, wanted[i].line);
    assert_int_equal(more.has_more_places, wanted[i].has_more);
  }
  prof_row_more more = {.size = sizeof more};
  assert_int_equal(prof_rows_more(rows, WANTED, &more), PROF_E_INVALID);
  assert_int_equal(prof_rows_more(NULL, 0, &more), PROF_E_INVALID);
  assert_int_equal(prof_rows_more(rows, 0, NULL), PROF_E_INVALID);
  more.size = 3;
  assert_int_equal(prof_rows_more(rows, 0, &more), PROF_E_INVALID);
  prof_rows_destroy(rows);
  prof_rows *const by_category = aggregate_by(trace, PROF_GROUP_CATEGORY); /* one row each */
  assert_int_equal(by_category->row_count, 4);
  prof_rows_destroy(by_category);
  prof_trace_site site = {.size = sizeof site};
  assert_int_equal(prof_trace_site_get(trace, 3, &site), PROF_OK);
  assert_int_equal(site.line, 20);
  assert_int_equal(site.file_bytes, 5);
  assert_memory_equal(site.file, "b.cpp", 5);
  char *text = NULL;
  assert_int_equal(prof_trace_json(trace, NULL, &text, NULL), PROF_OK);
  /* Each call of a function says where that is; of names that somebody chose the end does. */
  assert_non_null(strstr(text, "\"args\":{\"file\":\"b.cpp\",\"line\":20}"));
  assert_null(strstr(text, "\"External id\""));
  assert_non_null(
      strstr(text, "{\"name\":\"matmul\",\"cat\":\"operator\",\"file\":\"c.cpp\",\"line\":40}"));
  prof_free(text);
  assert_int_equal(prof_trace_table(trace, NULL, &text), PROF_OK);
  assert_non_null(strstr(text, "Calls  Location"));
  assert_non_null(strstr(text, "2  b.cpp:30, ..."));
  assert_non_null(strstr(text, "1  .../project/source/a_file_of_c.cpp:10"));
  prof_free(text);
  prof_trace_destroy(trace);
  capture_end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_total_counts_the_outermost_call_of_a_recursion),
      cmocka_unit_test(a_recursion_goes_by_what_names_say),
      cmocka_unit_test(totals_equal_an_independent_sum),
      cmocka_unit_test(open_scopes_have_columns_of_their_own),
      cmocka_unit_test(two_lambdas_are_two_rows),
  };
  mallopt(M_PERTURB, 0x5a); /* memory that nobody has set holds no zeros */
  return cmocka_run_group_tests(tests, NULL, NULL);
}
