/* Stacks by the traced functions around a scope, where many scopes overlap, are in each other or
   are asynchronous. Also how long their texts may be: a table's and the JSON's. */
#include "analysis/call_stacks.h"
#include "trace_checks.h"

enum { T0 = CAPTURE_START, OP = 1, FUNCTION, INNER, OTHER_OP, RANGE, LONG, LEFT_OUT };

/* of C's what the interpreter called it, which stands for the file */
static const char function[] = "file.c(10): function", both[] = "file.c;file.c(10): function";

static void put_function(prof_i_head *meta, uint32_t number, const char *file, const char *name) {
  long_record r;
  long_begin(&r, PROF_I_KIND_SITE, 0, 0, number);
  long_word(&r, 10 | UINT64_C(1) << 32);
  long_text(&r, name);
  long_text(&r, "python_function");
  long_text(&r, file);
  long_text(&r, name);
  long_end(&r, meta);
}

static prof_i_head *begin(capture *c, uint64_t chunk_bytes) {
  char file[4001] = "";
  memset(file, 'x', sizeof file - 1);
  capture_begin(c, chunk_bytes + (1 << 20));
  prof_i_head *const meta = capture_meta(c);
  capture_site(meta, OP, "op", "operator", 1);
  capture_site(meta, FUNCTION, "f", "python_function", 1);
  capture_site(meta, INNER, "g", "c_function", 1);
  capture_site(meta, OTHER_OP, "other", "operator", 1);
  capture_site(meta, RANGE, "autograd::engine::evaluate_function: A", "operator", 1);
  put_function(meta, LONG, file, "long");
  put_function(meta, LEFT_OUT, "torch/tensor.py", "backward");
  return capture_chunk(c, chunk_bytes, 1);
}

static void put_async(prof_i_head *chunk, prof_i_kind kind, uint64_t start, uint64_t duration,
                      uint32_t flags) {
  long_record r;
  long_begin(&r, kind, start, duration, OP);
  r.flags = flags;
  long_end(&r, chunk);
}

static prof_rows *rows_by_stack(const prof_trace *trace) {
  const prof_aggregate_options options = {.size = sizeof options,
                                          .group = PROF_GROUP_NAME | PROF_GROUP_STACK,
                                          .rows_limit = UINT32_MAX};
  prof_rows *rows = NULL;
  if (prof_trace_aggregate(trace, &options, &rows) != PROF_OK)
    fail_msg("prof_trace_aggregate: %s", prof_last_error());
  return rows;
}

static uint64_t calls_of(const prof_trace *trace, const char *name, const char *stack) {
  uint64_t calls = 0;
  prof_rows *const rows = rows_by_stack(trace);
  for (uint64_t i = 0; i < rows->row_count; i++)
    if (strcmp(rows->rows[i].name, name) == 0 && strcmp(rows->rows[i].stack, stack) == 0)
      calls += rows->rows[i].calls_count;
  prof_rows_destroy(rows);
  return calls;
}

static char *json_of(const prof_trace *trace) {
  const prof_dump_options options = {.size = sizeof options, .stacks = 1};
  char *json = NULL;
  const int status = prof_trace_json(trace, &options, &json, NULL);
  if (status != PROF_OK)
    fail_msg("prof_trace_json gave %s: %s", prof_status_name(status), prof_last_error());
  return json;
}

/* A scope has one line. By lines, for a sanitizer's strstr() looks how long the whole text is. */
static uint64_t scopes_of(char *json, const char *stack) {
  const size_t room = strlen(stack) + 64;
  char *const member = malloc(room);
  assert_non_null(member);
  uint64_t scopes = 0;
  const size_t bytes = (size_t)snprintf(member, room, "\"" PROF_STACK_KEY "\":\"%s\"", stack);
  assert_true(bytes < room);
  char *const limit = json + strlen(json);
  for (char *line = json, *end; (end = memchr(line, '\n', (size_t)(limit - line))) != NULL;
       line = end + 1) {
    *end = '\0';
    scopes += strstr(line, member) != NULL;
    *end = '\n';
  }
  free(member);
  return scopes;
}

static void assert_stacks(capture *c, const char *stack, uint64_t count) {
  prof_trace *const trace = open_capture(c);
  char *const json = json_of(trace);
  assert_int_equal(calls_of(trace, "op", stack), count);
  if (*stack)
    assert_int_equal(scopes_of(json, stack), count);
  else
    assert_null(strstr(json, "\"" PROF_STACK_KEY "\""));
  prof_free(json);
  prof_trace_destroy(trace);
}

/* ---- asynchronous ---- */

