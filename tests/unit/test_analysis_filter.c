/* Filters: their words, and what an aggregate keeps of a capture. */
#include <math.h>

#include "trace_checks.h"

#include "../../src/analysis/filter.h"
#include "../../src/analysis/internal.h"

enum { T0 = CAPTURE_START, CHUNK = PROF_I_UNIT_BYTES, SCHEMA = 1 };

/* ---- words ---- */

static void check_refused(prof_i_filter_words words, const char *option, const char *value) {
  prof_i_filter *filter = NULL;
  assert_int_equal(prof_i_filter_create(&words, &filter), PROF_E_INVALID);
  assert_null(filter);
  assert_non_null(strstr(prof_last_error(), option));
  assert_non_null(strstr(prof_last_error(), value));
}

static void a_wrong_word_is_refused_with_its_option_and_value(void **state) {
  (void)state;
  static const char *const no_value[] = {"layer"}, *const no_key[] = {"=3"};
  check_refused((prof_i_filter_words){.name = "a["}, "--name", "a[");
  check_refused((prof_i_filter_words){.level = "3"}, "--level", "3");
  check_refused((prof_i_filter_words){.min = "10"}, "--min", "10");
  check_refused((prof_i_filter_words){.min = "-1us"}, "--min", "-1us");
  check_refused((prof_i_filter_words){.from = "1.s"}, "--from", "1.s");
  check_refused((prof_i_filter_words){.to = "99999999999s"}, "--to", "99999999999s");
  check_refused((prof_i_filter_words){.from = "2s", .to = "1s"}, "--from", "2s");
  check_refused((prof_i_filter_words){.step = "5..3"}, "--step", "5..3");
  check_refused((prof_i_filter_words){.step = ".."}, "--step", "..");
  check_refused((prof_i_filter_words){.step = "3-5"}, "--step", "3-5");
  check_refused((prof_i_filter_words){.device = "gpu"}, "--device", "gpu");
  check_refused((prof_i_filter_words){.device = "cuda:x"}, "--device", "cuda:x");
  check_refused((prof_i_filter_words){.args = no_value, .arg_count = 1}, "--arg", "layer");
  check_refused((prof_i_filter_words){.args = no_key, .arg_count = 1}, "--arg", "=3");
}

static void times_are_read_exactly(void **state) {
  (void)state;
  static const struct {
    const char *text;
    uint64_t ns;
  } times[] = {{"0", 0},
               {"7ns", 7},
               {"10us", 10000},
               {"1.5s", 1500000000},
               {"0.1ms", 100000},
               {"1.000000001s", 1000000001},
               {"18446744073s", 18446744073000000000u}};
  for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
    uint64_t ns = 1;
    assert_true(prof_i_filter_read_time(times[i].text, &ns));
    assert_int_equal(ns, times[i].ns);
  }
  uint64_t ns;
  assert_false(prof_i_filter_read_time("18446744074s", &ns));
  assert_false(prof_i_filter_read_time("", &ns));
  assert_false(prof_i_filter_read_time("1 s", &ns));
}

/* ---- single scopes ---- */

/* As in rows by an argument: both find the first. */
static void the_first_argument_of_a_key_decides(void **state) {
  (void)state;
  static const char *const first[] = {"layer=3"}, *const second[] = {"layer=4"};
  static const prof_event event = {
      .name = "a",
      .name_bytes = 1,
      .arg_count = 2,
      .args = {{.key = "layer", .key_bytes = 5, .type = PROF_ARG_I64, .value.i64 = 3},
               {.key = "layer", .key_bytes = 5, .type = PROF_ARG_I64, .value.i64 = 4}}};
  for (int i = 0; i < 2; i++) {
    const prof_i_filter_words words = {.args = i ? second : first, .arg_count = 1};
    prof_i_filter *filter = NULL;
    assert_int_equal(prof_i_filter_create(&words, &filter), PROF_OK);
    const prof_i_trace_filter of = {.filter = filter};
    assert_int_equal(prof_i_trace_filter_takes_event(&of, &event), i == 0);
    prof_i_filter_destroy(filter);
  }
}

/* ---- an aggregate ---- */

static void put_step(prof_i_head *chunk, uint64_t ticks, uint64_t number) {
  long_record r;
  long_begin(&r, PROF_I_KIND_STEP, T0 + ticks, 0, 0);
  long_word(&r, number);
  long_end(&r, chunk);
}

