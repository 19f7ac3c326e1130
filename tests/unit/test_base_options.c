/* The sized struct's rule, and what options are made complete with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/options.h"
#include "format/layout.h"

typedef struct sample {
  size_t size;
  uint32_t first, second;
} sample;

static void a_smaller_struct_gets_zeros(void **state) {
  (void)state;
  const sample given = {12, 7, 8};
  sample to = {99, 99, 99};
  assert_int_equal(prof_i_sized_copy(&to, sizeof to, &given, "sample"), PROF_OK);
  assert_int_equal(to.size, sizeof to); /* the copy is complete */
  assert_int_equal(to.first, 7);
  assert_int_equal(to.second, 0);
}

static void a_larger_struct_must_end_in_zeros(void **state) {
  (void)state;
  struct {
    sample known;
    uint32_t unknown[4];
  } given = {{sizeof given, 1, 2}, {0, 0, 0, 0}};
  sample to = {0, 0, 0};
  assert_int_equal(prof_i_sized_copy(&to, sizeof to, &given, "sample"), PROF_OK);
  assert_int_equal(to.second, 2);
  for (size_t i = 0; i < sizeof given.unknown; i++) {
    sample untouched = {5, 6, 7};
    memset(given.unknown, 0, sizeof given.unknown);
    ((char *)given.unknown)[i] = 1;
    assert_int_equal(prof_i_sized_copy(&untouched, sizeof untouched, &given, "sample"),
                     PROF_E_INVALID);
    assert_int_equal(untouched.first, 6);
    assert_non_null(strstr(prof_last_error(), "sample"));
  }
}

static void sizes_that_no_version_has_are_refused(void **state) {
  (void)state;
  static const size_t sizes[] = {0, 1, sizeof(size_t) - 1, 4097, SIZE_MAX};
  sample given = {0, 1, 2}, to = {5, 6, 7};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    given.size = sizes[i];
    assert_int_equal(prof_i_sized_copy(&to, sizeof to, &given, "sample"), PROF_E_INVALID);
    assert_int_equal(to.first, 6);
  }
}

static prof_options complete(prof_options options) {
  options.size = sizeof options;
  assert_int_equal(prof_i_options_complete(&options), PROF_OK);
  return options;
}

static void zero_means_the_default_for_every_field(void **state) {
  (void)state;
  const prof_options memory = complete((prof_options){.level = 0}),
                     file = complete((prof_options){.path = "x"});
  assert_int_equal(memory.level, 1);
  assert_int_equal(memory.policy, PROF_POLICY_KEEP);
  assert_in_range(memory.cap_bytes, 1 << 20, 256 << 20);
  assert_int_equal(file.policy, PROF_POLICY_STREAM);
  assert_int_equal(file.cap_bytes, 4ull << 30);
  assert_int_equal(complete((prof_options){.path = "x", .policy = PROF_POLICY_RING}).policy,
                   PROF_POLICY_RING);
}

static void the_cap_is_whole_units_within_its_bounds(void **state) {
  (void)state;
  static const uint64_t good[] = {1ull << 20, (1ull << 20) + 1, 12345678, 1ull << 40};
  static const uint64_t bad[] = {1, (1ull << 20) - 1, (1ull << 40) + 1, UINT64_MAX};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    const uint64_t cap = complete((prof_options){.cap_bytes = good[i]}).cap_bytes;
    assert_int_equal(cap % PROF_I_UNIT_BYTES, 0);
    assert_in_range(cap, good[i] - PROF_I_UNIT_BYTES + 1, good[i]);
  }
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    prof_options options = {.size = sizeof options, .cap_bytes = bad[i]};
    assert_int_equal(prof_i_options_complete(&options), PROF_E_INVALID);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_smaller_struct_gets_zeros),
      cmocka_unit_test(a_larger_struct_must_end_in_zeros),
      cmocka_unit_test(sizes_that_no_version_has_are_refused),
      cmocka_unit_test(zero_means_the_default_for_every_field),
      cmocka_unit_test(the_cap_is_whole_units_within_its_bounds),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
