/* Arrows: those with both ends, in the right order, are kept; ends outside of scopes are known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "export/flow.h"

static prof_i_flows flows;
static size_t outside, alone;

static int begin(void **state) {
  (void)state;
  prof_i_flows_init(&flows);
  return 0;
}

static int end(void **state) {
  (void)state;
  prof_i_flows_fini(&flows);
  return 0;
}

/* An end in a scope of depth `depth` - 1. */
static void add(uint64_t id, uint64_t at_ns, uint16_t depth, bool is_end) {
  const prof_i_flow flow = {.id = id, .start_ns = at_ns, .depth = depth, .is_end = is_end};
  assert_true(prof_i_flows_add(&flows, &flow));
}

static void add_inside(uint64_t id, uint64_t at_ns, bool is_end) {
  add(id, at_ns, 1, is_end);
  prof_i_flows_bind(&flows, 0, 0, 1000);
}

static void expect(size_t kept, size_t expected_outside, size_t expected_alone) {
  prof_i_flows_next_thread(&flows);
  prof_i_flows_match(&flows, &outside, &alone);
  assert_int_equal(flows.count, kept);
  assert_int_equal(outside, expected_outside);
  assert_int_equal(alone, expected_alone);
  for (size_t i = 0; i < kept; i += 2) {
    assert_int_equal(flows.items[i].id, flows.items[i + 1].id);
    assert_false(flows.items[i].is_end);
    assert_true(flows.items[i + 1].is_end);
    assert_true(flows.items[i].start_ns <= flows.items[i + 1].start_ns);
  }
}

static void both_ends_make_an_arrow_in_whatever_order_they_come(void **state) {
  (void)state;
  add_inside(2, 30, true);
  add_inside(1, 20, true);
  add_inside(1, 10, false);
  add_inside(2, 5, false);
  expect(4, 0, 0);
}

static void an_id_may_come_again_after_its_end(void **state) {
  (void)state;
  for (uint64_t i = 0; i < 10; i++) {
    add_inside(7, 10 * i, false);
    add_inside(7, 10 * i + 5, true);
  }
  expect(20, 0, 0);
}

static void an_end_without_a_partner_is_left_out(void **state) {
  (void)state;
  add_inside(1, 10, false);
  add_inside(2, 10, true);
  add_inside(3, 10, true); /* before its beginning */
  add_inside(3, 20, false);
  add_inside(4, 10, false);
  add_inside(4, 11, false);
  add_inside(4, 12, true);
  expect(2, 0, 5);
}

static void an_end_in_no_scope_is_kept_and_known(void **state) {
  (void)state;
  add(1, 10, 0, false);
  add_inside(1, 20, true);
  add_inside(2, 20, false);
  add(2, 1000, 0, true);
  add(3, 1010, 0, false);
  add(3, 1020, 0, true);
  expect(6, 4, 0);
  const bool held[] = {false, true, true, false, false, false};
  for (size_t i = 0; i < 6; i++) assert_int_equal(flows.items[i].is_held, held[i]);
}

static void an_end_in_no_scope_keeps_its_time(void **state) {
  (void)state;
  add(1, 200, 2, false);
  prof_i_flows_bind(&flows, 0, 100, 200);
  add_inside(1, 600, true);
  expect(2, 1, 0);
  assert_int_equal(flows.items[0].start_ns, 200);
}

static void an_end_whose_scope_was_not_written_is_in_none(void **state) {
  (void)state;
  add(1, 500, 2, false);
  prof_i_flows_bind(&flows, 0, 100, 200); /* an earlier one of no concern */
  add_inside(1, 600, true);
  expect(2, 1, 0);
}

static void inner_scopes_take_their_own(void **state) {
  (void)state;
  add(1, 80, 1, true);  /* in the outer one, after the inner one */
  add(1, 50, 2, false); /* in the inner one */
  prof_i_flows_bind(&flows, 1, 40, 60);
  prof_i_flows_bind(&flows, 0, 10, 90);
  expect(2, 0, 0);
}

/* Readers take a scope for over at its last moment. */
static void an_end_at_the_scopes_last_moment_moves_inside(void **state) {
  (void)state;
  add(1, 50, 1, false);
  prof_i_flows_bind(&flows, 0, 40, 50);
  add(1, 60, 1, true);
  prof_i_flows_bind(&flows, 0, 60, 70);
  expect(2, 0, 0);
  assert_int_equal(flows.items[0].start_ns, 49);
  assert_int_equal(flows.items[1].start_ns, 60);
}

static void a_scope_without_length_holds_nothing(void **state) {
  (void)state;
  add(1, 50, 1, false);
  prof_i_flows_bind(&flows, 0, 50, 50);
  add_inside(1, 600, true);
  expect(2, 1, 0);
}

static void past_the_bound_ends_are_refused(void **state) {
  (void)state;
  const prof_i_flow flow = {.depth = 0};
  for (size_t i = 0; i < PROF_I_FLOWS_MAX; i++) assert_true(prof_i_flows_add(&flows, &flow));
  assert_false(prof_i_flows_add(&flows, &flow));
  expect(0, 0, PROF_I_FLOWS_MAX);
}

#define FLOW(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void) {
  const struct CMUnitTest tests[] = {
      FLOW(both_ends_make_an_arrow_in_whatever_order_they_come),
      FLOW(an_id_may_come_again_after_its_end),
      FLOW(an_end_without_a_partner_is_left_out),
      FLOW(an_end_in_no_scope_is_kept_and_known),
      FLOW(an_end_in_no_scope_keeps_its_time),
      FLOW(an_end_whose_scope_was_not_written_is_in_none),
      FLOW(inner_scopes_take_their_own),
      FLOW(an_end_at_the_scopes_last_moment_moves_inside),
      FLOW(a_scope_without_length_holds_nothing),
      FLOW(past_the_bound_ends_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
