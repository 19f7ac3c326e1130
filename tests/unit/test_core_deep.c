/* Scopes below the 64 that have entries in the slot, as tasks begin and end them: in any order. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <prof/profiler.h>

#include "core/thread.h"

enum { TASKS = 300, TURNS = 20000 };

static uint64_t open_tasks[TASKS];

static uint64_t next_random(void) {
  static uint64_t state = 0x9e3779b97f4a7c15u;
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

static void record_afresh(void) {
  static uint64_t number;
  const prof_options options = {
      .size = sizeof options, .level = 1, .cap_bytes = (32 + number++ % 2) << 20};
  assert_int_equal(prof_start_with(&options), PROF_OK);
}

/* All that began is recorded, but for so many. */
static void check_recorded(uint64_t begun) {
  prof_health health = {.size = sizeof health};
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(prof_health_get(&health), PROF_OK);
  assert_int_equal(health.recorded_count, begun);
  assert_int_equal(health.open_count, 0);
  assert_int_equal(health.stray_count, 0);
  for (int i = 0; i < PROF_LOSS_COUNT; i++) assert_int_equal(health.lost_count[i], 0);
}

static uint64_t begin_task(uint64_t number, int has_text) {
  const prof_arg items[] = {
      {"task", PROF_ARG_U64, 0, {.u64 = number}},
      {"text", PROF_ARG_STRING, PROF_NUL_TERMINATED, {.text = "a text that takes some room"}}};
  const prof_args args = {items, 2, PROF_ARGS_PAIRS, NULL};
  return prof_scope_begin(1, "task", "tasks", has_text ? &args : NULL);
}

static void run_block(void) {
  WITH_BASE_PROFILER(PROF_HOST, "block", "tasks", PROF_NO_ARGS, {
    WITH_BASE_PROFILER(PROF_HOST, "inner", "tasks", PROF_NO_ARGS, {});
    WITH_BASE_PROFILER(PROF_HOST, "inner", "tasks", PROF_NO_ARGS, {});
  });
}

static void entries_of_tasks_do_not_pile_up(void **state) {
  (void)state;
  for (int has_text = 0; has_text < 2; has_text++) {
    uint64_t most = 0;
    record_afresh();
    for (int i = 0; i < TASKS; i++) open_tasks[i] = begin_task((uint64_t)i, has_text);
    for (int turn = 0; turn < TURNS; turn++) {
      uint64_t *const task = &open_tasks[next_random() % TASKS];
      prof_scope_end(*task);
      *task = begin_task((uint64_t)turn, has_text);
      run_block();
      if (prof_i_this_thread->slot->deep > most) most = prof_i_this_thread->slot->deep;
    }
    assert_in_range(most, TASKS - PROF_I_OPEN_COUNT, 3 * TASKS);
    assert_int_equal(prof_i_this_thread->slot->deep - prof_i_this_thread->slot->deep_gone +
                         PROF_I_OPEN_COUNT,
                     TASKS);
    for (int i = 0; i < TASKS; i++) prof_scope_end(open_tasks[i]);
    run_block();
    check_recorded(TASKS + TURNS * 4 + 3);
  }
}

/* Another thread ends them, while this one begins others. */
static struct {
  uint64_t start[TURNS];
  uint64_t count; /* atomic */
} handed;

static void *end_handed(void *unused) {
  for (uint64_t done = 0; done < TURNS;) {
    while (done < __atomic_load_n(&handed.count, __ATOMIC_ACQUIRE))
      prof_scope_end(handed.start[done++]);
  }
  return unused;
}

static void entries_that_another_thread_ends_are_counted_once(void **state) {
  (void)state;
  pthread_t thread;
  record_afresh();
  for (int i = 0; i < TASKS; i++) open_tasks[i] = begin_task((uint64_t)i, 0);
  handed.count = 0;
  assert_int_equal(pthread_create(&thread, NULL, end_handed, NULL), 0);
  for (uint64_t turn = 0; turn < TURNS; turn++) {
    handed.start[turn] = begin_task(turn, 0);
    __atomic_store_n(&handed.count, turn + 1, __ATOMIC_RELEASE);
    if (turn % 8 == 0) run_block();
  }
  pthread_join(thread, NULL);
  run_block(); /* whose end takes off what is gone */
  assert_int_equal(prof_i_this_thread->slot->deep - prof_i_this_thread->slot->deep_gone +
                       PROF_I_OPEN_COUNT,
                   TASKS);
  for (int i = 0; i < TASKS; i++) prof_scope_end(open_tasks[i]);
  run_block();
  check_recorded(TASKS + TURNS + TURNS / 8 * 3 + 6);
}