static void what_is_asynchronous_has_the_functions_that_hold_it(void **state) {
  (void)state;
  capture c;
  prof_i_head *const chunk = begin(&c, 1 << 16);
  put_async(chunk, PROF_I_KIND_ASYNC, T0 + 30, 10, 0); /* in both */
  /* began on another thread: in neither */
  put_async(chunk, PROF_I_KIND_SCOPE, T0 + 32, 9, PROF_I_FLAG_OTHER_THREAD);
  capture_plain(chunk, T0 + 20, 30, INNER);
  /* begins in both, and outlasts the inner one */
  put_async(chunk, PROF_I_KIND_ASYNC, T0 + 40, 20, 0);
  capture_plain(chunk, T0 + 10, 90, FUNCTION);
  put_async(chunk, PROF_I_KIND_ASYNC, T0 + 50, 60, 0); /* outlasts both */
  prof_trace *const trace = open_capture(&c);
  char *const json = json_of(trace);
  assert_int_equal(calls_of(trace, "op", both), 1);
  assert_int_equal(scopes_of(json, both), 1);
  assert_int_equal(calls_of(trace, "op", function), 1);
  assert_int_equal(scopes_of(json, function), 1);
  assert_int_equal(calls_of(trace, "op", ""), 2);
  prof_free(json);
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* ---- more than a lane takes, and more than there are lanes ---- */

static void deeper_ones_than_a_lane_takes_have_stacks(void **state) {
  (void)state;
  enum { DEPTH = 65600 };
  static const uint32_t flags[] = {0, PROF_I_FLAG_OTHER_THREAD};
  for (size_t which = 0; which < 2; which++) {
    capture c;
    prof_i_head *const chunk = begin(&c, 4 << 20);
    for (uint64_t i = DEPTH; i-- > 0;)
      put_async(chunk, which ? PROF_I_KIND_SCOPE : PROF_I_KIND_ASYNC, T0 + 10 + i, 2 * (DEPTH - i),
                flags[which]);
    capture_plain(chunk, T0, 3 * DEPTH, FUNCTION);
    assert_stacks(&c, which ? "" : function, DEPTH);
    capture_end(&c);
  }
}

/* Scopes, and functions. The last lane is shared, and its contents need not enclose what comes. The
   JSON's self-check finds those. */
static void more_than_there_are_lanes_have_stacks(void **state) {
  (void)state;
  enum { COUNT = 400 };
  static const uint32_t sites[] = {OP, INNER};
  for (size_t which = 0; which < 2; which++) {
    capture c;
    prof_i_head *const chunk = begin(&c, 1 << 16);
    for (uint64_t i = 0; i < COUNT; i++) capture_plain(chunk, T0 + 10 + i, 500, sites[which]);
    capture_plain(chunk, T0, 5000, FUNCTION);
    prof_trace *const trace = open_capture(&c);
    assert_int_equal(calls_of(trace, which ? "g" : "op", function), COUNT);
    prof_trace_destroy(trace);
    capture_end(&c);
  }
}

/* ---- texts ---- */

/* Of 300 frames of 4,010 bytes the innermost 16, whole: in a table and in the JSON. */
static void long_stacks_are_cut_between_frames(void **state) {
  (void)state;
  enum { DEPTH = 300, FRAME_BYTES = 4000 + 10, FRAMES = 16 };
  static const uint32_t sites[] = {OP, OTHER_OP, OP};
  capture c;
  prof_i_head *const chunk = begin(&c, 1 << 16);
  /* by one way */
  for (uint64_t i = 0; i < 3; i++) capture_plain(chunk, T0 + 1000 + 20 * i, 10, sites[i]);
  for (uint64_t i = DEPTH; i-- > 0;) capture_plain(chunk, T0 + i, 3000 - 2 * i, LONG);
  prof_trace *const trace = open_capture(&c);
  prof_rows *const rows = rows_by_stack(trace);
  char *const json = json_of(trace);
  uint64_t calls = 0;
  for (uint64_t i = 0; i < rows->row_count; i++) {
    const size_t bytes = strlen(rows->rows[i].stack);
    if (bytes > PROF_I_STACK_BYTES_MAX) fail_msg("a stack of %zu bytes", bytes);
    if (strcmp(rows->rows[i].name, "op") != 0 && strcmp(rows->rows[i].name, "other") != 0) continue;
    assert_int_equal(bytes, FRAMES * FRAME_BYTES + FRAMES - 1);
    assert_int_equal(scopes_of(json, rows->rows[i].stack), 3);
    calls += rows->rows[i].calls_count;
  }
  assert_int_equal(calls, 3);
  prof_free(json);
  prof_rows_destroy(rows);
  prof_trace_destroy(trace);
  capture_end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_asynchronous_has_the_functions_that_hold_it),
      cmocka_unit_test(deeper_ones_than_a_lane_takes_have_stacks),
      cmocka_unit_test(more_than_there_are_lanes_have_stacks),
      cmocka_unit_test(long_stacks_are_cut_between_frames),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
