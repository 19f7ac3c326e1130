/* Each begin is one record, one loss, or one open scope; it is counted once, where its entry is
   removed. Ends without a scope are strays, outside of that sum. */
#define _GNU_SOURCE
#include <limits.h>
#include <prof/profiler.h>
#include <prof/trace.h>
#include <pthread.h>

#include "events.h"
#include "health.h"

enum { BELOW = 100, DEEP = 64 + BELOW };

/* Health and the reader tell the same: so many recorded, lost (by one reason, -1: none), open, of
   these below the 64, and strays. */
static void check_all(uint64_t recorded, int loss, uint64_t lost, uint64_t open, uint64_t below,
                      uint64_t strays) {
  const prof_health health = health_now();
  prof_trace *trace;
  prof_trace_info info = {.size = sizeof info};
  assert_status(prof_get(&trace), PROF_OK);
  prof_trace_info_get(trace, &info);
  prof_trace_destroy(trace);
  assert_int_equal(health.recorded_count, recorded);
  assert_int_equal(info.event_count - info.open_count, recorded);
  for (int i = 0; i < PROF_LOSS_COUNT; i++) {
    assert_int_equal(health.lost_count[i], i == loss ? lost : 0);
    assert_int_equal(info.lost_count[i], i == loss ? lost : 0);
  }
  assert_int_equal(health.open_count, open);
  assert_int_equal(info.open_count + info.open_below_count, open);
  assert_int_equal(info.open_below_count, below);
  assert_int_equal(health.stray_count, strays);
  assert_int_equal(info.stray_count, strays);
}

static void check_sum(uint64_t recorded, int loss, uint64_t lost, uint64_t open, uint64_t strays) {
  check_all(recorded, loss, lost, open, open > 64 ? open - 64 : 0, strays);
}

static void start_with_cap(uint64_t cap_bytes) {
  const prof_options options = {.size = sizeof options, .level = 1, .cap_bytes = cap_bytes};
  assert_status(prof_start_with(&options), PROF_OK);
}

/* ---- blocks that a jump leaves ---- */

static jmp_buf back;
static void jump_now(void) { longjmp(back, 1); }
/* or the compiler sees that it never returns, and says so */
static void (*volatile jumper)(void) = jump_now;

static void dive(int depth) {
  WITH_BASE_PROFILER(PROF_HOST, "left", "ledger", PROF_ARGS("depth", depth), {
    if (depth > 1)
      dive(depth - 1);
    else
      jumper();
  });
}
static __attribute__((noinline)) void leave_blocks(int depth) {
  if (setjmp(back) == 0) dive(depth);
}

static void blocks_that_a_jump_leaves_end_with_the_block_around_them(void **state) {
  (void)state;
  start_with_cap(0);
  WITH_BASE_PROFILER(PROF_HOST, "outer", "ledger", PROF_NO_ARGS, { leave_blocks(3); });
  check_sum(4, -1, 0, 0, 0);
  events_stop_and_read();
  const seen_event *outer = NULL;
  uint64_t left = 0;
  for (size_t i = 0; i < events.count; i++)
    if (strcmp(events.items[i].name, "outer") == 0) outer = &events.items[i];
  assert_non_null(outer);
  assert_int_equal(outer->e.flags & PROF_EVENT_SKIPPED, 0);
  for (size_t i = 0; i < events.count; i++) {
    const seen_event *const one = &events.items[i];
    if (one == outer) continue;
    left++;
    assert_string_equal(one->name, "left");
    assert_int_equal(one->e.kind, PROF_EVENT_SCOPE);
    assert_int_equal(one->e.flags, PROF_EVENT_SKIPPED);
    assert_int_equal(one->e.start_ns + one->e.duration_ns,
                     outer->e.start_ns + outer->e.duration_ns);
    assert_int_equal(one->e.depth, 4 - one->e.args[0].value.i64);
  }
  assert_int_equal(left, 3);
}

/* Behind a jump out of more blocks than have entries the rest of the thread is as before. */
static void blocks_below_the_64_are_skipped_as_well(void **state) {
  (void)state;
  start_with_cap(0);
  for (int i = 0; i < 3; i++) {
    WITH_BASE_PROFILER(PROF_HOST, "outer", "ledger", PROF_NO_ARGS, {
      leave_blocks(DEEP);
      WITH_BASE_PROFILER(PROF_HOST, "behind", "ledger", PROF_NO_ARGS, {});
    });
  }
  check_sum(3 * (DEEP + 2), -1, 0, 0, 0);
  prof_stop();
}

