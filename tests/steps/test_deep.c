/* Scopes below the 64 that a thread shows take a few steps more than those above, as blocks and by
   calls, for any number of open scopes. By time they take 1.5 to 2 times as long: most of that of a
   scope are two readings of the clock, which are one step each. */
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

/* ---- blocks beside tasks that end in any order ---- */

/* LOOK: at the 64 scopes shown, for their order or a gap, some times. */
enum { TASKS_MAX = 4000, TASKS_ROOM = 12000, BLOCKS = 300, LOOK = 600 };
static jmp_buf back;

static void nested_blocks(void) {
  WITH_BASE_PROFILER(PROF_HOST, "outer", "x", PROF_NO_ARGS, { block(); });
}
static void left_by_a_jump(void) {
  WITH_BASE_PROFILER(PROF_HOST, "outer", "x", PROF_NO_ARGS, {
    if (!setjmp(back)) WITH_BASE_PROFILER(PROF_HOST, "left", "x", PROF_NO_ARGS, longjmp(back, 1););
  });
}
static void left_by_a_jump_out_of_three(void) {
  WITH_BASE_PROFILER(PROF_HOST, "outer", "x", PROF_NO_ARGS, {
    if (!setjmp(back)) {
      WITH_BASE_PROFILER(PROF_HOST, "one", "x", PROF_NO_ARGS, {
        WITH_BASE_PROFILER(PROF_HOST, "two", "x", PROF_NO_ARGS, {
          block();
          longjmp(back, 1);
        });
      });
    }
  });
}

static uint64_t tasks[TASKS_ROOM];

static void end_and_begin(uint64_t count, uint64_t turns) {
  static uint64_t random = 1;
  for (uint64_t i = 0; i < turns; i++) {
    random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
    uint64_t *const task = &tasks[(random >> 33) % count];
    prof_scope_end(*task);
    *task = prof_scope_begin(1, "task", "x", NULL);
  }
}
static void begin_tasks_out_of_order(uint64_t count) {
  for (uint64_t i = 0; i < count; i++) tasks[i] = prof_scope_begin(1, "task", "x", NULL);
  end_and_begin(count, 2 * count);
}

/* With thousands open, an end mostly knows where its scope stands: a step for each of the others
   would be more. */
static void a_task_takes_few_steps_beside_many(void **state) {
  enum { MANY = TASKS_ROOM, TURNS = 4000 };
  const prof_options options = {
      .size = sizeof options, .policy = PROF_POLICY_RING, .cap_bytes = 8 << 20};
  (void)state;
  assert_int_equal(prof_start_with(&options), PROF_OK);
  begin_tasks_out_of_order(MANY);
  const uint64_t begun = steps_now;
  end_and_begin(MANY, TURNS);
  const uint64_t each = (steps_now - begun) / TURNS;
  print_message("a task beside %d: %llu steps\n", MANY, (unsigned long long)each);
  assert_in_range(each, 1, MANY);
  for (uint64_t i = 0; i < MANY; i++) prof_scope_end(tasks[i]);
  assert_int_equal(prof_stop(), PROF_OK);
}

/* Of the cheapest of some rounds. */
static uint64_t steps_beside(uint64_t count, void (*run)(void)) {
  uint64_t least = UINT64_MAX;
  begin_tasks_out_of_order(count);
  for (int round = 0; round < 10; round++) {
    const uint64_t begun = steps_now;
    for (int i = 0; i < BLOCKS; i++) run();
    const uint64_t took = steps_now - begun;
    if (took < least) least = took;
  }
  for (uint64_t i = 0; i < count; i++) prof_scope_end(tasks[i]);
  return least;
}

/* Whoever ends looks at what has begun since, not at all tasks. */
static void blocks_take_no_more_steps_beside_more_tasks(void **state) {
  static const uint64_t counts[] = {1000, TASKS_MAX};
  static void (*const kinds[])(void) = {block, nested_blocks, left_by_a_jump,
                                        left_by_a_jump_out_of_three};
  static const char *const names[] = {"a block", "two blocks", "a jump", "a jump out of three"};
  const prof_options options = {
      .size = sizeof options, .policy = PROF_POLICY_RING, .cap_bytes = 8 << 20};
  (void)state;
  assert_int_equal(prof_start_with(&options), PROF_OK);
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    const uint64_t few = steps_beside(100, kinds[k]);
    assert_true(few > 0);
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
      const uint64_t many = steps_beside(counts[c], kinds[k]);
      print_message("%s: %.1f steps beside 100 tasks, %.1f beside %llu\n", names[k],
                    (double)few / BLOCKS, (double)many / BLOCKS, (unsigned long long)counts[c]);
      if (many > few + LOOK * BLOCKS) fail_msg("more than %d steps more", LOOK);
    }
  }
  assert_int_equal(prof_stop(), PROF_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_deep_scope_takes_a_few_steps_more),
                                     cmocka_unit_test(blocks_take_no_more_steps_beside_more_tasks),
                                     cmocka_unit_test(a_task_takes_few_steps_beside_many)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
