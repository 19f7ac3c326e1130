/* The self-check: it must be silent on what nests and speak of what does not, in whatever order
   parents and children come. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "export/self_check.h"

static prof_i_self_check check;

static int begin(void **state) {
  (void)state;
  prof_i_self_check_init(&check, 1000);
  return 0;
}

static void look(uint64_t start_ns, uint64_t end_ns, uint16_t depth, uint8_t lane) {
  const prof_i_span span = {.start_ns = start_ns,
                            .duration_ns = end_ns - start_ns,
                            .depth = depth,
                            .lane = lane,
                            .kind = PROF_EVENT_SCOPE};
  prof_i_self_check_scope(&check, &span);
}

static void expect(prof_i_finding finding, uint64_t count) {
  prof_i_self_check_next_thread(&check);
  for (int i = 0; i < PROF_I_FINDING_COUNT; i++) {
    const uint64_t expected = i == (int)finding ? count : 0;
    if (check.findings.counts[i] != expected)
      fail_msg("%s: %llu, not %llu", prof_i_finding_word(i),
               (unsigned long long)check.findings.counts[i], (unsigned long long)expected);
  }
}

static void expect_nothing(void) { expect(PROF_I_FINDING_COUNT, 0); }

static void children_before_their_parents_are_fine(void **state) {
  (void)state;
  look(90, 95, 2, 0);
  look(80, 95, 1, 0);
  look(60, 70, 1, 0);
  look(50, 100, 0, 0);
  look(40, 50, 1, 0);
  look(10, 50, 0, 0);
  expect_nothing();
}

static void parents_before_their_children_are_fine(void **state) {
  (void)state;
  look(50, 100, 0, 0);
  look(80, 95, 1, 0);
  look(90, 95, 2, 0);
  look(60, 70, 1, 0);
  look(10, 50, 0, 0);
  look(10, 50, 1, 0);
  expect_nothing();
}

static void scopes_without_length_are_fine(void **state) {
  (void)state;
  look(50, 50, 1, 0);
  look(50, 50, 1, 0);
  look(50, 60, 0, 0);
  look(50, 50, 0, 0);
  expect_nothing();
}

static void a_child_that_ends_after_its_parent_is_a_fault(void **state) {
  (void)state;
  look(60, 101, 1, 0);
  look(50, 100, 0, 0);
  expect(PROF_I_FINDING_OVERLAPPING, 1);
}

static void a_child_that_begins_before_its_parent_is_a_fault(void **state) {
  (void)state;
  look(50, 100, 0, 0);
  look(49, 60, 1, 0);
  expect(PROF_I_FINDING_OVERLAPPING, 1);
}

static void siblings_that_cross_are_a_fault(void **state) {
  (void)state;
  look(50, 100, 0, 0);
  look(40, 51, 0, 0);
  expect(PROF_I_FINDING_OVERLAPPING, 1);
}

static void a_child_without_a_parent_is_a_fault(void **state) {
  (void)state;
  look(50, 100, 0, 0);
  look(20, 30, 1, 0);
  expect(PROF_I_FINDING_OVERLAPPING, 1);
}

static void threads_do_not_meet(void **state) {
  (void)state;
  look(50, 100, 0, 0);
  prof_i_self_check_next_thread(&check);
  look(60, 110, 0, 0);
  expect_nothing();
}

static void lanes_are_checked_by_themselves(void **state) {
  (void)state;
  look(50, 100, 0, 0);
  look(60, 110, 0, 1);
  look(65, 120, 0, 2);
  look(40, 61, 0, 1);
  expect(PROF_I_FINDING_OVERLAPPING, 1);
}

static void what_ends_before_it_begins_is_a_fault(void **state) {
  (void)state;
  const prof_i_span span = {
      .start_ns = 100, .duration_ns = UINT64_MAX - 10, .kind = PROF_EVENT_SCOPE};
  prof_i_self_check_scope(&check, &span);
  expect(PROF_I_FINDING_REVERSED, 1);
}

static void what_ends_after_the_capture_is_a_fault(void **state) {
  (void)state;
  look(100, 1000, 0, 0);
  look(50, 100, 0, 0);
  expect_nothing();
  look(100, 1001, 0, 0);
  expect(PROF_I_FINDING_OUTSIDE, 1);
}

static void what_is_deeper_than_viewers_show_is_no_fault_but_counted(void **state) {
  (void)state;
  look(10, 20, 511, 0);
  prof_i_self_check_next_thread(&check);
  check.findings.counts[PROF_I_FINDING_OVERLAPPING] = 0; /* it has no parent here */
  look(10, 20, 512, 0);
  look(10, 20, 65535, 0);
  expect(PROF_I_FINDING_TOO_DEEP, 2);
  assert_int_equal(prof_i_findings_faults(&check.findings), 0);
}

static void the_text_names_the_faults_alone(void **state) {
  (void)state;
  prof_i_findings findings = {{0}};
  char text[256], small[12];
  prof_i_findings_text(&findings, text, sizeof text);
  assert_string_equal(text, "");
  findings.counts[PROF_I_FINDING_UNNAMED] = 7;
  findings.counts[PROF_I_FINDING_REVERSED] = 2;
  findings.counts[PROF_I_FINDING_UNREADABLE] = 1;
  prof_i_findings_text(&findings, text, sizeof text);
  assert_string_equal(
      text, "2 x ends before it begins, 1 x records or chunks of the capture could not be read");
  prof_i_findings_text(&findings, small, sizeof small);
  assert_string_equal(small, "2 x ends be");
  assert_int_equal(prof_i_findings_faults(&findings), 3);
}

#define CHECK(test) cmocka_unit_test_setup(test, begin)

int main(void) {
  const struct CMUnitTest tests[] = {
      CHECK(children_before_their_parents_are_fine),
      CHECK(parents_before_their_children_are_fine),
      CHECK(scopes_without_length_are_fine),
      CHECK(a_child_that_ends_after_its_parent_is_a_fault),
      CHECK(a_child_that_begins_before_its_parent_is_a_fault),
      CHECK(siblings_that_cross_are_a_fault),
      CHECK(a_child_without_a_parent_is_a_fault),
      CHECK(threads_do_not_meet),
      CHECK(lanes_are_checked_by_themselves),
      CHECK(what_ends_before_it_begins_is_a_fault),
      CHECK(what_ends_after_the_capture_is_a_fault),
      CHECK(what_is_deeper_than_viewers_show_is_no_fault_but_counted),
      CHECK(the_text_names_the_faults_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