/* The block of an entry ends while blocks below the 64 are open. */
static void the_end_of_the_64th_block_sees_those_below(void **state) {
  (void)state;
  start_with_cap(0);
  uint64_t starts[63];
  for (int i = 0; i < 63; i++) starts[i] = prof_scope_begin(1, "by a call", "ledger", NULL);
  WITH_BASE_PROFILER(PROF_HOST, "the 64th", "ledger", PROF_NO_ARGS, { leave_blocks(BELOW); });
  check_sum(1 + BELOW, -1, 0, 63, 0);
  for (int i = 63; i-- > 0;) prof_scope_end(starts[i]);
  check_sum(1 + BELOW + 63, -1, 0, 0, 0);
  prof_stop();
}

static void what_no_block_ends_stands_open_and_is_counted(void **state) {
  (void)state;
  start_with_cap(0);
  leave_blocks(DEEP);
  check_sum(0, -1, 0, DEEP, 0);
  WITH_BASE_PROFILER(PROF_HOST, "behind", "ledger", PROF_NO_ARGS, {});
  check_sum(1, -1, 0, DEEP, 0);
  prof_trace *trace;
  char *text;
  assert_status(prof_get(&trace), PROF_OK);
  assert_status(prof_trace_loss_text(trace, &text), PROF_OK);
  assert_non_null(strstr(text, "164 scopes had not ended yet, 100 of them below 64 others"));
  prof_free(text);
  prof_trace_destroy(trace);
  prof_stop();
}

/* There is no room to record what was skipped: it is lost, under that reason. */
static void what_was_skipped_in_a_full_capture_is_lost_as_skipped(void **state) {
  (void)state;
  start_with_cap(1 << 20);
  enum {
    LEFT = 4000
  }; /* more than what is kept aside for scopes that are open when it becomes full */
  uint64_t lost = 0, fillers = 0;
  prof_health health = health_now();
  WITH_BASE_PROFILER(PROF_HOST, "outer", "ledger", PROF_NO_ARGS, {
    leave_blocks(LEFT);
    for (; !health.is_full; fillers++) {
      WITH_BASE_PROFILER(PROF_HOST, "filler", "ledger",
                         PROF_ARGS("text", "a text that takes some room in each record"), {});
      if (fillers % 64 == 0) health = health_now();
    }
  });
  health = health_now();
  lost += health_lost(&health);
  assert_in_range(health.lost_count[PROF_LOSS_SKIPPED], 1, LEFT);
  assert_int_equal(health.open_count, 0);
  assert_int_equal(health.recorded_count + lost, fillers + LEFT + 1);
  prof_stop();
}

/* ---- threads ---- */

static void *leave_open(void *depth) {
  for (intptr_t i = 0; i < (intptr_t)depth; i++) prof_scope_begin(1, "never ended", "ledger", NULL);
  return NULL;
}
static void run(void *(*body)(void *), void *argument) {
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, body, argument), 0);
  pthread_join(thread, NULL);
}

static void what_a_thread_leaves_open_is_lost_when_it_ends(void **state) {
  (void)state;
  start_with_cap(0);
  run(leave_open, (void *)(intptr_t)3);
  check_sum(0, PROF_LOSS_THREAD_ENDED, 3, 0, 0);
  run(leave_open, (void *)(intptr_t)DEEP);
  check_sum(0, PROF_LOSS_THREAD_ENDED, 3 + DEEP, 0, 0);
  prof_stop();
}

static uint64_t handed[DEEP];
static void *end_handed(void *unused) {
  for (int i = 0; i < DEEP; i++) prof_scope_end(handed[i]);
  return unused;
}

static void a_scope_below_the_64_may_end_on_another_thread(void **state) {
  (void)state;
  start_with_cap(0);
  for (int round = 1; round <= 3; round++) {
    for (int i = 0; i < DEEP; i++) handed[i] = prof_scope_begin(1, "handed over", "ledger", NULL);
    run(end_handed, NULL);
    check_sum((uint64_t)round * DEEP, -1, 0, 0, 0);
  }
  prof_stop();
}

static void ends_in_any_order_below_the_64_are_counted_once(void **state) {
  (void)state;
  start_with_cap(0);
  for (int i = 0; i < DEEP; i++) handed[i] = prof_scope_begin(1, "in turn", "ledger", NULL);
  for (int i = 0; i < DEEP; i += 2) prof_scope_end(handed[i]);
  check_all(DEEP / 2, -1, 0, DEEP / 2, BELOW / 2, 0);
  for (int i = 1; i < DEEP; i += 2) prof_scope_end(handed[i]);
  check_sum(DEEP, -1, 0, 0, 0);
  prof_stop();
}

/* ---- the end of a thread ---- */

