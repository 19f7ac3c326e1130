/* Scopes below the 64 that a thread shows take a few steps more than those above, as blocks and by
   calls, however many stand open. By time they take 1.5 to 2 times as long: most of that of a scope
   are two readings of the clock, which are one step each. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <prof/profiler.h>

#include "count_steps.h"

enum { SCOPES = 1000, MORE = 110, DEPTH_MAX = 1000 };

static void block(void) { WITH_BASE_PROFILER(PROF_HOST, "block", "x", PROF_NO_ARGS, {}); }
static void by_call(void) { prof_scope_end(prof_scope_begin(1, "by call", "x", NULL)); }
static void at_site(void) {
  static prof_site site;
  prof_scope_end(prof_scope_begin_at(&site, "at a site", "x"));
}

/* Of the cheapest of some rounds: chunks change now and then. */
static uint64_t steps_at(uint64_t depth, void (*run)(void)) {
  static uint64_t open[DEPTH_MAX];
  uint64_t least = UINT64_MAX;
  for (uint64_t i = 0; i < depth; i++) open[i] = prof_scope_begin(1, "around", "x", NULL);
  for (int round = 0; round < 10; round++) {
    const uint64_t begun = steps_now;
    for (int i = 0; i < SCOPES; i++) run();
    const uint64_t took = steps_now - begun;
    if (took < least) least = took;
  }
  for (uint64_t i = depth; i-- > 0;) prof_scope_end(open[i]);
  return least;
}

static void a_deep_scope_takes_a_few_steps_more(void **state) {
  static const uint64_t depths[] = {65, 100, 300, DEPTH_MAX};
  static void (*const kinds[])(void) = {block, by_call, at_site};
  static const char *const names[] = {"block", "by call", "at a site"};
  const prof_options options = {
      .size = sizeof options, .policy = PROF_POLICY_RING, .cap_bytes = 8 << 20};
  (void)state;
  assert_int_equal(prof_start_with(&options), PROF_OK);
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    const uint64_t shown = steps_at(10, kinds[k]);
    assert_true(shown > 0);
    for (size_t d = 0; d < sizeof depths / sizeof *depths; d++) {
      const uint64_t deep = steps_at(depths[d], kinds[k]);
      print_message("%s: %.1f steps at 10, %.1f at %llu\n", names[k], (double)shown / SCOPES,
                    (double)deep / SCOPES, (unsigned long long)depths[d]);
      if (deep > shown + MORE * SCOPES) fail_msg("more than %d steps more", MORE);
    }
  }
  assert_int_equal(prof_stop(), PROF_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_deep_scope_takes_a_few_steps_more)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
