/* The time of a launch, of a call and a kernel whose times are made by hand. Scopes have another
   clock, so the time is converted, and the conversion may be off. */
#include <prof/backend.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka needs the four above. */
#include <cmocka.h>

#include "device/vendor.h"

enum { NUMBER = 7, BEGIN = 1000000, LENGTH = 10000, END = BEGIN + LENGTH, JUST_INSIDE = 1000 };

static prof_backend_record emitted;
static unsigned emitted_count;

static void keep_record(const void *records, size_t bytes) {
  assert_int_equal(bytes, sizeof(prof_backend_kernel));
  memcpy(&emitted, records, sizeof emitted);
  emitted_count++;
}

static const prof_backend_host host = {.size = sizeof host, .emit = keep_record};

/* The launch of a kernel that began then, and whose call was reported before it or after it. */
static uint64_t launch_of(uint64_t start, uint64_t end, uint64_t kernel_begun, int is_call_last) {
  static prof_i_launch_matcher all;
  const prof_i_launch_call call = {.number = NUMBER, .thread = 1, .start = start, .end = end};
  prof_i_launched_record it = {.record = {.size = sizeof it.kernel,
                                          .kind = PROF_BACKEND_KERNEL,
                                          .start = kernel_begun,
                                          .end = kernel_begun + 1,
                                          .correlation = NUMBER}};
  memset(&all, 0, sizeof all);
  emitted_count = 0;
  prof_i_launch_matcher_begin(&all, &host, false);
  if (!is_call_last) prof_i_launch_matcher_add_call(&all, &call);
  prof_i_launch_matcher_emit(&all, &it);
  if (is_call_last) prof_i_launch_matcher_add_call(&all, &call);
  prof_i_launch_matcher_flush(&all, true);
  free(all.waiting);
  assert_int_equal(emitted_count, 1);
  assert_true(emitted.flags & PROF_BACKEND_LAUNCH_CLOCK);
  return emitted.launch;
}

/* The scope is as long as its only call. */
static void clocks_that_differ_by_less_than_half_the_call_find_its_scope(void **state) {
  (void)state;
  for (int is_call_last = 0; is_call_last < 2; is_call_last++) {
    const uint64_t launch = launch_of(BEGIN, END, END + 500, is_call_last);
    for (int64_t error = 1 - LENGTH / 2; error < LENGTH / 2; error++) {
      const int64_t converted = (int64_t)launch + error;
      assert_true(converted > BEGIN && converted < END);
    }
  }
}

static void work_does_not_begin_before_its_launch(void **state) {
  (void)state;
  for (uint64_t begun = BEGIN + 1; begun < END + LENGTH; begun += 97) {
    const uint64_t launch = launch_of(BEGIN, END, begun, 0);
    assert_in_range(launch, BEGIN + 1, begun);
    if (begun >= BEGIN + LENGTH / 2) assert_int_equal(launch, BEGIN + LENGTH / 2);
  }
}

/* A call that waits for its work is as long as the work, which must not lose half of its time. */
static void work_that_seems_to_begin_before_a_long_call_is_moved_only_just_into_it(void **state) {
  (void)state;
  const uint64_t long_end = BEGIN + 1000 * LENGTH;
  assert_int_equal(launch_of(BEGIN, long_end, BEGIN - 300, 0), BEGIN + JUST_INSIDE);
  assert_int_equal(launch_of(BEGIN, long_end, BEGIN, 0), BEGIN + JUST_INSIDE);
  assert_int_equal(launch_of(BEGIN, BEGIN + 100, BEGIN - 300, 0), BEGIN + 50);
}

static void a_call_without_a_length_is_its_begin(void **state) {
  (void)state;
  assert_int_equal(launch_of(BEGIN, BEGIN, END, 0), BEGIN);
  assert_int_equal(launch_of(BEGIN, 0, END, 0), BEGIN);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(clocks_that_differ_by_less_than_half_the_call_find_its_scope),
      cmocka_unit_test(work_does_not_begin_before_its_launch),
      cmocka_unit_test(work_that_seems_to_begin_before_a_long_call_is_moved_only_just_into_it),
      cmocka_unit_test(a_call_without_a_length_is_its_begin),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
