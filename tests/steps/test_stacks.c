/* What is between frames, but is no frame, is passed at once. So a table by stacks takes at most a
   fixed multiple of the steps of one by names, at any depth. */
#include "unit/trace_checks.h"

#include "count_steps.h"

enum { T0 = CAPTURE_START, OP = 1, FUNCTION, RANGE, LEFT_OUT, TIMES = 20 };

static void put_left_out(prof_i_head *meta) {
  long_record r;
  long_begin(&r, PROF_I_KIND_SITE, 0, 0, LEFT_OUT);
  long_word(&r, 10 | UINT64_C(1) << 32);
  long_text(&r, "backward");
  long_text(&r, "python_function");
  long_text(&r, "torch/tensor.py");
  long_text(&r, "backward");
  long_end(&r, meta);
}

static prof_i_head *begin(capture *c) {
  enum { CHUNK_BYTES = 1 << 20 };
  capture_begin(c, CHUNK_BYTES + (1 << 20));
  prof_i_head *const meta = capture_meta(c);
  capture_site(meta, OP, "op", "operator", 1);
  capture_site(meta, FUNCTION, "f", "python_function", 1);
  capture_site(meta, RANGE, "autograd::engine::evaluate_function: A", "operator", 1);
  put_left_out(meta);
  return capture_chunk(c, CHUNK_BYTES, 1);
}

static uint64_t steps_of(const prof_trace *trace, uint32_t group) {
  const prof_aggregate_options options = {.size = sizeof options, .group = group};
  prof_rows *rows = NULL;
  const uint64_t begun = steps_now;
  assert_int_equal(prof_trace_aggregate(trace, &options, &rows), PROF_OK);
  const uint64_t took = steps_now - begun;
  prof_rows_destroy(rows);
  return took;
}

static void texts_take_no_steps_for_what_is_no_frame(void **state) {
  (void)state;
  static const struct {
    uint64_t depth;
    uint32_t even, odd;
  } cases[] = {{32000, OP, RANGE}, {4000, LEFT_OUT, LEFT_OUT}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const uint64_t depth = cases[i].depth;
    capture c;
    prof_i_head *const chunk = begin(&c);
    for (uint64_t at = depth; at-- > 0;)
      capture_plain(chunk, T0 + 10 + at, 2 * (depth - at), at % 2 ? cases[i].odd : cases[i].even);
    capture_plain(chunk, T0, 3 * depth, FUNCTION);
    prof_trace *const trace = open_capture(&c);
    const uint64_t by_name = steps_of(trace, PROF_GROUP_NAME),
                   by_stack = steps_of(trace, PROF_GROUP_NAME | PROF_GROUP_STACK);
    print_message("%llu deep: %llu steps by name, %llu by stack\n", (unsigned long long)depth,
                  (unsigned long long)by_name, (unsigned long long)by_stack);
    assert_true(by_name > 0);
    if (by_stack > TIMES * by_name) fail_msg("more than %d times as many by stack", TIMES);
    prof_trace_destroy(trace);
    capture_end(&c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(texts_take_no_steps_for_what_is_no_frame)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
