/* The call tree and the list of scopes of what the import of a trace cannot make: work of a device,
   open scopes, steps. */
#include "trace_checks.h"

#include "../../src/analysis/filter.h"
#include "../../src/report/internal.h"
#include "device_capture.h"

enum { T0 = CAPTURE_START, CHUNK = PROF_I_UNIT_BYTES };

static uint32_t count_of(const char *text, const char *part) {
  uint32_t count = 0;
  for (; (text = strstr(text, part)) != NULL; text++) count++;
  return count;
}

static uint64_t sum_of(const char *text, const char *key) {
  uint64_t sum = 0;
  for (; (text = strstr(text, key)) != NULL;) sum += strtoull(text += strlen(key), NULL, 10);
  return sum;
}

/* ---- the tree ---- */

#define TREE_HEAD "     Calls       Total  Total %        Self  Name\n"

static char *tree_with(const prof_trace *trace, const prof_i_filter_words *words,
                       const prof_i_tree_options *options) {
  prof_i_filter *filter = NULL;
  prof_i_paths paths = {0};
  char *text = NULL;
  uint32_t count;
  assert_int_equal(prof_i_filter_create(words, &filter), PROF_OK);
  paths.filter = filter;
  assert_int_equal(prof_i_paths_add(&paths, trace, PROF_I_SIDE_NEW, NULL, NULL), PROF_OK);
  assert_int_equal(prof_i_tree(&paths, options, &text, &count), PROF_OK);
  prof_i_paths_fini(&paths);
  prof_i_filter_destroy(filter);
  return text;
}

static char *tree_of(const prof_trace *trace, const prof_i_filter_words *words, bool is_json) {
  const prof_i_tree_options options = {.is_json = is_json, .is_ascii = true};
  return tree_with(trace, words, &options);
}

static void check_tree(const prof_trace *trace, const char *name,
                       const prof_i_tree_options *options, const char *wanted) {
  char *const text = tree_with(trace, &(prof_i_filter_words){.name = name}, options);
  assert_string_equal(text, wanted);
  free(text);
}

