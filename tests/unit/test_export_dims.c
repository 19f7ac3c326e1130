/* Which texts may stand for inputs' dimensions in the JSON as they are: anybody can record one
   under that key. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "export/chrome.h"

static void what_says_dimensions_is_taken(void **state) {
  (void)state;
  static const struct {
    const char *text;
    uint32_t count;
    uint64_t lists;
  } cases[] = {{"[]", 0, 0},
               {"[[]]", 1, 0},
               {"[[],[]]", 2, 0},
               {"[[[2,10],[3,10]],[],[4]]", 3, 1},
               {"[[1,2],[[]]]", 2, 2},
               {"[[0],[-1,10]]", 2, 0},
               {"[[[],[5]],[[6]]]", 2, 3},
               {"[[9223372036854775807]]", 1, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint64_t lists = UINT64_MAX;
    print_message("%s\n", cases[i].text);
    assert_true(prof_i_dims_check(cases[i].text, strlen(cases[i].text), cases[i].count, &lists));
    assert_int_equal(lists, cases[i].lists);
  }
}

static void any_other_text_is_not(void **state) {
  (void)state;
  static const struct {
    const char *text;
    uint32_t count;
  } cases[] = {
      {"", 0},          {"[", 0},          {"]", 0},         {"[]]", 0},           {"[][]", 0},
      {"[],", 0},       {"[,]", 0},        {"[[],]", 1},     {"[[1,]]", 1},        {"[[,1]]", 1},
      {"[[1 ]]", 1},    {"[[01]]", 1},     {"[[-]]", 1},     {"[[1-2]]", 1},       {"[[1.5]]", 1},
      {"[[1e3]]", 1},   {"[1]", 0},        {"[1]", 1},       {"[[1][2]]", 2},      {"[[1],2]", 2},
      {"[[1,[2]]]", 1}, {"[[[2],1]]", 1},  {"[[[[1]]]]", 1}, {"[[1]]", 2},         {"[[1],[2]]", 1},
      {"[[1]", 1},      {"[[1", 1},        {"[\"a\"]", 1},   {"[[1]],\"x\":[", 1}, {"null", 0},
      {"[[1]]}", 1},    {"[[[1]],[[2]", 2}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint64_t lists;
    print_message("%s\n", cases[i].text);
    assert_false(prof_i_dims_check(cases[i].text, strlen(cases[i].text), cases[i].count, &lists));
  }
}

static void more_inputs_than_bits_are_not(void **state) {
  (void)state;
  char text[3 * 65 + 2] = "[";
  uint64_t lists;
  for (int i = 0; i < 64; i++) strcat(text, i ? ",[]" : "[]");
  strcat(text, "]");
  assert_true(prof_i_dims_check(text, strlen(text), 64, &lists));
  text[strlen(text) - 1] = '\0';
  strcat(text, ",[]]");
  assert_false(prof_i_dims_check(text, strlen(text), 65, &lists));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_says_dimensions_is_taken),
      cmocka_unit_test(any_other_text_is_not),
      cmocka_unit_test(more_inputs_than_bits_are_not),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
