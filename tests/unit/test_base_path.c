/* Paths with places to fill in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <prof/status.h>

#include "base/text.h"

static void check(const char *pattern, const char *expected) {
  const prof_i_path_words words = {4711, 3, "node/7"};
  char to[64];
  assert_int_equal(prof_i_expand_path(pattern, &words, to, sizeof to), PROF_OK);
  assert_string_equal(to, expected);
}

static void places_are_filled_in(void **state) {
  (void)state;
  check("", "");
  check("trace.json", "trace.json");
  check("%p", "4711");
  check("/a/%h-%p.%r.json", "/a/node_7-4711.3.json");
  check("%%p%%", "%p%");
}

static void other_percent_signs_stay(void **state) {
  (void)state;
  check("50%", "50%");
  check("50%.json", "50%.json");
  check("%d%s%n", "%d%s%n");
}

static void an_unknown_rank_is_zero(void **state) {
  (void)state;
  const prof_i_path_words words = {1, -1, "h"};
  char to[8];
  assert_int_equal(prof_i_expand_path("%r", &words, to, sizeof to), PROF_OK);
  assert_string_equal(to, "0");
}

static void what_does_not_fit_is_refused(void **state) {
  (void)state;
  const prof_i_path_words words = {123456, 0, "h"};
  char to[8] = "x";
  assert_int_equal(prof_i_expand_path("1234567", &words, to, sizeof to), PROF_OK);
  assert_string_equal(to, "1234567");
  assert_int_equal(prof_i_expand_path("12345678", &words, to, sizeof to), PROF_E_INVALID);
  assert_string_equal(to, "");
  assert_int_equal(prof_i_expand_path("ab%p", &words, to, sizeof to), PROF_E_INVALID);
  assert_non_null(strstr(prof_last_error(), "7 bytes"));
}

static void a_place_is_not_a_doubled_percent_sign(void **state) {
  (void)state;
  assert_true(prof_i_path_has("a-%p.json", 'p'));
  assert_true(prof_i_path_has("%%%p", 'p'));
  assert_true(prof_i_path_has("%h%p", 'p'));
  assert_false(prof_i_path_has("%%p", 'p'));
  assert_false(prof_i_path_has("%h-100%", 'p'));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(places_are_filled_in),
      cmocka_unit_test(other_percent_signs_stay),
      cmocka_unit_test(an_unknown_rank_is_zero),
      cmocka_unit_test(what_does_not_fit_is_refused),
      cmocka_unit_test(a_place_is_not_a_doubled_percent_sign),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