static pthread_key_t key;
static void record_in_destructor(void *rounds) {
  WITH_BASE_PROFILER(PROF_HOST, "destructor", "ledger", PROF_NO_ARGS,
                     { WITH_BASE_PROFILER(PROF_HOST, "inside", "ledger", PROF_NO_ARGS, {}); });
  if ((intptr_t)rounds > 1) pthread_setspecific(key, (void *)((intptr_t)rounds - 1));
}
static void *set_key(void *rounds) {
  pthread_setspecific(key, rounds);
  return NULL;
}

/* Also in the last round, behind which nobody sees it end: its chunk and its slot go to the next
   thread. */
static void a_thread_that_records_in_destructors_is_one_thread_and_leaves_its_room(void **state) {
#if defined(__SANITIZE_THREAD__)
  /* in the last one its own state of the thread is gone */
  enum { ROUNDS = PTHREAD_DESTRUCTOR_ITERATIONS - 1 };
#else
  enum { ROUNDS = PTHREAD_DESTRUCTOR_ITERATIONS };
#endif
  enum { COMERS = 100 };
  (void)state;
  for (intptr_t rounds = 1; rounds <= ROUNDS; rounds++) {
    start_with_cap((9 + (uint64_t)rounds) << 20); /* another capture each time */
    assert_int_equal(pthread_key_create(&key, record_in_destructor), 0);
    for (int i = 0; i < COMERS; i++) run(set_key, (void *)rounds);
    check_sum((uint64_t)COMERS * 2 * (uint64_t)rounds, -1, 0, 0, 0);
    const prof_health health = health_now();
    assert_int_equal(health.threads_seen_count, COMERS);
    assert_int_equal(health.threads_alive_count, 0);
    assert_in_range(health.arena_bytes, 1, 1 << 20);
    pthread_key_delete(key);
    prof_stop();
  }
}

/* ---- strays ---- */

static void an_end_without_a_scope_is_a_stray_outside_of_the_sum(void **state) {
  (void)state;
  start_with_cap(0);
  const uint64_t once = prof_scope_begin(1, "ended twice", "ledger", NULL);
  prof_scope_end(once);
  prof_scope_end(once);
  check_sum(1, -1, 0, 0, 1);
  prof_scope_end(16 * 12345); /* no start of this process */
  prof_scope_end(once + 16);
  check_sum(1, -1, 0, 0, 3);
  prof_stop();
}

static void an_end_after_the_stop_is_late_once(void **state) {
  (void)state;
  start_with_cap(0);
  const uint64_t start = prof_scope_begin(1, "late", "ledger", NULL);
  prof_stop();
  prof_scope_end(start);
  prof_scope_end(start);
  check_sum(0, PROF_LOSS_LATE, 1, 0, 1);
}

static void an_end_in_the_next_session_is_late_once_also_below_the_64(void **state) {
  (void)state;
  start_with_cap(0);
  for (int i = 0; i < DEEP; i++) handed[i] = prof_scope_begin(1, "late", "ledger", NULL);
  prof_stop();
  start_with_cap(0);
  WITH_BASE_PROFILER(PROF_HOST, "now", "ledger", PROF_NO_ARGS, {});
  end_handed(NULL);
  check_sum(1, PROF_LOSS_LATE, DEEP, 0, 0);
  prof_stop();
}

static int clean(void **state) {
  static uint64_t cap_bytes = 8 << 20; /* another one is another capture */
  (void)state;
  prof_stop();
  start_with_cap(cap_bytes += 1 << 16);
  prof_stop();
  return 0;
}

int main(int argc, char **argv) {
#define ENTRY(test) cmocka_unit_test_teardown(test, clean)
  const struct CMUnitTest tests[] = {
      ENTRY(blocks_that_a_jump_leaves_end_with_the_block_around_them),
      ENTRY(blocks_below_the_64_are_skipped_as_well),
      ENTRY(the_end_of_the_64th_block_sees_those_below),
      ENTRY(what_no_block_ends_stands_open_and_is_counted),
      ENTRY(what_was_skipped_in_a_full_capture_is_lost_as_skipped),
      ENTRY(what_a_thread_leaves_open_is_lost_when_it_ends),
      ENTRY(a_scope_below_the_64_may_end_on_another_thread),
      ENTRY(a_thread_that_records_in_destructors_is_one_thread_and_leaves_its_room),
      ENTRY(ends_in_any_order_below_the_64_are_counted_once),
      ENTRY(an_end_without_a_scope_is_a_stray_outside_of_the_sum),
      ENTRY(an_end_after_the_stop_is_late_once),
      ENTRY(an_end_in_the_next_session_is_late_once_also_below_the_64),
  };
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
