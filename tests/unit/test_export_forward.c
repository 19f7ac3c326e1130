/* Arrows from forward to backward calls: whose they are, by numbers and threads, as Kineto draws
   them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "export/flow.h"

static prof_i_forwards forwards;
static prof_event event;

static int begin(void **state) {
  (void)state;
  event = (prof_event){.category = "cpu_op", .category_bytes = 6};
  return 0;
}

static int end(void **state) {
  (void)state;
  prof_i_forwards_fini(&forwards);
  return 0;
}

static void argue(uint32_t i, const char *key, int64_t value) {
  event.args[i] = (prof_trace_arg){
      .key = key, .key_bytes = (uint32_t)strlen(key), .type = PROF_ARG_I64, .value.i64 = value};
  event.arg_count = i + 1;
}

static void add_forward(int64_t sequence, int64_t thread, uint64_t at_ns) {
  argue(0, "Sequence number", sequence);
  argue(1, "Fwd thread id", 0);
  argue(2, "Thread id", thread);
  prof_i_forwards_add(&forwards, &event, at_ns, 1, 1, false);
}

static void add_backward(int64_t sequence, int64_t forward_thread, uint64_t at_ns) {
  event.args[0] = (prof_trace_arg){.type = PROF_ARG_TENSOR}; /* shapes stand before */
  argue(1, "Sequence number", sequence);
  argue(2, "Fwd thread id", forward_thread);
  prof_i_forwards_add(&forwards, &event, at_ns, 1, 2, false);
}

static void expect_one(uint64_t from_ns, uint64_t to_ns) {
  prof_i_forwards_match(&forwards);
  assert_int_equal(forwards.count, 2);
  assert_int_equal(forwards.items[0].start_ns, from_ns);
  assert_int_equal(forwards.items[1].start_ns, to_ns);
  assert_false(forwards.items[0].is_backward);
  assert_true(forwards.items[1].is_backward);
}

static void expect_none(void) {
  prof_i_forwards_match(&forwards);
  assert_int_equal(forwards.count, 0);
}

static void of_one_number_the_last_forward_call_has_it(void **state) {
  (void)state;
  add_backward(7, 1, 90);
  add_forward(7, 1, 10);
  add_forward(7, 1, 30);
  add_forward(7, 1, 20);
  expect_one(30, 90);
}

static void of_several_backward_calls_the_first_has_it(void **state) {
  (void)state;
  add_forward(7, 1, 10);
  add_backward(7, 1, 90);
  add_backward(7, 1, 80);
  expect_one(10, 80);
}

static void numbers_are_each_threads_own(void **state) {
  (void)state;
  add_forward(7, 1, 10);
  add_forward(7, 2, 20);
  add_forward(8, 2, 30);
  add_backward(7, 2, 90);
  expect_one(20, 90);
}

static void a_backward_call_before_its_forward_one_has_none(void **state) {
  (void)state;
  add_backward(7, 1, 5);
  add_forward(7, 1, 10);
  expect_none();
}

static void without_a_partner_there_is_none(void **state) {
  (void)state;
  add_forward(7, 1, 10);
  add_backward(8, 1, 90);
  expect_none();
}

static void only_operators_with_numbers_are_kept(void **state) {
  (void)state;
  event.category = "my_op";
  event.category_bytes = 5;
  add_forward(7, 1, 10);
  event.category = "cpu_op";
  event.category_bytes = 6;
  add_forward(-1, 1, 10);
  argue(0, "Sequence number", 7);
  argue(1, "Thread", 1);
  prof_i_forwards_add(&forwards, &event, 10, 1, 1, false);
  event.args[0].type = PROF_ARG_F64;
  argue(1, "Thread id", 1);
  prof_i_forwards_add(&forwards, &event, 10, 1, 1, false);
  assert_int_equal(forwards.count, 0);
}

static void arrows_stand_in_the_order_of_backward_calls(void **state) {
  (void)state;
  add_forward(7, 1, 10);
  add_forward(8, 1, 20);
  add_forward(3, 2, 30);
  add_backward(7, 1, 90);
  add_backward(8, 1, 70);
  add_backward(3, 2, 80);
  prof_i_forwards_match(&forwards);
  assert_int_equal(forwards.count, 6);
  const uint64_t expected_ns[] = {20, 70, 30, 80, 10, 90};
  for (size_t i = 0; i < 6; i++) assert_int_equal(forwards.items[i].start_ns, expected_ns[i]);
}

static void as_many_as_there_are(void **state) {
  (void)state;
  enum { MANY = 5000 };
  for (int64_t i = 0; i < MANY; i++) add_forward(i, 1, (uint64_t)i);
  for (int64_t i = MANY - 1; i >= 0; i--) add_backward(i, 1, (uint64_t)(3 * MANY - i));
  prof_i_forwards_match(&forwards);
  assert_int_equal(forwards.count, 2 * MANY);
}

#define FORWARD(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void) {
  const struct CMUnitTest tests[] = {
      FORWARD(of_one_number_the_last_forward_call_has_it),
      FORWARD(of_several_backward_calls_the_first_has_it),
      FORWARD(numbers_are_each_threads_own),
      FORWARD(a_backward_call_before_its_forward_one_has_none),
      FORWARD(without_a_partner_there_is_none),
      FORWARD(only_operators_with_numbers_are_kept),
      FORWARD(as_many_as_there_are),
      FORWARD(arrows_stand_in_the_order_of_backward_calls),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