static void put_with_arg(prof_i_head *chunk, uint64_t start, uint64_t duration, uint32_t site,
                         uint64_t layer) {
  long_record r;
  long_begin(&r, PROF_I_KIND_SCOPE, T0 + start, duration, site);
  r.schema = SCHEMA;
  long_word(&r, layer);
  long_end(&r, chunk);
}

/* Thread 1: step 1: a 10 { b 20 { c 30 } } and b 200; step 2: c with layer 3, c with layer 4, and a
   scope of site a that is named "own name" at run time. Thread 2: a 1000. is_plain: without all
   that is not a plain scope. */
static prof_trace *open_filtered(capture *c, bool is_plain) {
  static const uint32_t types[] = {PROF_ARG_I64};
  static const char *const keys[] = {"layer"};
  prof_i_head *const meta = begin_with_sites(c, 1 << 20, 3);
  capture_schema(meta, SCHEMA, PROF_ARGS_PAIRS, "", 1, types, keys);
  capture_session(meta, T0, 2, 1);
  prof_i_head *const one = capture_chunk(c, CHUNK, 1), *const two = capture_chunk(c, CHUNK, 2);
  capture_plain(one, T0 + 30, 5, 3);
  capture_plain(one, T0 + 20, 40, 2);
  capture_plain(one, T0 + 10, 100, 1);
  capture_plain(one, T0 + 200, 50, 2);
  if (!is_plain) {
    long_record r;
    put_step(one, 300, 1);
    put_with_arg(one, 310, 7, 3, 3);
    put_with_arg(one, 320, 8, 3, 4);
    long_begin(&r, PROF_I_KIND_SCOPE, T0 + 340, 9, 1);
    r.flags = PROF_I_FLAG_NAME;
    long_text(&r, "own name");
    long_end(&r, one);
    put_step(one, 400, 2);
  }
  capture_plain(two, T0 + 1000, 300, 1);
  return open_capture(c);
}

/* calls, total, self of each name, "a 1 100 60; b ...", by the names. */
static void describe_rows(const prof_trace *trace, const prof_i_filter_words *words, char *to,
                          size_t room) {
  const prof_aggregate_options options = {
      .size = sizeof options, .group = PROF_GROUP_NAME, .sort = PROF_SORT_NAME};
  prof_i_filter *filter = NULL;
  prof_rows *rows = NULL;
  if (prof_i_filter_create(words, &filter) != PROF_OK) fail_msg("%s", prof_last_error());
  const prof_i_aggregate_more more = {.filter = filter};
  assert_int_equal(prof_i_traces_aggregate_more(&trace, 1, &options, &more, &rows), PROF_OK);
  size_t used = 0;
  to[0] = '\0';
  for (uint64_t i = 0; i < rows->row_count; i++) {
    const prof_row *const row = &rows->rows[i];
    if (row->calls_count)
      used += (size_t)snprintf(to + used, room - used, "%s %d %d %d; ", row->name,
                               (int)row->calls_count, (int)row->total_ns, (int)row->self_ns);
    assert_true(used < room);
  }
  prof_rows_destroy(rows);
  prof_i_filter_destroy(filter);
}

#define assert_rows(trace, expected, ...)                                               \
  do {                                                                                  \
    char text[512];                                                                     \
    describe_rows(trace, &(const prof_i_filter_words){__VA_ARGS__}, text, sizeof text); \
    assert_string_equal(text, expected);                                                \
  } while (0)

