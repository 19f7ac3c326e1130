/* Aggregates, the table, the loss line, and text made fit for a terminal. */
#include "analysis/duration_stats.h"
#include "base/sanitize.h"
#include "reader/shape.h"
#include "reader/walk.h"
#include "trace_checks.h"

enum { T0 = CAPTURE_START, CHUNK = PROF_I_UNIT_BYTES };

static prof_rows *aggregate(const prof_trace *trace, const prof_aggregate_options *options) {
  prof_rows *rows = NULL;
  if (prof_trace_aggregate(trace, options, &rows) != PROF_OK)
    fail_msg("prof_trace_aggregate: %s", prof_last_error());
  return rows;
}

static const prof_row *row_named(const prof_rows *rows, const char *name) {
  for (uint64_t i = 0; i < rows->row_count; i++)
    if (strcmp(rows->rows[i].name, name) == 0) return &rows->rows[i];
  fail_msg("no row is named %s", name);
  return NULL;
}

static prof_row_more more_of(const prof_rows *rows, const char *name) {
  prof_row_more more = {.size = sizeof more};
  assert_int_equal(prof_rows_more(rows, (uint64_t)(row_named(rows, name) - rows->rows), &more),
                   PROF_OK);
  return more;
}

static void groups_add_up(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 3);
  prof_i_head *const one = capture_chunk(&c, CHUNK, 1), *const two = capture_chunk(&c, CHUNK, 2);
  for (uint64_t i = 1; i <= 100; i++) capture_plain(one, T0 + i * 1000, i, 1);
  capture_plain(one, T0 + 500, 200000, 2); /* holds them all: 5050 ns of a */
  capture_plain(two, T0 + 10, 1000, 1);
  capture_open(capture_slot(&c, 2, "second"), T0 + 100500, 3); /* till 200500 */
  prof_trace *const trace = open_capture(&c);
  prof_rows *rows = aggregate(trace, NULL);
  assert_int_equal(rows->row_count, 3);
  assert_int_equal(rows->calls_count, 102);
  assert_int_equal(rows->open_count, 1);
  assert_int_equal(rows->total_self_ns, 200000 + 1000);
  assert_string_equal(rows->rows[0].name, "b"); /* by total, descending */
  assert_string_equal(rows->rows[2].name, "c");
  const prof_row *const a = row_named(rows, "a");
  assert_int_equal(a->calls_count, 101);
  assert_int_equal(a->total_ns, 6050);
  assert_int_equal(a->self_ns, 6050);
  assert_int_equal(a->min_ns, 1);
  assert_int_equal(a->max_ns, 1000);
  assert_int_equal(a->median_ns, 51);
  assert_int_equal(a->p99_ns, 100);
  assert_int_equal(a->level, 1);
  assert_int_equal(a->thread, UINT32_MAX);
  assert_int_equal(row_named(rows, "b")->self_ns, 200000 - 5050);
  assert_int_equal(row_named(rows, "c")->calls_count, 0); /* it has not ended */
  assert_int_equal(row_named(rows, "c")->total_ns, 0);
  assert_int_equal(row_named(rows, "c")->self_ns, 0);
  assert_int_equal(more_of(rows, "c").open_count, 1);
  assert_int_equal(more_of(rows, "c").open_ns, 100000);
  assert_int_equal(more_of(rows, "a").open_count, 0);
  prof_rows_destroy(rows);

  const prof_aggregate_options by_thread = {.size = sizeof by_thread,
                                            .group = PROF_GROUP_NAME | PROF_GROUP_THREAD,
                                            .sort = PROF_SORT_NAME};
  rows = aggregate(trace, &by_thread);
  assert_int_equal(rows->row_count, 4);
  assert_string_equal(rows->rows[0].name, "a");
  assert_int_equal(rows->rows[0].thread, 0);
  assert_int_equal(rows->rows[0].calls_count, 100);
  assert_int_equal(rows->rows[1].thread, 1);
  assert_string_equal(rows->rows[0].category, "");
  prof_rows_destroy(rows);

  const prof_aggregate_options one_row = {
      .size = sizeof one_row, .rows_limit = 1, .sort = PROF_SORT_CALLS, .level = 1};
  rows = aggregate(trace, &one_row);
  assert_int_equal(rows->row_count, 1);
  assert_int_equal(rows->all_row_count, 2); /* b is of level 2 */
  assert_string_equal(rows->rows[0].name, "a");
  prof_rows_destroy(rows);

  prof_aggregate_options by_first = {
      .size = sizeof by_first, .group = PROF_GROUP_NAME, .sort = PROF_SORT_FIRST};
  /* from 10 on the second thread, from 500, from 100500 */
  const char *const first_names[] = {"a", "b", "c"};
  rows = aggregate(trace, &by_first);
  assert_int_equal(rows->row_count, 3);
  for (int i = 0; i < 3; i++) assert_string_equal(rows->rows[i].name, first_names[i]);
  prof_rows_destroy(rows);
  by_first.from_ns = 11;
  rows = aggregate(trace, &by_first);
  assert_string_equal(rows->rows[0].name, "b"); /* the a of the second thread was before */
  prof_rows_destroy(rows);
  by_first = (prof_aggregate_options){.size = sizeof by_first,
                                      .group = PROF_GROUP_NAME | PROF_GROUP_THREAD,
                                      .sort = PROF_SORT_FIRST};
  rows = aggregate(trace, &by_first);
  assert_int_equal(rows->rows[0].thread, 1);
  assert_string_equal(rows->rows[1].name, "b");
  assert_string_equal(rows->rows[2].name, "a");
  prof_rows_destroy(rows);

  const prof_aggregate_options other = {.size = sizeof other, .category = "other"};
  rows = aggregate(trace, &other);
  assert_int_equal(rows->all_row_count, 0);
  prof_rows_destroy(rows);
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* Two processes: what has one name is one row, threads are numbered through, and the table says how
   many there are. */
