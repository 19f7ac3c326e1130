/* Scopes below the 64 that have entries in the slot, as tasks begin and end them: in any order. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <prof/profiler.h>

#include "core/buffer/thread.h"
#include "fault/support/skip.h"

/* Under a sanitizer a turn takes 20 times as long, and shows the same. */
enum {
  TASKS = 300,
  TURNS = SKIP_SANITIZED ? 2000 : 20000,
  MOVE_TURNS = SKIP_SANITIZED ? 800 : 4000
};
enum { AHEAD = 16 };

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
    assert_int_equal(
        prof_i_this_thread->slot->deep - prof_i_this_thread->slot->deep_gone + PROF_I_OPEN_COUNT,
        TASKS);
    for (int i = 0; i < TASKS; i++) prof_scope_end(open_tasks[i]);
    run_block();
    check_recorded(TASKS + TURNS * 4 + 3);
  }
}

/* Another thread ends them, while this one begins others. */
static struct {
  uint64_t start[TURNS];
  uint64_t all;
  uint64_t count; /* atomic */
  uint64_t ended; /* atomic */
} handed;

static void *end_handed(void *unused) {
  for (uint64_t done = 0; done < handed.all;) {
    while (done < __atomic_load_n(&handed.count, __ATOMIC_ACQUIRE)) {
      prof_scope_end(handed.start[done++]);
      __atomic_store_n(&handed.ended, done, __ATOMIC_RELEASE);
    }
  }
  return unused;
}