/* a { b { c c }, d { an empty name } }, and e, which takes as long as a. */
static void a_tree_has_these_lines(void **state) {
  (void)state;
  static const struct {
    uint64_t start, duration;
    uint32_t site;
  } scopes[] = {{150, 50, 3},  {250, 50, 3}, {100, 600, 2},
                {700, 200, 4}, {0, 1000, 1}, {2000, 1000, 5}};
  capture c;
  begin_with_sites(&c, 1 << 20, 5);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  for (size_t i = 0; i < sizeof scopes / sizeof *scopes; i++)
    capture_plain(chunk, T0 + scopes[i].start, scopes[i].duration, scopes[i].site);
  long_record r;
  long_begin(&r, PROF_I_KIND_SCOPE, T0 + 750, 10, 4);
  r.flags = PROF_I_FLAG_NAME;
  long_text(&r, "");
  long_end(&r, chunk);
  prof_trace *const trace = open_capture(&c);
  check_tree(trace, NULL, &(prof_i_tree_options){.is_ascii = true},
             TREE_HEAD
             "         1     1.000us   50.00%     0.200us  a\n"
             "         1     0.600us   30.00%     0.500us  |- b\n"
             "         2     0.100us    5.00%     0.100us  |  `- c\n"
             "         1     0.200us   10.00%     0.190us  `- d\n"
             "         1     0.010us    0.50%     0.010us     `- (unnamed)\n"
             "         1     1.000us   50.00%     1.000us  e\n"
             "6 paths\n");
  check_tree(trace, NULL, &(prof_i_tree_options){.is_ascii = true, .min_share = 0.1},
             TREE_HEAD
             "         1     1.000us   50.00%     0.200us  a\n"
             "         1     0.600us   30.00%     0.500us  |- b\n"
             "         1     0.200us   10.00%     0.190us  `- d\n"
             "         1     1.000us   50.00%     1.000us  e\n"
             "4 paths, and 2 deeper or shorter ones not shown: --depth, --min\n");
  check_tree(trace, "^[ce]$", &(prof_i_tree_options){.is_ascii = true, .depth = 1},
             TREE_HEAD
             "         1     1.000us   50.00%     1.000us  e\n"
             "         -           -                    -  a\n"
             "2 paths, and 1 deeper or shorter ones not shown: --depth, --min\n");
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* Scopes of one site, two of which say another category than the site. */
static void each_category_of_a_site_has_its_own_row(void **state) {
  (void)state;
  enum { OTHERS = 2, ALL = 4 };
  for (uint32_t first = 0; first < 2; first++) { /* the other category is met last, or first */
    capture c;
    prof_i_paths paths = {0};
    begin_with_sites(&c, 1 << 20, 1);
    prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
    for (uint32_t i = 0; i < ALL; i++) {
      long_record r;
      if ((i < OTHERS) == (first == 0)) {
        capture_plain(chunk, T0 + i * 100, 10, 1);
        continue;
      }
      long_begin(&r, PROF_I_KIND_SCOPE, T0 + i * 100, 20, 1);
      r.flags = PROF_I_FLAG_CATEGORY;
      long_text(&r, "other");
      long_end(&r, chunk);
    }
    prof_trace *const trace = open_capture(&c);
    assert_int_equal(prof_i_paths_add(&paths, trace, PROF_I_SIDE_NEW, NULL, NULL), PROF_OK);
    assert_int_equal(paths.row_count, 2);
    assert_int_equal(paths.count, 1 + 2);
    for (uint32_t i = 1; i < paths.count; i++) {
      const prof_i_path_row *const row = &paths.rows[paths.items[i].row];
      const bool is_other = strcmp(row->category, "other") == 0;
      assert_string_equal(row->name, "a");
      assert_string_equal(row->category, is_other ? "other" : "cat");
      assert_int_equal(paths.items[i].sums[PROF_I_SIDE_NEW].calls_count, 2);
      assert_int_equal(paths.items[i].sums[PROF_I_SIDE_NEW].total_ns, is_other ? 40 : 20);
    }
    prof_i_paths_fini(&paths);
    prof_trace_destroy(trace);
    capture_end(&c);
  }
}

/* Host: a [0, 1000) launches both kernels, b takes 10. Stream: the second kernel is inside of the
   first one. */
static void time_of_a_device_is_apart_from_the_hosts(void **state) {
  (void)state;
  capture c;
  enum { SIDE = PROF_I_FLAG_DEVICE | PROF_I_FLAG_STREAM };
  prof_i_head *const meta = begin_with_sites(&c, 1 << 20, 2);
  capture_track(meta, (prof_device){4, 1}, 0x7000, "compute");
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1), *const stream = capture_extent(
                                                              &c, PROF_I_EXTENT_CHUNK, CHUNK);
  stream->sequence = ++c.sequence << 1;
  capture_owner_as(stream, 2, 0x7000,
                   PROF_I_KIND_OF_STREAM | 4 << PROF_I_THREAD_KIND_TYPE_SHIFT |
                       UINT64_C(1) << PROF_I_THREAD_KIND_INDEX_SHIFT,
                   "stream");
  capture_plain(chunk, T0, 1000, 1);
  capture_plain(chunk, T0 + 2000, 10, 2);
  put_device_scope(stream, 300, 100, SIDE | PROF_I_FLAG_NAME, 1, 20);
  put_device_scope(stream, 200, 1300, SIDE | PROF_I_FLAG_NAME, 1, 10);
  prof_trace *const trace = open_capture(&c);
  check_tree(trace, NULL, &(prof_i_tree_options){.is_ascii = true},
             TREE_HEAD
             "         1     1.000us   99.01%     1.000us  a\n"
             "         2     1.400us              1.300us  `- made at run time (device)\n"
             "         1     0.010us    0.99%     0.010us  b\n"
             "3 paths\n");
  check_tree(trace, "^made|b", &(prof_i_tree_options){.is_ascii = true},
             TREE_HEAD
             "         1     0.010us    0.99%     0.010us  b\n"
             "         -           -                    -  a\n"
             "         2     1.400us              1.300us  `- made at run time (device)\n"
             "3 paths\n");
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* A scope on the host may name a device, and is of that device then. */
static void device_work_is_in_the_tree_and_can_be_filtered(void **state) {
  (void)state;
  capture c;
  device_capture(&c);
  prof_trace *const trace = open_capture(&c);
  char *all = tree_of(trace, &(prof_i_filter_words){0}, false);
  assert_true(count_of(all, " (device)\n") > 1);
  free(all);
  all = tree_of(trace, &(prof_i_filter_words){.device = "opencl:1"}, true);
  assert_true(count_of(all, "\"on\":\"device\",") > 1);
  char *const host = tree_of(trace, &(prof_i_filter_words){.device = "cpu"}, true);
  assert_int_equal(count_of(host, "\"on\":\"device\""), 0);
  assert_true(sum_of(host, "\"calls\":") > 0);
  free(all);
  free(host);
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* ---- the list ---- */

static char *listed;
static size_t listed_bytes;

static int keep_bytes(void *user, const char *bytes, size_t count) {
  (void)user;
  listed = realloc(listed, listed_bytes + count + 1);
  assert_non_null(listed);
  memcpy(listed + listed_bytes, bytes, count);
  listed_bytes += count;
  listed[listed_bytes] = '\0';
  return PROF_OK;
}

static uint64_t list_scopes(const prof_trace *trace, const prof_i_filter_words *words,
                            prof_i_scopes_order order, prof_i_scope_list_form form) {
  prof_i_filter *filter = NULL;
  prof_i_scopes_result result;
  free(listed);
  listed = NULL;
  listed_bytes = 0;
  assert_int_equal(prof_i_filter_create(words, &filter), PROF_OK);
  const prof_i_scope_list_options options = {
      .scopes = {.order = order, .limit = UINT64_MAX, .filter = filter}, .form = form};
  const prof_i_placed_trace placed = {.trace = trace};
  const prof_i_scope_list_capture only = {.label = NULL};
  assert_int_equal(prof_i_scope_list(&placed, &only, 1, &options, keep_bytes, NULL, &result),
                   PROF_OK);
  assert_true(result.is_whole);
  assert_int_equal(result.given_count, result.passed_count);
  prof_i_filter_destroy(filter);
  return result.given_count;
}

static void scopes_of_devices_are_listed_with_their_device(void **state) {
  (void)state;
  capture c;
  device_capture(&c);
  prof_trace *const trace = open_capture(&c);
  const uint64_t all =
      list_scopes(trace, &(prof_i_filter_words){0}, PROF_I_SCOPES_BY_START, PROF_I_SCOPE_LIST_JSON);
  const uint64_t on_host = count_of(listed, "\"device\":\"cpu:0\"");
  assert_true(on_host > 0 && on_host < all);
  assert_int_equal(count_of(listed, "\n"), all);
  const prof_i_filter_words words = {.device = "cpu"};
  assert_int_equal(list_scopes(trace, &words, PROF_I_SCOPES_BY_DURATION, PROF_I_SCOPE_LIST_CSV),
                   on_host);
  assert_int_equal(count_of(listed, "\r\n"), on_host + 1);
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* step 1 { a }, step 2 { b }; and c is open in both steps. */
static prof_trace *open_with_steps(capture *c) {
  long_record r;
  prof_i_head *const meta = begin_with_sites(c, 1 << 20, 3);
  capture_session(meta, T0, 2, 1);
  prof_i_head *const chunk = capture_chunk(c, CHUNK, 1);
  capture_plain(chunk, T0 + 20, 30, 1);
  for (uint64_t step = 1; step <= 2; step++) {
    long_begin(&r, PROF_I_KIND_STEP, T0 + 100 * step, 0, 0);
    long_word(&r, step);
    long_end(&r, chunk);
    if (step == 1) capture_plain(chunk, T0 + 120, 60, 2);
  }
  capture_open(capture_slot(c, 1, "thread 1"), T0 + 10, 3);
  return open_capture(c);
}

static void open_scopes_are_listed_and_steps_are_not(void **state) {
  (void)state;
  capture c;
  prof_trace *const trace = open_with_steps(&c);
  assert_int_equal(
      list_scopes(trace, &(prof_i_filter_words){0}, PROF_I_SCOPES_BY_START, PROF_I_SCOPE_LIST_TEXT),
      3);
  assert_non_null(strstr(listed, "c (open)\n"));
  assert_non_null(strstr(listed, "\n3 scopes\n"));
  assert_true(strstr(listed, "c (open)\n") < strstr(listed, "  a\n"));
  assert_int_equal(list_scopes(trace, &(prof_i_filter_words){.step = "2"}, PROF_I_SCOPES_BY_SELF,
                               PROF_I_SCOPE_LIST_JSON),
                   1);
  assert_non_null(strstr(listed, "\"name\":\"b\""));
  assert_int_equal(list_scopes(trace, &(prof_i_filter_words){.step = "1"}, PROF_I_SCOPES_BY_START,
                               PROF_I_SCOPE_LIST_JSON),
                   2);
  assert_non_null(strstr(listed, "\"state\":\"open\""));
  char *const tree = tree_of(trace, &(prof_i_filter_words){0}, true);
  assert_int_equal(sum_of(tree, "\"calls\":"), 2); /* an open scope is no call */
  free(tree);
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* A fiber's scope without a name has a stack and a number; a jump left the other scope. */
static void a_line_tells_fibers_jumps_and_a_missing_name(void **state) {
  (void)state;
  enum { SCHEMA = 1 };
  static const uint32_t types[] = {PROF_ARG_STRING, PROF_ARG_I64};
  static const char *const keys[] = {PROF_STACK_KEY, "layer"};
  capture c;
  long_record r;
  prof_i_head *const meta = begin_with_sites(&c, 1 << 20, 1);
  capture_schema(meta, SCHEMA, PROF_ARGS_PAIRS, "", 2, types, keys);
  capture_session(meta, T0, 2, 1);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  capture_owner_as(chunk, 1, PROF_I_TID_OF_FIBERS + 9, PROF_I_KIND_OF_FIBER, "weaver");
  long_begin(&r, PROF_I_KIND_SCOPE, T0 + 10, 40, 1);
  r.flags = PROF_I_FLAG_NAME;
  r.schema = SCHEMA;
  long_text(&r, "");
  long_text(&r, "outer;inner");
  long_word(&r, 3);
  long_end(&r, chunk);
  long_begin(&r, PROF_I_KIND_SKIPPED, T0 + 100, 200, 1);
  long_end(&r, chunk);
  prof_trace *const trace = open_capture(&c);
  list_scopes(trace, &(prof_i_filter_words){0}, PROF_I_SCOPES_BY_START, PROF_I_SCOPE_LIST_TEXT);
  assert_string_equal(
      listed,
      "       Start    Duration        Self  Depth  Thread            Name\n"
      "0.000000010s     0.040us     0.040us      0  weaver (fiber 9)  (unnamed)  layer=3\n"
      "0.000000100s     0.200us     0.000us      0  weaver (fiber 9)  a (skipped)\n"
      "2 scopes\n");
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* The last scope begins in the first microsecond after 10 s. */
static void starts_have_the_width_of_the_last_one(void **state) {
  (void)state;
  capture c;
  long_record r;
  begin_with_sites(&c, 1 << 20, 1);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  static const uint64_t starts[] = {10, UINT64_C(10000000100)};
  for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
    long_begin(&r, PROF_I_KIND_SCOPE, T0 + starts[i], 40, 1);
    long_end(&r, chunk);
  }
  prof_trace *const trace = open_capture(&c);
  list_scopes(trace, &(prof_i_filter_words){0}, PROF_I_SCOPES_BY_START, PROF_I_SCOPE_LIST_TEXT);
  assert_non_null(strstr(listed, "        Start    Duration"));
  assert_non_null(strstr(listed, "\n 0.000000010s     0.040us"));
  assert_non_null(strstr(listed, "\n10.000000100s     0.040us"));
  prof_trace_destroy(trace);
  capture_end(&c);
}

static int free_list(void **state) {
  (void)state;
  free(listed);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_tree_has_these_lines),
      cmocka_unit_test(each_category_of_a_site_has_its_own_row),
      cmocka_unit_test(time_of_a_device_is_apart_from_the_hosts),
      cmocka_unit_test(device_work_is_in_the_tree_and_can_be_filtered),
      cmocka_unit_test(scopes_of_devices_are_listed_with_their_device),
      cmocka_unit_test(open_scopes_are_listed_and_steps_are_not),
      cmocka_unit_test(starts_have_the_width_of_the_last_one),
      cmocka_unit_test(a_line_tells_fibers_jumps_and_a_missing_name)};
  return cmocka_run_group_tests(tests, NULL, free_list);
}
