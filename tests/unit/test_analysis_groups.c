/* What makes calls of one name different groups: shapes, flops, and stacks. */
#include "reader/internal.h"
#include "rows.h"

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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(run_time_names_shapes_and_devices_make_groups),
      cmocka_unit_test(shapes_of_other_ranks_are_other_groups),
      cmocka_unit_test(shapes_may_have_pairs_behind_them),
      cmocka_unit_test(calls_of_other_flops_are_other_groups),
      cmocka_unit_test(scopes_are_the_stack_where_they_are_asked_for),
      cmocka_unit_test(a_step_is_the_scope_around),
      cmocka_unit_test(stacks_are_the_functions_around),
      cmocka_unit_test(functions_of_a_tracing_that_ended_are_no_stack),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