/* It is full of open scopes' texts, without a hole. */
static void a_full_text_area_is_not_looked_through(void **state) {
  (void)state;
  enum { DEEP = 1000 };
  static uint64_t starts[DEEP];
  record_afresh();
  for (int i = 0; i < DEEP; i++) starts[i] = begin_task((uint64_t)i, 1);
  prof_scope_end(begin_task(DEEP, 1));
  for (int i = 0; i < 1000; i++) {
    prof_scope_end(begin_task((uint64_t)i, 1));
    assert_int_equal(prof_i_this_thread->hole_bytes, 0);
  }
  for (int i = DEEP; i-- > 0;) prof_scope_end(starts[i]);
  check_recorded(DEEP + 1001);
}

static prof_site nested;

/* In the order of their entries: an end need not look at them all. */
static void calls_that_nest_are_as_blocks(void **state) {
  (void)state;
  record_afresh();
  for (int i = 0; i < TASKS; i++)
    open_tasks[i] = prof_scope_begin_at(&nested, "nested", "tasks");
  run_block();
  prof_scope_end(prof_scope_begin_at(&nested, "nested", "tasks"));
  assert_int_equal(prof_i_this_thread->slot->deep, TASKS - PROF_I_OPEN_COUNT);
  assert_false(prof_i_this_thread->is_slow);
  for (int i = TASKS; i-- > 0;) prof_scope_end(open_tasks[i]);
  assert_false(prof_i_this_thread->is_slow);
  check_recorded(TASKS + 4);
}

/* A call ends that has the last of the 64 entries, and a block takes the entry over while an older
   block stands below. Its end must not end that one. */
static void a_block_that_takes_an_older_entry_ends_none_but_its_own(void **state) {
  (void)state;
  for (int with_text = 0; with_text < 2; with_text++) {
    record_afresh();
    for (int i = 0; i < PROF_I_OPEN_COUNT; i++) open_tasks[i] = begin_task((uint64_t)i, with_text);
    WITH_BASE_PROFILER(PROF_HOST, "older", "tasks", PROF_ARGS("i", with_text), {
      for (int i = PROF_I_OPEN_COUNT; i-- > PROF_I_OPEN_COUNT - 4;) prof_scope_end(open_tasks[i]);
      run_block();
      uint64_t const call = begin_task(0, with_text);
      run_block();
      prof_scope_end(call);
    });
    for (int i = PROF_I_OPEN_COUNT - 4; i-- > 0;) prof_scope_end(open_tasks[i]);
    check_recorded(PROF_I_OPEN_COUNT + 8);
  }
}

static uint64_t chunk_changes(void) {
  prof_health health = {.size = sizeof health};
  assert_int_equal(prof_health_get(&health), PROF_OK);
  return health.chunk_changes_count;
}

/* Where calls were begun and never ended, as an interpreter's are that longjmp() leaves, each scope
   looks at what stands open: that is no warm scope's cost, and is counted as it is measured. */
static void what_slow_scopes_take_is_counted(void **state) {
  (void)state;
  uint64_t before = 0, after = 0, changes;
  record_afresh();
  for (int i = 0; i < TASKS; i++) open_tasks[i] = begin_task((uint64_t)i, 0);
  for (int i = 0; i < PROF_I_OPEN_COUNT / 2; i++) prof_scope_end(open_tasks[i]);
  do {
    changes = chunk_changes();
    before = prof_i_this_thread->slot->own_ns;
    for (int i = 0; i < 100; i++) run_block();
    after = prof_i_this_thread->slot->own_ns;
  } while (chunk_changes() != changes);
  for (int i = PROF_I_OPEN_COUNT / 2; i < TASKS; i++) prof_scope_end(open_tasks[i]);
  assert_int_equal(prof_stop(), PROF_OK);
  assert_true(after > before);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(calls_that_nest_are_as_blocks),
      cmocka_unit_test(a_block_that_takes_an_older_entry_ends_none_but_its_own),
      cmocka_unit_test(what_slow_scopes_take_is_counted),
      cmocka_unit_test(entries_of_tasks_do_not_pile_up),
      cmocka_unit_test(entries_that_another_thread_ends_are_counted_once),
      cmocka_unit_test(a_full_text_area_is_not_looked_through),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