static void traces_add_up_together(void **state) {
  (void)state;
  capture c[2];
  prof_trace *traces[2];
  char *text = NULL;
  for (int i = 0; i < 2; i++) {
    begin_with_sites(&c[i], 1 << 20, 3);
    prof_i_head *const chunk = capture_chunk(&c[i], CHUNK, 1);
    for (uint64_t n = 1; n <= 50; n++)
      capture_plain(chunk, T0 + (uint64_t)(i * 50000) + n * 1000, 50 * (uint64_t)i + n, 1);
    if (i == 1) capture_plain(chunk, T0 + 200000, 300, 2); /* the second alone has it */
    traces[i] = open_capture(&c[i]);
  }
  prof_rows *rows = NULL;
  const prof_trace *const both[] = {traces[0], traces[1]};
  assert_int_equal(prof_traces_aggregate(both, 2, NULL, &rows), PROF_OK);
  assert_int_equal(rows->row_count, 2);
  const prof_row *const a = row_named(rows, "a");
  assert_int_equal(a->calls_count, 100);
  assert_int_equal(a->total_ns, 5050);
  assert_int_equal(a->min_ns, 1);
  assert_int_equal(a->max_ns, 100);
  assert_int_equal(a->median_ns, 50);
  assert_int_equal(row_named(rows, "b")->calls_count, 1);
  assert_int_equal(rows->total_self_ns, 5050 + 300);
  prof_rows_destroy(rows);

  const prof_aggregate_options by_thread = {.size = sizeof by_thread,
                                            .group = PROF_GROUP_NAME | PROF_GROUP_THREAD,
                                            .sort = PROF_SORT_NAME};
  assert_int_equal(prof_traces_aggregate(both, 2, &by_thread, &rows), PROF_OK);
  assert_int_equal(rows->row_count, 3);
  /* the second trace's: of one name the longer stands first */
  assert_int_equal(rows->rows[0].thread, 1);
  assert_int_equal(rows->rows[1].thread, 0);
  prof_rows_destroy(rows);

  const prof_trace *const twice[] = {traces[0], traces[0]}, *const holed[] = {traces[0], NULL};
  assert_int_equal(prof_traces_aggregate(twice, 2, NULL, &rows), PROF_OK);
  assert_int_equal(rows->calls_count, 100);
  prof_rows_destroy(rows);
  assert_int_equal(prof_traces_aggregate(holed, 2, NULL, &rows), PROF_E_INVALID);

  assert_int_equal(prof_traces_table(both, 2, &by_thread, &text), PROF_OK);
  assert_non_null(strstr(text, "\n2 processes: 101 recorded; no loss\n"));
  prof_free(text);
  capture_header(&c[1])->unattributed[PROF_LOSS_FORKED] =
      2; /* they stand in another process's capture */
  prof_trace_destroy(traces[1]);
  traces[1] = open_capture(&c[1]);
  const prof_trace *const child[] = {traces[0], traces[1]};
  assert_int_equal(prof_traces_table(child, 2, &by_thread, &text), PROF_OK);
  assert_non_null(strstr(text, "\n2 processes: 101 recorded; no loss but 2 forked\n"));
  prof_free(text);
  for (int i = 0; i < 2; i++) {
    prof_trace_destroy(traces[i]);
    capture_end(&c[i]);
  }
}