/* Self time of b stays 35 + 50: c inside of it counts as its child, shown or not. */
static void plain_scopes_are_filtered(void **state) {
  (void)state;
  capture c;
  prof_trace *const trace = open_filtered(&c, true);
  assert_rows(trace, "a 2 400 360; b 2 90 85; c 1 5 5; ", .name = NULL);
  assert_rows(trace, "b 2 90 85; ", .name = "^b$");
  assert_rows(trace, "b 2 90 85; c 1 5 5; ", .name = "b|c");
  assert_rows(trace, "b 2 90 85; ", .level = "2");
  assert_rows(trace, "", .category = "other");
  assert_rows(trace, "a 1 300 300; ", .thread = "thread 2");
  assert_rows(trace, "a 1 100 60; b 2 90 85; c 1 5 5; ", .thread = "101");
  assert_rows(trace, "a 2 400 360; b 2 90 85; c 1 5 5; ", .process = "test");
  assert_rows(trace, "", .process = "tes");
  assert_rows(trace, "a 2 400 360; b 1 50 50; ", .min = "50ns");
  assert_rows(trace, "b 1 40 35; c 1 5 5; ", .from = "20ns", .to = "200ns");
  assert_rows(trace, "b 1 50 50; ", .from = "20ns", .to = "1us", .min = "41ns");
  assert_rows(trace, "a 2 400 360; b 2 90 85; c 1 5 5; ", .device = "cpu");
  assert_rows(trace, "", .device = "cuda:0");
  assert_rows(trace, "", .step = "1");
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void records_are_filtered_by_what_they_say(void **state) {
  (void)state;
  static const char *const layer_3[] = {"layer=3"}, *const layer_5[] = {"layer=5"};
  capture c;
  prof_trace *const trace = open_filtered(&c, false);
  assert_rows(trace, "c 1 7 7; ", .args = layer_3, .arg_count = 1);
  assert_rows(trace, "", .args = layer_5, .arg_count = 1);
  assert_rows(trace, "own name 1 9 9; ", .name = "^own");
  assert_rows(trace, "a 2 400 360; ", .name = "^a$");
  assert_rows(trace, "a 1 100 60; b 2 90 85; c 1 5 5; ", .step = "1");
  assert_rows(trace, "c 2 15 15; own name 1 9 9; ", .step = "2..");
  assert_rows(trace, "own name 1 9 9; ", .step = "2..4", .min = "9ns");
  assert_rows(trace, "", .step = "3");
  prof_trace_destroy(trace);
  capture_end(&c);
}

static uint64_t bits_of(double number) {
  uint64_t bits;
  memcpy(&bits, &number, sizeof bits);
  return bits;
}

/* One scope with arguments of every type, and the edges of each. */
static prof_trace *open_with_args(capture *c) {
  static const struct {
    const char *key;
    uint32_t type;
  } args[] = {{"i", PROF_ARG_I64},     {"least", PROF_ARG_I64}, {"u", PROF_ARG_U64},
              {"most", PROF_ARG_U64},  {"f", PROF_ARG_F64},     {"nan", PROF_ARG_F64},
              {"zero", PROF_ARG_F64},  {"inf", PROF_ARG_F64},   {"yes", PROF_ARG_BOOL},
              {"no", PROF_ARG_BOOL},   {"s", PROF_ARG_STRING},  {"empty", PROF_ARG_STRING},
              {"p", PROF_ARG_POINTER}, {"t", PROF_ARG_TENSOR},  {"scalar", PROF_ARG_TENSOR}};
  enum { COUNT = sizeof args / sizeof *args };
  uint32_t types[COUNT];
  const char *keys[COUNT];
  for (size_t i = 0; i < COUNT; i++) types[i] = args[i].type, keys[i] = args[i].key;
  prof_i_head *const meta = begin_with_sites(c, 1 << 20, 1);
  capture_schema(meta, SCHEMA, PROF_ARGS_PAIRS, "", COUNT, types, keys);
  capture_session(meta, T0, 2, 1);
  prof_i_head *const chunk = capture_chunk(c, CHUNK, 1);
  long_record r;
  long_begin(&r, PROF_I_KIND_SCOPE, T0 + 10, 5, 1);
  r.schema = SCHEMA;
  long_word(&r, (uint64_t)-5);
  long_word(&r, UINT64_C(1) << 63);
  long_word(&r, UINT64_C(1) << 63);
  long_word(&r, UINT64_MAX);
  long_word(&r, bits_of(2.5));
  long_word(&r, bits_of((double)NAN));
  long_word(&r, bits_of(-0.0));
  long_word(&r, bits_of(-(double)INFINITY));
  long_word(&r, 1);
  long_word(&r, 0);
  long_text(&r, "a=b");
  long_text(&r, "");
  long_word(&r, 0xbeef);
  long_word(&r, 2 | (uint64_t)PROF_F32 << 32);
  long_word(&r, 4);
  long_word(&r, 5);
  long_word(&r, (uint64_t)PROF_F32 << 32);
  long_end(&r, chunk);
  return open_capture(c);
}

static void an_argument_of_each_type_equals_its_text_alone(void **state) {
  (void)state;
  static const char *const equal[] = {"i=-5",
                                      "least=-9223372036854775808",
                                      "u=9223372036854775808",
                                      "f=2.5",
                                      "most=18446744073709551615",
                                      "f=25e-1",
                                      "nan=nan",
                                      "zero=0",
                                      "zero=-0",
                                      "inf=-inf",
                                      "yes=true",
                                      "no=false",
                                      "s=a=b",
                                      "empty=",
                                      "p=0xbeef",
                                      "t=[4, 5]",
                                      "scalar=[]"};
  static const char *const different[] = {"i=5",
                                          "i=",
                                          "i=-5.0",
                                          "i=-5 ",
                                          "least=9223372036854775808",
                                          "u=0",
                                          "u=-9223372036854775808",
                                          "most=-1",
                                          "most=18446744073709551616",
                                          "f=2.4",
                                          "f=nan",
                                          "f=",
                                          "f=2.5x",
                                          "f=2.5000001",
                                          "nan=0",
                                          "nan=",
                                          "nan=2.5",
                                          "nan=inf",
                                          "zero=nan",
                                          "zero=1",
                                          "zero=",
                                          "inf=inf",
                                          "inf=nan",
                                          "inf=0",
                                          "yes=false",
                                          "yes=1",
                                          "yes=",
                                          "no=true",
                                          "no=0",
                                          "s=a",
                                          "s=a=",
                                          "s=a=bc",
                                          "s=",
                                          "empty=x",
                                          "p=48879",
                                          "p=0xbee",
                                          "p=0xbeeff",
                                          "p=",
                                          "t=[4,5]",
                                          "t=[5, 4]",
                                          "t=[4]",
                                          "t=[4, 5",
                                          "t=",
                                          "scalar=",
                                          "scalar=[0]",
                                          "none=",
                                          "ze=0",
                                          "zeros=0"};
  capture c;
  prof_trace *const trace = open_with_args(&c);
  for (size_t i = 0; i < sizeof equal / sizeof *equal; i++)
    assert_rows(trace, "a 1 5 5; ", .args = &equal[i], .arg_count = 1);
  for (size_t i = 0; i < sizeof different / sizeof *different; i++)
    assert_rows(trace, "", .args = &different[i], .arg_count = 1);
  const char *const both[] = {"i=-5", "yes=true"}, *const one[] = {"i=-5", "yes=false"};
  assert_rows(trace, "a 1 5 5; ", .args = both, .arg_count = 2);
  assert_rows(trace, "", .args = one, .arg_count = 2);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void a_single_scope_is_judged_as_an_aggregate_does(void **state) {
  (void)state;
  capture c;
  prof_trace *const trace = open_filtered(&c, false);
  prof_i_filter *filter = NULL;
  static prof_i_trace_filter of;
  const prof_i_filter_words words = {.name = "c|own", .from = "300ns"};
  assert_int_equal(prof_i_filter_create(&words, &filter), PROF_OK);
  assert_int_equal(prof_i_trace_filter_init(&of, trace, filter), 0);
  const prof_i_span early = {.start_ns = 30, .duration_ns = 5, .site = 3, .kind = PROF_EVENT_SCOPE};
  const prof_i_span late = {.start_ns = 300, .duration_ns = 5, .site = 3, .kind = PROF_EVENT_SCOPE};
  const prof_i_span other = {
      .start_ns = 300, .duration_ns = 5, .site = 2, .kind = PROF_EVENT_SCOPE};
  assert_false(prof_i_trace_filter_takes(&of, 0, &early));
  assert_true(prof_i_trace_filter_takes(&of, 0, &late));
  assert_false(prof_i_trace_filter_takes(&of, 0, &other));
  prof_i_trace_filter_fini(&of);
  prof_i_filter_destroy(filter);
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* ---- the fast path ---- */

typedef struct random_thread {
  prof_i_head *chunk;
  uint64_t clock;
  uint32_t seed;
} random_thread;

static uint32_t random_below(random_thread *t, uint32_t end) {
  t->seed = t->seed * 1664525 + 1013904223;
  return (t->seed >> 8) % end;
}

/* Scopes nest, touch each other, and may take no time. */
static void put_random_scope(random_thread *t, uint32_t depth) {
  const uint64_t start = t->clock;
  t->clock += random_below(t, 4);
  for (uint32_t left = depth < 6 ? random_below(t, 4) : 0; left > 0; left--)
    put_random_scope(t, depth + 1);
  t->clock += random_below(t, 20);
  capture_plain(t->chunk, T0 + start, t->clock - start, 1 + random_below(t, 3));
}

static prof_trace *open_random(capture *c, uint32_t seed) {
  prof_i_head *const meta = begin_with_sites(c, 1 << 20, 3);
  capture_session(meta, T0, 2, 1);
  for (uint32_t serial = 1; serial <= 2; serial++) {
    random_thread t = {.chunk = capture_chunk(c, CHUNK, serial), .seed = seed + serial};
    for (int i = 0; i < 20; i++) put_random_scope(&t, 0);
  }
  return open_capture(c);
}

static prof_rows *rows_of(const prof_trace *trace, const prof_i_filter *filter, uint32_t sort) {
  const prof_aggregate_options options = {
      .size = sizeof options, .group = PROF_GROUP_NAME, .sort = sort};
  prof_rows *rows = NULL;
  const prof_i_aggregate_more more = {.filter = filter};
  assert_int_equal(prof_i_traces_aggregate_more(&trace, 1, &options, &more, &rows), PROF_OK);
  return rows;
}

static const prof_row *row_named(const prof_rows *rows, const char *name) {
  for (uint64_t i = 0; i < rows->row_count; i++)
    if (strcmp(rows->rows[i].name, name) == 0) return &rows->rows[i];
  fail_msg("there is no row %s", name);
  return NULL;
}

static void check_same_rows(const prof_rows *one, const prof_rows *other) {
  assert_int_equal(one->row_count, other->row_count);
  assert_int_equal(one->all_self_ns, other->all_self_ns);
  for (uint64_t i = 0; i < one->row_count; i++) {
    const prof_row *const a = &one->rows[i], *const b = row_named(other, a->name);
    prof_row_more more_a = {.size = sizeof more_a}, more_b = {.size = sizeof more_b};
    assert_int_equal(prof_rows_more(one, i, &more_a), PROF_OK);
    assert_int_equal(prof_rows_more(other, (uint64_t)(b - other->rows), &more_b), PROF_OK);
    assert_int_equal(a->calls_count, b->calls_count);
    assert_int_equal(a->total_ns, b->total_ns);
    assert_int_equal(a->self_ns, b->self_ns);
    assert_int_equal(a->max_ns, b->max_ns);
    assert_int_equal(more_a.child_count, more_b.child_count);
    assert_int_equal(more_a.inner_count, more_b.inner_count);
  }
}

/* An order by the first call needs each call, so it takes the slow path. */
static void the_fast_path_adds_what_the_slow_one_does(void **state) {
  (void)state;
  static const prof_i_filter_words filters[] = {
      {.from = "100ns", .to = "700ns"},
      {.from = "300ns"},
      {.to = "300ns"},
      {.min = "15ns"},
      {.name = "a|b", .from = "50ns", .to = "500ns", .min = "10ns"}};
  uint64_t met = 0;
  for (uint32_t seed = 0; seed < 40; seed++) {
    capture c;
    prof_trace *const trace = open_random(&c, seed);
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++) {
      prof_i_filter *filter = NULL;
      assert_int_equal(prof_i_filter_create(&filters[i], &filter), PROF_OK);
      prof_rows *const fast = rows_of(trace, filter, PROF_SORT_NAME), *const slow =
                                                                          rows_of(trace, filter,
                                                                                  PROF_SORT_FIRST);
      check_same_rows(fast, slow);
      met += fast->calls_count;
      prof_rows_destroy(fast);
      prof_rows_destroy(slow);
      prof_i_filter_destroy(filter);
    }
    prof_trace_destroy(trace);
    capture_end(&c);
  }
  assert_true(met > 1000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_wrong_word_is_refused_with_its_option_and_value),
      cmocka_unit_test(times_are_read_exactly),
      cmocka_unit_test(the_first_argument_of_a_key_decides),
      cmocka_unit_test(plain_scopes_are_filtered),
      cmocka_unit_test(records_are_filtered_by_what_they_say),
      cmocka_unit_test(an_argument_of_each_type_equals_its_text_alone),
      cmocka_unit_test(a_single_scope_is_judged_as_an_aggregate_does),
      cmocka_unit_test(the_fast_path_adds_what_the_slow_one_does)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
