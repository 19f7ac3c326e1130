/* Numbers with their units, at the bounds that only a damaged capture reaches. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/display.h"

static void expect_share(uint64_t part, uint64_t all, const char *expected) {
  char text[64];
  prof_i_put_share(text, sizeof text, part, all);
  assert_string_equal(text, expected);
}

static void shares_are_rounded_and_bounded(void **state) {
  (void)state;
  expect_share(0, 0, "0.00%");
  expect_share(1, 0, "0.00%");
  expect_share(1, 3, "33.33%");
  expect_share(2, 3, "66.67%");
  expect_share(7, 7, "100.00%");
  expect_share(UINT64_MAX, 10, "1000000000000000.00%");
  expect_share(UINT64_MAX, 1, "1000000000000000.00%");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(shares_are_rounded_and_bounded)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