static void put_named(prof_i_head *chunk, uint64_t start, const char *name, uint32_t flags,
                      uint32_t schema, int64_t dim) {
  long_record r;
  long_begin(&r, PROF_I_KIND_SCOPE, start, 10, 1);
  r.flags = flags;
  r.schema = schema;
  if (flags & PROF_I_FLAG_DEVICE) long_word(&r, PROF_DEVICE_CUDA | 1ull << 32);
  if (flags & PROF_I_FLAG_NAME) long_text(&r, name);
  if (schema) {
    for (int i = 0; i < 2; i++) {
      long_word(&r, 2 | (uint64_t)PROF_F32 << 32);
      long_word(&r, (uint64_t)dim);
      long_word(&r, 3);
    }
  }
  long_end(&r, chunk);
}

static void run_time_names_shapes_and_devices_make_groups(void **state) {
  (void)state;
  capture c;
  prof_i_head *const meta = begin_with_sites(&c, 1 << 20, 2);
  const uint32_t types[] = {PROF_ARG_TENSOR, PROF_ARG_TENSOR};
  capture_schema(meta, 1, PROF_ARGS_SHAPES, "", 2, types, NULL);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  put_named(chunk, T0 + 10, "a", PROF_I_FLAG_NAME, 0, 0); /* reads as the site's own name */
  capture_plain(chunk, T0 + 30, 10, 1);
  put_named(chunk, T0 + 50, "x", PROF_I_FLAG_NAME, 1, 2);
  put_named(chunk, T0 + 70, "x", PROF_I_FLAG_NAME, 1, 2);
  put_named(chunk, T0 + 90, "x", PROF_I_FLAG_NAME | PROF_I_FLAG_DEVICE, 1, -7);
  prof_trace *const trace = open_capture(&c);
  prof_rows *rows = aggregate(trace, NULL);
  assert_int_equal(rows->row_count, 2);
  assert_int_equal(row_named(rows, "a")->calls_count, 2);
  assert_int_equal(row_named(rows, "x")->calls_count, 3);
  prof_rows_destroy(rows);
  const prof_aggregate_options options = {
      .size = sizeof options,
      .group = PROF_GROUP_NAME | PROF_GROUP_SHAPE | PROF_GROUP_DEVICE,
      .sort = PROF_SORT_CALLS};
  rows = aggregate(trace, &options);
  assert_int_equal(rows->row_count, 3);
  const prof_row *const device = rows->rows[0].device.type == PROF_DEVICE_CUDA   ? &rows->rows[0]
                                 : rows->rows[1].device.type == PROF_DEVICE_CUDA ? &rows->rows[1]
                                                                                 : &rows->rows[2];
  assert_string_equal(device->shape, "[[-7, 3], [-7, 3]]");
  assert_int_equal(device->device.index, 1);
  prof_rows_destroy(rows);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static int by_value(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

/* Shapes differ by ranks and dimensions alone, in their order: not by types, which a table does not
   show. */
static void shapes_of_other_ranks_are_other_groups(void **state) {
  static const uint32_t types[] = {PROF_ARG_TENSOR, PROF_ARG_TENSOR};
  static const struct {
    uint32_t dtype, ranks[2];
  } given[] = {{PROF_F32, {2, 1}},
               {PROF_F32, {1, 2}},
               {PROF_I64, {1, 2}},
               {PROF_F32, {3, 0}},
               {PROF_F32, {0, 0}}};
  (void)state;
  capture c;
  prof_i_head *const meta = begin_with_sites(&c, 1 << 20, 1);
  capture_schema(meta, 1, PROF_ARGS_SHAPES, "", 2, types, NULL);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  for (uint64_t i = 0; i < sizeof given / sizeof *given; i++) {
    long_record r;
    uint64_t dim = 2;
    long_begin(&r, PROF_I_KIND_SCOPE, T0 + 20 * i + 10, 10, 1);
    r.schema = 1;
    for (int tensor = 0; tensor < 2; tensor++) {
      long_word(&r, given[i].ranks[tensor] | (uint64_t)given[i].dtype << 32);
      for (uint32_t d = 0; d < given[i].ranks[tensor]; d++) long_word(&r, dim++);
    }
    long_end(&r, chunk);
  }
  prof_trace *const trace = open_capture(&c);
  const prof_aggregate_options options = {
      .size = sizeof options, .group = PROF_GROUP_NAME | PROF_GROUP_SHAPE, .sort = PROF_SORT_FIRST};
  prof_rows *const rows = aggregate(trace, &options);
  static const char *const shapes[] = {"[[2, 3], [4]]", "[[2], [3, 4]]", "[[2, 3, 4], []]",
                                       "[[], []]"};
  assert_int_equal(rows->row_count, 4);
  for (size_t i = 0; i < 4; i++) assert_string_equal(rows->rows[i].shape, shapes[i]);
  assert_int_equal(rows->rows[1].calls_count, 2);
  prof_rows_destroy(rows);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void shapes_may_have_pairs_behind_them(void **state) {
  (void)state;
  capture c;
  prof_i_head *const meta = begin_with_sites(&c, 1 << 20, 1);
  const uint32_t types[] = {PROF_ARG_TENSOR, PROF_ARG_STRING, PROF_ARG_TENSOR};
  const char *const keys[] = {"", PROF_STACK_KEY, ""};
  capture_schema(meta, 1, PROF_ARGS_SHAPES, "", 3, types, keys);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  long_record r;
  long_begin(&r, PROF_I_KIND_SCOPE, T0 + 10, 10, 1);
  r.schema = 1;
  long_word(&r, 2 | (uint64_t)PROF_F32 << 32);
  long_word(&r, 4);
  long_word(&r, 5);
  long_text(&r, "inner.py(3): f;outer.py(9): g");
  long_word(&r, 1 | (uint64_t)PROF_F32 << 32); /* behind a key: no shape any more */
  long_word(&r, 7);
  long_end(&r, chunk);
  prof_trace *const trace = open_capture(&c);
  const prof_aggregate_options options = {
      .size = sizeof options,
      .group = PROF_GROUP_NAME | PROF_GROUP_SHAPE | PROF_GROUP_STACK,
      .stack_frames = 1};
  prof_rows *const rows = aggregate(trace, &options);
  assert_int_equal(rows->row_count, 1);
  assert_string_equal(rows->rows[0].shape, "[[4, 5]]");
  assert_string_equal(rows->rows[0].stack, "inner.py(3): f");
  prof_rows_destroy(rows);
  char *json = NULL;
  assert_int_equal(prof_trace_json(trace, NULL, &json, NULL), PROF_OK);
  const char *const written =
      "\"Input Dims\":[[4, 5]],\"Input type\":[\"float\"],\"Call stack\":\"inner.py(3): "
      "f;outer.py(9): g\",\"value\":";
  if (!strstr(json, written)) fail_msg("%s is not in %s", written, json);
  prof_free(json);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static uint64_t calls_with_stack(const prof_rows *rows, const char *name, const char *stack) {
  uint64_t calls = 0;
  for (uint64_t i = 0; i < rows->row_count; i++)
    if (strcmp(rows->rows[i].name, name) == 0 && strcmp(rows->rows[i].stack, stack) == 0)
      calls += rows->rows[i].calls_count;
  return calls;
}

static prof_i_head *begin_with_functions(capture *c) {
  capture_begin(c, 1 << 20);
  prof_i_head *const meta = capture_meta(c);
  capture_site(meta, 1, "op", "operator", 1);
  capture_site(meta, 2, "f", "python_function", 1);
  capture_site(meta, 3, "g", "c_function", 1);
  return meta;
}

/* A call of one tensor, or of nothing, with the text of its other inputs. */
static void put_inputs(prof_i_head *chunk, uint64_t start, uint64_t duration, const char *name,
                       uint32_t dtype, const char *inputs) {
  long_record r;
  long_begin(&r, PROF_I_KIND_SCOPE, start, duration, 1);
  r.flags = PROF_I_FLAG_NAME;
  r.schema = 1;
  long_text(&r, name);
  long_word(&r, (dtype ? 1 : 0) | (uint64_t)dtype << 32);
  if (dtype) long_word(&r, 5);
  long_text(&r, inputs);
  long_end(&r, chunk);
}

static const prof_row *row_of_shape(const prof_rows *rows, const char *shape, prof_row_more *more) {
  *more = (prof_row_more){.size = sizeof *more};
  for (uint64_t i = 0; i < rows->row_count; i++) {
    if (strcmp(rows->rows[i].shape, shape) != 0) continue;
    assert_int_equal(prof_rows_more(rows, i, more), PROF_OK);
    return &rows->rows[i];
  }
  fail_msg("no row has the shape %s", shape);
  return NULL;
}

static void calls_of_other_flops_are_other_groups(void **state) {
  (void)state;
  static const char inner[] = "[\"\",\"[1, 1]\"]", other[] = "[\"\",\"[2, 2]\"]";
  capture c;
  prof_row_more more;
  prof_i_head *const meta = begin_with_sites(&c, 1 << 20, 2);
  const uint32_t types[] = {PROF_ARG_TENSOR, PROF_ARG_STRING};
  const char *const keys[] = {"", "Concrete Inputs"};
  capture_schema(meta, 1, PROF_ARGS_SHAPES, "", 2, types, keys);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  put_inputs(chunk, T0 + 20, 10, "aten::conv2d", PROF_F32, inner);
  put_inputs(chunk, T0 + 10, 50, "aten::conv2d", PROF_F32, inner); /* holds that one */
  put_inputs(chunk, T0 + 100, 10, "aten::conv2d", PROF_F32, inner);
  put_inputs(chunk, T0 + 200, 10, "aten::conv2d", PROF_F32, other);
  put_inputs(chunk, T0 + 300, 10, "aten::conv2d", PROF_F32, "");
  put_inputs(chunk, T0 + 400, 10, "aten::mul", PROF_F32, inner); /* it does not matter there */
  put_inputs(chunk, T0 + 500, 10, "aten::mul", PROF_F32, other);
  put_inputs(chunk, T0 + 600, 10, "aten::mul", PROF_DTYPE_NONE, other);
  prof_trace *const trace = open_capture(&c);
  prof_aggregate_options options = {.size = sizeof options,
                                    .group = PROF_GROUP_NAME | PROF_GROUP_FLOPS};
  prof_rows *rows = aggregate(trace, &options);
  assert_int_equal(rows->row_count, 5);
  assert_int_equal(row_of_shape(rows, "[[5]]\n[\"\",\"[1, 1]\"]", &more)->calls_count, 3);
  assert_int_equal(more.outer_count, 2);
  assert_int_equal(row_of_shape(rows, "[[5]]\n[\"\",\"[2, 2]\"]", &more)->calls_count, 1);
  assert_int_equal(row_of_shape(rows, "[null]", &more)->calls_count, 1);
  assert_int_equal(more.outer_count, 1);
  prof_rows_destroy(rows);
  options.group |= PROF_GROUP_CATEGORY;
  options.from_ns = 350; /* from T0 on */
  rows = aggregate(trace, &options);
  assert_int_equal(rows->row_count, 2);
  assert_int_equal(row_of_shape(rows, "[[5]]", &more)->calls_count, 2);
  prof_rows_destroy(rows);
  options.group = PROF_GROUP_NAME | PROF_GROUP_SHAPE;
  options.from_ns = 0;
  rows = aggregate(trace, &options);
  assert_int_equal(row_of_shape(rows, "[[]]", &more)->calls_count, 1);
  assert_int_equal(more.outer_count, 0);
  assert_int_equal(rows->row_count, 3);
  prof_rows_destroy(rows);
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* A scope, its name in its record: 20 words at most. */
static void put_own_name(prof_i_head *chunk, uint64_t start, uint64_t duration, const char *name) {
  long_record r;
  long_begin(&r, PROF_I_KIND_SCOPE, start, duration, 1);
  r.flags = PROF_I_FLAG_NAME;
  long_text(&r, name);
  long_end(&r, chunk);
}

static void scopes_are_the_stack_where_they_are_asked_for(void **state) {
  (void)state;
  capture c;
  capture_site(begin_with_functions(&c), 4, "step;", "scope", 1);
  prof_i_head *const one = capture_chunk(&c, CHUNK, 1), *const two = capture_chunk(&c, CHUNK, 2);
  for (uint64_t i = 0; i < 100; i++) {
    const uint64_t at = T0 + i * 1000;
    capture_plain(one, at + 20, 10, 1);
    put_own_name(one, at + 15, 20, i % 2 ? "odd" : "even");
    capture_plain(one, at + 10, 30, 2); /* a traced function */
    capture_plain(one, at + 50, 10, 1);
    capture_plain(one, at, 100, 4);
  }
  capture_plain(two, T0 + 10, 5, 1); /* the other thread's scopes are not around it */
  prof_i_head *const three = capture_chunk(&c, CHUNK, 3);
  long_record r;
  long_begin(&r, PROF_I_KIND_SCOPE, T0 + 5, 0, 1);
  r.flags = PROF_I_FLAG_NAME;
  long_text(&r, "still open");
  capture_open_long(capture_slot(&c, 3, "third"), &r);
  capture_plain(three, T0 + 10, 5, 3);
  prof_trace *const trace = open_capture(&c);
  for (uint32_t both = 0; both < 2; both++)
    for (uint32_t frames = 0; frames <= 2; frames++) {
      const prof_aggregate_options options = {
          .size = sizeof options,
          .group = PROF_GROUP_NAME | PROF_GROUP_SCOPES | both * PROF_GROUP_STACK,
          .stack_frames = frames};
      static const char *const odd[] = {"odd;file.c(10): function;step_", "odd",
                                        "odd;file.c(10): function"};
      static const char *const outer[] = {"file.c(10): function;step_", "file.c(10): function",
                                          "file.c(10): function;step_"};
      prof_rows *const rows = aggregate(trace, &options);
      assert_int_equal(rows->row_count, 10);
      assert_int_equal(calls_with_stack(rows, "g", "still open"), 1);
      assert_int_equal(calls_with_stack(rows, "op", odd[frames]), 50);
      assert_int_equal(calls_with_stack(rows, "op", "step_"), 100);
      assert_int_equal(calls_with_stack(rows, "op", ""), 1);
      assert_int_equal(calls_with_stack(rows, "even", outer[frames]), 50);
      assert_int_equal(calls_with_stack(rows, "f", "step_"), 100);
      assert_int_equal(calls_with_stack(rows, "step;", ""), 100);
      prof_rows_destroy(rows);
    }
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void a_step_is_the_scope_around(void **state) {
  (void)state;
  capture c;
  begin_with_functions(&c);
  prof_i_head *const one = capture_chunk(&c, CHUNK, 1);
  for (uint64_t i = 0; i < 10; i++) {
    const uint64_t at = T0 + i * 1000;
    long_record r;
    capture_plain(one, at + 10, 30, 1);
    long_begin(&r, PROF_I_KIND_STEP, at + 100, 0, 0);
    long_word(&r, i);
    long_end(&r, one);
    capture_plain(one, at + 200, 10, 1);
  }
  prof_trace *const trace = open_capture(&c);
  const prof_aggregate_options options = {.size = sizeof options,
                                          .group = PROF_GROUP_NAME | PROF_GROUP_SCOPES};
  prof_rows *const rows = aggregate(trace, &options);
  assert_int_equal(calls_with_stack(rows, "op", "ProfilerStep*"), 19);
  assert_int_equal(calls_with_stack(rows, "op", ""), 1); /* behind the last one */
  prof_rows_destroy(rows);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void stacks_are_the_functions_around(void **state) {
  (void)state;
  /* of C's what the interpreter called it, which stands for the file */
  static const char python[] = "file.c(10): function", both[] = "file.c;file.c(10): function";
  capture c;
  begin_with_functions(&c);
  prof_i_head *const one = capture_chunk(&c, CHUNK, 1), *const two = capture_chunk(&c, CHUNK, 2);
  for (uint64_t i = 0; i < 100; i++) {
    const uint64_t at = T0 + i * 1000;
    capture_plain(one, at + 10, 10, 1);
    capture_plain(one, at + 5, 20, 3);
    capture_plain(one, at + 30, 10, 1);
    capture_plain(one, at, 100, 2);
    capture_plain(one, at + 200, 10, 1);
  }
  capture_plain(two, T0 + 10, 5, 1); /* the other thread's functions are not around it */
  prof_trace *const trace = open_capture(&c);
  for (uint32_t frames = 0; frames <= 2; frames++) {
    const prof_aggregate_options options = {.size = sizeof options,
                                            .group = PROF_GROUP_NAME | PROF_GROUP_STACK,
                                            .stack_frames = frames};
    prof_rows *const rows = aggregate(trace, &options);
    assert_int_equal(rows->row_count, 5);
    assert_int_equal(calls_with_stack(rows, "op", frames == 1 ? "file.c" : both), 100);
    assert_int_equal(calls_with_stack(rows, "op", python), 100);
    assert_int_equal(calls_with_stack(rows, "op", ""), 101);
    assert_int_equal(calls_with_stack(rows, "g", python), 100);
    assert_int_equal(calls_with_stack(rows, "f", ""), 100);
    prof_rows_destroy(rows);
  }
  const prof_aggregate_options by_thread = {
      .size = sizeof by_thread,
      .group = PROF_GROUP_NAME | PROF_GROUP_STACK | PROF_GROUP_THREAD,
      .sort = PROF_SORT_FIRST,
      .from_ns = 1000,
      .to_ns = 3000};
  prof_rows *const rows = aggregate(trace, &by_thread);
  assert_int_equal(rows->calls_count, 10);
  assert_int_equal(calls_with_stack(rows, "op", both), 2);
  assert_int_equal(row_named(rows, "f")->self_ns, 2 * (100 - 20 - 10));
  prof_rows_destroy(rows);
  char *text = NULL;
  assert_int_equal(prof_trace_frame_text(trace, 1000, &text), PROF_OK);
  assert_string_equal(text, "");
  prof_free(text);
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* Where a tracing ended while f stood open: it is the stack of what began before. */
static void functions_of_a_tracing_that_ended_are_no_stack(void **state) {
  (void)state;
  static const char outer[] = "file.c(10): function", inner[] = "file.c";
  for (int is_mixed = 0; is_mixed < 2; is_mixed++) {
    capture c;
    prof_i_head *const meta = begin_with_functions(&c);
    capture_session(meta, T0 + 5600, 1, 3); /* not in their order */
    capture_session(meta, T0 + 5000, 1, 3);
    capture_session(meta, T0 + 9000, 1, 0);
    prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
    /* before: of f */
    for (uint64_t i = 0; i < 3; i++) capture_plain(chunk, T0 + 1000 + i * 100, 10, 1);
    capture_plain(chunk, T0 + 5100, 10, 1); /* of none */
    capture_plain(chunk, T0 + 5300, 10, 1);
    capture_plain(chunk, T0 + 5200, 300, 3); /* of the next tracing, that ends well */
    capture_plain(chunk, T0 + 5550, 10, 1);
    capture_plain(chunk, T0 + 5700, 10, 1);
    if (is_mixed) { /* a segment that is not of plain scopes alone is walked in another way */
      long_record r;
      long_begin(&r, PROF_I_KIND_INSTANT, T0 + 5800, 1, 0);
      long_end(&r, chunk);
    }
    capture_plain(chunk, T0 + 4900, 1000, 1); /* began before: of f */
    capture_plain(chunk, T0, 6000, 2);
    prof_trace *const trace = open_capture(&c);
    uint64_t ends_ns[2] = {0, 0};
    assert_int_equal(prof_trace_function_ends(trace, NULL, 0), 2);
    assert_int_equal(prof_trace_function_ends(trace, ends_ns, 1), 2);
    assert_true(ends_ns[0] > 0 && ends_ns[1] == 0);
    assert_int_equal(prof_trace_function_ends(trace, ends_ns, 2), 2);
    assert_true(ends_ns[0] < ends_ns[1]);
    const prof_aggregate_options options = {.size = sizeof options,
                                            .group = PROF_GROUP_NAME | PROF_GROUP_STACK};
    prof_rows *const rows = aggregate(trace, &options);
    assert_int_equal(calls_with_stack(rows, "op", outer), 4);
    assert_int_equal(calls_with_stack(rows, "op", inner), 1);
    assert_int_equal(calls_with_stack(rows, "op", ""), 3);
    assert_int_equal(calls_with_stack(rows, "g", ""), 1);
    prof_rows_destroy(rows);
    prof_trace_destroy(trace);
    capture_end(&c);
  }
  assert_int_equal(prof_trace_function_ends(NULL, NULL, 0), 0);
}

static void medians_and_p99_are_right_to_one_percent(void **state) {
  (void)state;
  enum { MOST = 20000 };
  static uint64_t values[MOST];
  uint64_t seed = 1;
  for (size_t count = 1; count <= MOST; count = count * 3 / 2 + 1) {
    for (uint64_t spread = 1; spread < 60; spread += 7) {
      prof_i_duration_stats whole;
      prof_i_duration_stats_init(&whole);
      for (size_t i = 0; i < count; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        values[i] = seed >> (64 - spread) >> (seed >> 13) % spread;
        assert_true(prof_i_duration_stats_add(&whole, values[i], 1));
      }
      qsort(values, count, sizeof *values, by_value);
      for (int i = 0; i < 2; i++) {
        const double share = i ? 0.99 : 0.5;
        size_t rank = (size_t)((double)count * share);
        if ((double)rank < (double)count * share || rank == 0) rank++;
        const uint64_t exact = values[rank - 1],
                       got = prof_i_duration_stats_quantile(&whole, share);
        const double bound = (double)exact * 0.01 + 1e-9;
        if ((double)got < (double)exact - bound || (double)got > (double)exact + bound)
          fail_msg("%zu values below 2^%llu: the quantile %.2f is %llu, got %llu", count,
                   (unsigned long long)spread, share, (unsigned long long)exact,
                   (unsigned long long)got);
      }
      assert_int_equal(whole.calls, count);
      prof_i_duration_stats_fini(&whole);
    }
  }
}

/* A bucket counts to 65535 and carries. */
static void counts_past_65535_are_exact(void **state) {
  (void)state;
  prof_i_duration_stats one;
  prof_i_duration_stats_init(&one);
  for (int i = 0; i < 300000; i++)
    assert_true(prof_i_duration_stats_add(&one, i < 200000 ? 10 : 1000, 1));
  assert_int_equal(prof_i_duration_stats_quantile(&one, 0.5), 10);
  assert_int_equal(prof_i_duration_stats_quantile(&one, 200000.0 / 300000), 10);
  assert_in_range(prof_i_duration_stats_quantile(&one, 200001.0 / 300000), 990, 1010);
  for (int i = 0; i < 150000; i++) assert_true(prof_i_duration_stats_add(&one, 20, 1));
  assert_int_equal(one.calls, 450000);
  assert_int_equal(prof_i_duration_stats_quantile(&one, 200000.0 / 450000), 10);
  assert_int_equal(prof_i_duration_stats_quantile(&one, 200001.0 / 450000), 20);
  assert_int_equal(prof_i_duration_stats_quantile(&one, 350000.0 / 450000), 20);
  assert_in_range(prof_i_duration_stats_quantile(&one, 350001.0 / 450000), 990, 1010);
  prof_i_duration_stats_fini(&one);
}

static void buckets_cover_every_value_in_order(void **state) {
  (void)state;
  uint32_t last = 0;
  for (int bit = 0; bit < 64; bit++) {
    for (uint64_t low = 0; low < 130; low++) {
      const uint64_t value = (1ull << bit) + (bit > 8 ? low << (bit - 8) : 0);
      const uint32_t bucket = prof_i_duration_stats_bucket(value);
      assert_true(bucket < PROF_I_DURATION_BUCKETS);
      assert_true(bucket >= last);
      last = bucket;
    }
  }
  assert_int_equal(prof_i_duration_stats_bucket(UINT64_MAX), PROF_I_DURATION_BUCKETS - 1);
}

static void options_of_every_size_are_taken_or_refused(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 2);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  capture_plain(chunk, T0 + 10, 5, 1);
  prof_trace *const trace = open_capture(&c);
  union {
    prof_aggregate_options options;
    unsigned char bytes[sizeof(prof_aggregate_options) + 64];
  } u;
  for (size_t size = 0; size <= sizeof u; size++) {
    memset(&u, 0, sizeof u);
    u.options.size = size;
    prof_rows *rows = NULL;
    char *text = NULL;
    const int status = prof_trace_aggregate(trace, &u.options, &rows);
    assert_int_equal(status, size < sizeof(size_t) ? PROF_E_INVALID : PROF_OK);
    assert_int_equal(prof_trace_table(trace, &u.options, &text), status);
    prof_rows_destroy(rows);
    free(text);
    if (size <= sizeof u.options) continue;
    u.bytes[size - 1] = 1; /* something that this library does not know */
    assert_int_equal(prof_trace_aggregate(trace, &u.options, &rows), PROF_E_INVALID);
  }
  prof_aggregate_options bad[4];
  memset(bad, 0, sizeof bad);
  for (int i = 0; i < 4; i++) bad[i].size = sizeof bad[i];
  bad[0].group = 2048;
  bad[1].sort = 11;
  bad[2].time_unit = 4;
  bad[3].from_ns = bad[3].to_ns = 5;
  prof_rows *rows = NULL;
  for (int i = 0; i < 4; i++)
    assert_int_equal(prof_trace_aggregate(trace, &bad[i], &rows), PROF_E_INVALID);
  assert_int_equal(prof_trace_aggregate(NULL, NULL, &rows), PROF_E_INVALID);
  assert_int_equal(prof_trace_aggregate(trace, NULL, NULL), PROF_E_INVALID);
  assert_null(rows);
  prof_rows_destroy(NULL);
  prof_trace_destroy(trace);
  capture_end(&c);
}

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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(groups_add_up),
      cmocka_unit_test(traces_add_up_together),
      cmocka_unit_test(a_mean_is_rounded),
      cmocka_unit_test(shares_are_of_all_self_time_whatever_has_rows),
      cmocka_unit_test(asynchronous_scopes_have_no_share),
      cmocka_unit_test(run_time_names_shapes_and_devices_make_groups),
      cmocka_unit_test(shapes_of_other_ranks_are_other_groups),
      cmocka_unit_test(shapes_may_have_pairs_behind_them),
      cmocka_unit_test(calls_of_other_flops_are_other_groups),
      cmocka_unit_test(scopes_are_the_stack_where_they_are_asked_for),
      cmocka_unit_test(a_step_is_the_scope_around),
      cmocka_unit_test(stacks_are_the_functions_around),
      cmocka_unit_test(functions_of_a_tracing_that_ended_are_no_stack),
      cmocka_unit_test(medians_and_p99_are_right_to_one_percent),
      cmocka_unit_test(counts_past_65535_are_exact),
      cmocka_unit_test(buckets_cover_every_value_in_order),
      cmocka_unit_test(options_of_every_size_are_taken_or_refused),
      cmocka_unit_test(the_table_is_aligned_and_harmless),
      cmocka_unit_test(no_loss_reads_as_no_loss),
      cmocka_unit_test(utf8_is_repaired_as_unicode_recommends),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