static void entries_that_another_thread_ends_are_counted_once(void **state) {
  (void)state;
  pthread_t thread;
  record_afresh();
  for (int i = 0; i < TASKS; i++) open_tasks[i] = begin_task((uint64_t)i, 0);
  handed.count = 0;
  handed.all = TURNS;
  assert_int_equal(pthread_create(&thread, NULL, end_handed, NULL), 0);
  for (uint64_t turn = 0; turn < TURNS; turn++) {
    handed.start[turn] = begin_task(turn, 0);
    __atomic_store_n(&handed.count, turn + 1, __ATOMIC_RELEASE);
    if (turn % 8 == 0) run_block();
  }
  pthread_join(thread, NULL);
  run_block(); /* its end takes off what is gone */
  assert_int_equal(
      prof_i_this_thread->slot->deep - prof_i_this_thread->slot->deep_gone + PROF_I_OPEN_COUNT,
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
  for (int i = 0; i < TASKS; i++) open_tasks[i] = prof_scope_begin_at(&nested, "nested", "tasks");
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

static uint64_t entries_in_use(void) {
  const prof_i_thread_slot *const slot = prof_i_this_thread->slot;
  return slot->depth + slot->deep - slot->deep_gone;
}

/* Not while a window is open, for a few scopes (cost_sample.h). Returns how many it has run. */
static uint64_t check_fast_path(void) {
  uint64_t count = 0;
  for (; prof_i_this_thread->timing.events_left; count++)
    WITH_BASE_PROFILER(PROF_HOST, "timed", "tasks", PROF_NO_ARGS, {});
  assert_ptr_equal(prof_i_this_thread->fast, prof_i_this_thread->slot);
  return count;
}

/* As a queue of jobs is filled: each is begun inside a block, which ends before it. The block
   leaves no gap: with few open the next scope takes the fast path, with more it need not search. */
static void tasks_begun_inside_blocks_leave_no_gaps(void **state) {
  (void)state;
  const int counts[] = {1, 31, 32, 63, 64, 65, TASKS};
  for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
    const int count = counts[c];
    for (int with_text = 0; with_text < 2; with_text++) {
      uint64_t timed = 0;
      record_afresh();
      WITH_BASE_PROFILER(PROF_HOST, "program", "tasks", PROF_NO_ARGS, {
        for (int i = 0; i < count; i++)
          WITH_BASE_PROFILER(PROF_HOST, "submit", "tasks", PROF_ARGS("i", i),
                             { open_tasks[i] = begin_task((uint64_t)i, with_text); });
        run_block();
        assert_int_equal(entries_in_use(), count + 1);
        assert_false(prof_i_this_thread->is_slow);
        if (count < PROF_I_OPEN_COUNT - 1) timed = check_fast_path();
        assert_int_equal(prof_i_this_thread->slot->depth,
                         count < PROF_I_OPEN_COUNT ? count + 1 : PROF_I_OPEN_COUNT);
      });
      assert_int_equal(entries_in_use(), count); /* none is behind the gap of the outer block */
      assert_false(prof_i_this_thread->is_slow);
      for (int i = 0; i < count; i++) prof_scope_end(open_tasks[i]);
      run_block();
      check_recorded((uint64_t)count * 2 + 7 + timed);
    }
  }
}

/* Scopes begun by call that a jump leaves stay open for good. They cost later scopes nothing. */
static void calls_that_jumps_leave_leave_no_gaps(void **state) {
  (void)state;
  static jmp_buf back;
  enum { JUMPS = 40 };
  record_afresh();
  for (int i = 0; i < JUMPS; i++) {
    WITH_BASE_PROFILER(PROF_HOST, "outer", "tasks", PROF_NO_ARGS, {
      if (!setjmp(back)) {
        open_tasks[i] = begin_task((uint64_t)i, 0);
        WITH_BASE_PROFILER(PROF_HOST, "left", "tasks", PROF_NO_ARGS, { longjmp(back, 1); });
      }
    });
  }
  run_block();
  assert_int_equal(prof_i_this_thread->slot->depth, JUMPS);
  const uint64_t timed = check_fast_path();
  for (int i = 0; i < JUMPS; i++) prof_scope_end(open_tasks[i]);
  check_recorded(JUMPS * 3 + 3 + timed);
}

/* Another thread ends scopes while the ends of blocks move them: never far behind, so that it is at
   those that move. */
static void moved_entries_are_found_by_other_threads(void **state) {
  (void)state;
  pthread_t thread;
  for (int kept = 0; kept < TASKS; kept += TASKS / 3) { /* they stand in the slot, or below */
    record_afresh();
    for (int i = 0; i < kept; i++) open_tasks[i] = begin_task((uint64_t)i, 0);
    handed.count = handed.ended = 0;
    handed.all = MOVE_TURNS;
    assert_int_equal(pthread_create(&thread, NULL, end_handed, NULL), 0);
    for (uint64_t turn = 0; turn < MOVE_TURNS;) {
      while (turn > __atomic_load_n(&handed.ended, __ATOMIC_ACQUIRE) + AHEAD) sched_yield();
      WITH_BASE_PROFILER(PROF_HOST, "outer", "tasks", PROF_NO_ARGS, {
        for (int i = 0; i < 8; i++, turn++)
          WITH_BASE_PROFILER(PROF_HOST, "submit", "tasks", PROF_NO_ARGS, {
            handed.start[turn] = begin_task(turn, i % 2);
            __atomic_store_n(&handed.count, turn + 1, __ATOMIC_RELEASE);
          });
      });
    }
    pthread_join(thread, NULL);
    run_block();
    for (int i = 0; i < kept; i++) prof_scope_end(open_tasks[i]);
    run_block();
    check_recorded((uint64_t)kept + MOVE_TURNS * 2 + MOVE_TURNS / 8 + 6);
  }
}

/* What a reader counts as open while entries move: an open scope is never missed, nor seen
   twice. */
static uint64_t reader_stops; /* atomic */
static void *count_open(void *tasks) {
  const uint64_t least = *(const uint64_t *)tasks;
  uint64_t bad = 0;
  while (!__atomic_load_n(&reader_stops, __ATOMIC_ACQUIRE)) {
    prof_health health = {.size = sizeof health};
    prof_health_get(&health);
    bad += health.open_count < least || health.open_count > least + 4;
  }
  return (void *)(uintptr_t)bad;
}

static void moved_entries_are_counted_once(void **state) {
  (void)state;
  enum { MOVED = 30 };
  pthread_t thread;
  const uint64_t least = MOVED;
  void *bad = NULL;
  record_afresh();
  for (int i = 0; i < MOVED; i++) open_tasks[i] = begin_task((uint64_t)i, 0);
  reader_stops = 0;
  assert_int_equal(pthread_create(&thread, NULL, count_open, (void *)(uintptr_t)&least), 0);
  for (uint64_t turn = 0; turn < MOVE_TURNS; turn++) {
    uint64_t task = 0;
    WITH_BASE_PROFILER(PROF_HOST, "outer", "tasks", PROF_NO_ARGS, {
      WITH_BASE_PROFILER(PROF_HOST, "submit", "tasks", PROF_NO_ARGS,
                         { task = begin_task(turn, 0); });
    });
    prof_scope_end(task);
  }
  __atomic_store_n(&reader_stops, 1, __ATOMIC_RELEASE);
  pthread_join(thread, &bad);
  assert_null(bad);
  for (int i = 0; i < MOVED; i++) prof_scope_end(open_tasks[i]);
  check_recorded(MOVED + MOVE_TURNS * 3);
}

/* Tasks that have ended in any order: their thread is slow, and stays so. */
static void begin_tasks_out_of_order(int count, int with_text) {
  for (int i = 0; i < count; i++) open_tasks[i] = begin_task((uint64_t)i, with_text);
  for (int i = 0; i < count * 2; i++) {
    uint64_t *const task = &open_tasks[next_random() % (uint64_t)count];
    prof_scope_end(*task);
    *task = begin_task((uint64_t)i, with_text);
  }
  assert_true(prof_i_this_thread->is_slow);
}

/* A handler may have interrupted a begin that has seen room for one. */
static void a_block_beside_tasks_gives_back_the_last_entry(void **state) {
  (void)state;
  const prof_i_thread_slot *slot;
  record_afresh();
  begin_tasks_out_of_order(PROF_I_OPEN_COUNT, 0);
  slot = prof_i_this_thread->slot;
  for (int i = 0; i < PROF_I_OPEN_COUNT && slot->depth == PROF_I_OPEN_COUNT; i++) {
    const uint64_t last = slot->open[PROF_I_OPEN_COUNT].ticks;
    if (open_tasks[i] >> 4 != last >> 4) continue;
    prof_scope_end(open_tasks[i]);
    open_tasks[i] = 0;
  }
  assert_int_equal(slot->depth, PROF_I_OPEN_COUNT - 1);
  for (int i = 0; i < 40; i++) {
    WITH_BASE_PROFILER(PROF_HOST, "block", "tasks", PROF_NO_ARGS, {});
    assert_int_equal(slot->depth, PROF_I_OPEN_COUNT - 1);
  }
  assert_true(prof_i_this_thread->is_slow);
  for (int i = 0; i < PROF_I_OPEN_COUNT; i++)
    if (open_tasks[i]) prof_scope_end(open_tasks[i]);
  check_recorded(PROF_I_OPEN_COUNT * 3 + 40);
}

static jmp_buf left_from;

static __attribute__((noinline)) void leave_one(void) {
  WITH_BASE_PROFILER(PROF_HOST, "left", "tasks", PROF_NO_ARGS, { longjmp(left_from, 1); });
}
static __attribute__((noinline)) void leave_two(void) {
  WITH_BASE_PROFILER(PROF_HOST, "left", "tasks", PROF_NO_ARGS, { leave_one(); });
}

static __attribute__((noinline)) void jump_out_of(void (*leave)(void)) {
  if (!setjmp(left_from)) leave();
}

/* Is the last block known? Only where no other stands that began after it. */
static void blocks_that_jumps_leave_beside_tasks_end_with_the_one_around_them(void **state) {
  (void)state;
  enum { LEFT = 2, AROUND = 40 };
  for (int with_text = 0; with_text < 2; with_text++)
    for (int count = PROF_I_OPEN_COUNT + 1; count <= TASKS;
         count += TASKS - PROF_I_OPEN_COUNT - 1) {
      record_afresh();
      begin_tasks_out_of_order(count, with_text);
      for (int turn = 0; turn < AROUND; turn++)
        WITH_BASE_PROFILER(PROF_HOST, "outer", "tasks", PROF_NO_ARGS, {
          run_block();
          jump_out_of(leave_two);
          if (turn % 2) run_block();
        });
      assert_int_equal(entries_in_use(), count);
      for (int i = 0; i < count; i++) prof_scope_end(open_tasks[i]);
      check_recorded((uint64_t)count * 3 + AROUND * (1 + 3 + LEFT) + AROUND / 2 * 3);
    }
}

/* What the slow way knows of the last block is of no use once the fast path has begun others. */
static void what_is_known_of_the_last_block_does_not_outlive_the_fast_path(void **state) {
  (void)state;
  record_afresh();
  /* Sites are new to a capture once. */
  WITH_BASE_PROFILER(PROF_HOST, "first", "tasks", PROF_NO_ARGS, { jump_out_of(leave_one); });
  begin_tasks_out_of_order(PROF_I_OPEN_COUNT, 0);
  prof_scope_end(open_tasks[0]); /* the block takes its entry */
  WITH_BASE_PROFILER(PROF_HOST, "outer", "tasks", PROF_NO_ARGS, {
    for (int i = 1; i < PROF_I_OPEN_COUNT; i++) prof_scope_end(open_tasks[i]);
    for (int i = 0; i < 40; i++) prof_scope_end(begin_task(0, 0)); /* until prof checks it */
    assert_false(prof_i_this_thread->is_slow);
    jump_out_of(leave_one);
    prof_i_thread_set_slow(prof_i_this_thread, true);
  });
  assert_int_equal(entries_in_use(), 0);
  check_recorded(2 + PROF_I_OPEN_COUNT * 3 + 42);
}

static uint64_t chunk_changes(void) {
  prof_health health = {.size = sizeof health};
  assert_int_equal(prof_health_get(&health), PROF_OK);
  return health.chunk_changes_count;
}

/* An interpreter that longjmp() leaves has begun calls and never ended them. Then each scope
   searches the open ones. That is not the cost of a warm scope, and is counted as it is
   measured. */
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
      cmocka_unit_test(tasks_begun_inside_blocks_leave_no_gaps),
      cmocka_unit_test(calls_that_jumps_leave_leave_no_gaps),
      cmocka_unit_test(moved_entries_are_found_by_other_threads),
      cmocka_unit_test(moved_entries_are_counted_once),
      cmocka_unit_test(a_block_beside_tasks_gives_back_the_last_entry),
      cmocka_unit_test(blocks_that_jumps_leave_beside_tasks_end_with_the_one_around_them),
      cmocka_unit_test(what_is_known_of_the_last_block_does_not_outlive_the_fast_path),
      cmocka_unit_test(what_slow_scopes_take_is_counted),
      cmocka_unit_test(entries_of_tasks_do_not_pile_up),
      cmocka_unit_test(entries_that_another_thread_ends_are_counted_once),
      cmocka_unit_test(a_full_text_area_is_not_looked_through),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
