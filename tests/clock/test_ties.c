/* What happens at one tick of the counter: AMD's goes in steps of 10 ns. An end finds its scope by
   the tick of its begin. */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>

#include "fake.h"

#include <prof/fiber.h>
#include <prof/memory.h>

static struct {
  uint64_t start; /* of the other thread's block */
  sem_t has_begun, may_end;
} other;

static void *run_other(void *unused) {
  (void)unused;
  static prof_site site = {.level = 1};
  other.start = prof_i_begin_1(&site, "other", "x");
  sem_post(&other.has_begun);
  sem_wait(&other.may_end);
  prof_i_end_1(other.start);
  return NULL;
}

static pthread_t begin_other(void) {
  pthread_t thread;
  sem_init(&other.has_begun, 0, 0);
  sem_init(&other.may_end, 0, 0);
  assert_int_equal(pthread_create(&thread, NULL, run_other, NULL), 0);
  sem_wait(&other.has_begun);
  return thread;
}

static void end_other(pthread_t thread) {
  sem_post(&other.may_end);
  pthread_join(thread, NULL);
  sem_destroy(&other.has_begun);
  sem_destroy(&other.may_end);
}

static int count_events(const prof_trace *trace, uint32_t kind, const char *name, uint32_t flags) {
  prof_cursor *cursor = NULL;
  prof_event event;
  int count = 0;
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  while (prof_cursor_next(cursor, &event) == 1)
    count += event.kind == kind && event.flags == flags && !strcmp(event.name, name);
  prof_cursor_destroy(cursor);
  return count;
}
/* How many scopes of that name there are, with these flags of prof_event's and no others. */
static int count_scopes(const prof_trace *trace, const char *name, uint32_t flags) {
  return count_events(trace, PROF_EVENT_SCOPE, name, flags);
}
static int count_open(const prof_trace *trace, const char *name) {
  return count_events(trace, PROF_EVENT_OPEN, name, 0);
}

/* A switch of fibers puts blocks out of order: the end of the outer block skips the inner one,
   which ends later. */
static void the_end_of_a_skipped_block_takes_no_other_threads(void **state) {
  (void)state;
  static prof_site outer_site = {.level = 1}, inner_site = {.level = 1};
  prof_trace *trace = NULL;
  fake_reset();
  start_recording();
  const uint64_t outer = prof_i_begin_1(&outer_site, "outer", "x");
  fake_pass(fake_us);
  fake_stop_counter(true);
  const uint64_t inner = prof_i_begin_1(&inner_site, "inner", "x");
  const pthread_t thread = begin_other();
  assert_int_equal(inner, other.start);
  fake_stop_counter(false);
  fake_pass(fake_us);
  prof_i_end_1(outer);
  fake_pass(fake_us);
  prof_i_end_1(inner);
  fake_pass(fake_us);
  end_other(thread);
  assert_int_equal(prof_get(&trace), PROF_OK);
  const prof_trace_info info = info_of(trace);
  assert_int_equal(info.scope_count, 3);
  assert_int_equal(info.stray_count, 1);
  assert_int_equal(info.open_count, 0);
  assert_int_equal(count_scopes(trace, "outer", 0), 1);
  assert_int_equal(count_scopes(trace, "inner", PROF_EVENT_SKIPPED), 1);
  assert_int_equal(count_scopes(trace, "other", 0), 1);
  prof_trace_destroy(trace);
  assert_int_equal(prof_stop(), PROF_OK);
}

/* A jump skips a block, which never ends. This thread then ends a scope by call of another one that
   began at the block's tick. */
static void *begin_by_call(void *unused) {
  (void)unused;
  other.start = prof_scope_begin(1, "other", "x", NULL);
  sem_post(&other.has_begun);
  sem_wait(&other.may_end);
  return NULL;
}

static void a_scope_by_call_ends_here_whatever_was_skipped(void **state) {
  (void)state;
  static prof_site outer_site = {.level = 1}, inner_site = {.level = 1};
  pthread_t thread;
  prof_trace *trace = NULL;
  fake_reset();
  start_recording();
  const uint64_t outer = prof_i_begin_1(&outer_site, "outer", "x");
  fake_pass(fake_us);
  fake_stop_counter(true);
  const uint64_t inner = prof_i_begin_1(&inner_site, "inner", "x");
  sem_init(&other.has_begun, 0, 0);
  sem_init(&other.may_end, 0, 0);
  assert_int_equal(pthread_create(&thread, NULL, begin_by_call, NULL), 0);
  sem_wait(&other.has_begun);
  assert_int_equal(inner >> 4, other.start >> 4);
  fake_stop_counter(false);
  fake_pass(fake_us);
  prof_i_end_1(outer);
  prof_scope_end(other.start);
  assert_int_equal(prof_get(&trace), PROF_OK);
  end_other(thread);
  const prof_trace_info info = info_of(trace);
  assert_int_equal(info.scope_count, 3);
  assert_int_equal(info.stray_count, 0);
  assert_int_equal(info.open_count, 0);
  assert_int_equal(count_scopes(trace, "other", PROF_EVENT_OTHER_THREAD), 1);
  prof_trace_destroy(trace);
  assert_int_equal(prof_stop(), PROF_OK);
}

/* ---- two scopes by call, of two threads, begin at one tick ---- */

enum { CALLERS = 2, DEEP = 70 };

typedef struct caller {
  pthread_t thread;
  const char *name;
  uint64_t start;
  uint32_t below_count; /* scopes that it begins before, so that the last has a deep entry */
  bool in_fiber;
  sem_t may_begin, has_begun, may_end;
} caller;
static caller callers[CALLERS];

static void begin_below(uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    prof_scope_begin(1, "below", "x", NULL);
    fake_pass(fake_us);
  }
}

static void *run_caller(void *argument) {
  caller *const c = argument;
  prof_fiber *fiber = NULL;
  if (c->in_fiber) {
    assert_int_equal(prof_fiber_create(c->name, &fiber), PROF_OK);
    assert_int_equal(prof_fiber_enter(fiber), PROF_OK);
  }
  begin_below(c->below_count);
  sem_post(&c->has_begun);
  sem_wait(&c->may_begin);
  c->start = prof_scope_begin(1, c->name, "x", NULL);
  sem_post(&c->has_begun);
  sem_wait(&c->may_end);
  prof_fiber_destroy(fiber);
  return NULL;
}

static void start_caller(caller *c) {
  sem_init(&c->may_begin, 0, 0);
  sem_init(&c->has_begun, 0, 0);
  sem_init(&c->may_end, 0, 0);
  assert_int_equal(pthread_create(&c->thread, NULL, run_caller, c), 0);
  sem_wait(&c->has_begun);
}

static void let_begin(caller *c) {
  sem_post(&c->may_begin);
  sem_wait(&c->has_begun);
}

static void end_caller(caller *c) {
  sem_post(&c->may_end);
  pthread_join(c->thread, NULL);
}

/* Both have begun at one tick. */
static void begin_at_one_tick(caller like) {
  static const char *const names[CALLERS] = {"first", "second"};
  for (int i = 0; i < CALLERS; i++) {
    callers[i] = like;
    callers[i].name = names[i];
    start_caller(&callers[i]);
  }
  fake_stop_counter(true);
  for (int i = 0; i < CALLERS; i++) let_begin(&callers[i]);
  fake_stop_counter(false);
  assert_int_equal(callers[0].start >> 4, callers[1].start >> 4);
  fake_pass(fake_us);
}

/* This thread has ended callers[ended], and the other one is open. */
static void check_ended(int ended, uint32_t below_count) {
  prof_trace *trace = NULL;
  assert_int_equal(prof_get(&trace), PROF_OK);
  const prof_trace_info info = info_of(trace);
  const char *const name = callers[ended].name;
  assert_int_equal(info.stray_count, 0);
  assert_int_equal(info.open_count + info.open_below_count, CALLERS - 1 + CALLERS * below_count);
  assert_int_equal(count_scopes(trace, name, PROF_EVENT_OTHER_THREAD), 1);
  assert_int_equal(count_scopes(trace, callers[1 - ended].name, PROF_EVENT_OTHER_THREAD), 0);
  prof_trace_destroy(trace);
}

static void end_either(caller like) {
  for (int ended = 0; ended < CALLERS; ended++) {
    fake_reset();
    start_recording();
    begin_at_one_tick(like);
    prof_scope_end(callers[ended].start);
    check_ended(ended, like.below_count);
    for (int i = 0; i < CALLERS; i++) end_caller(&callers[i]);
    assert_int_equal(prof_stop(), PROF_OK);
  }
}

static void an_end_takes_the_scope_of_the_thread_that_began_it(void **state) {
  (void)state;
  end_either((caller){0});
}

static void so_it_does_of_deep_scopes(void **state) {
  (void)state;
  end_either((caller){.below_count = DEEP});
}

static void so_it_does_of_fibers(void **state) {
  (void)state;
  end_either((caller){.in_fiber = true});
}

/* The ending thread has one of that tick itself, and it began last there. */
static void an_end_leaves_its_own_threads_scope_of_that_tick(void **state) {
  (void)state;
  prof_trace *trace = NULL;
  fake_reset();
  start_recording();
  callers[0] = (caller){.name = "other"};
  start_caller(&callers[0]);
  fake_stop_counter(true);
  const uint64_t own = prof_scope_begin(1, "own", "x", NULL);
  let_begin(&callers[0]);
  fake_stop_counter(false);
  assert_int_equal(callers[0].start >> 4, own >> 4);
  fake_pass(fake_us);
  prof_scope_end(callers[0].start);
  assert_int_equal(prof_get(&trace), PROF_OK);
  assert_int_equal(count_open(trace, "own"), 1);
  assert_int_equal(count_open(trace, "other"), 0);
  prof_trace_destroy(trace);
  prof_scope_end(own);
  end_caller(&callers[0]);
  assert_int_equal(prof_get(&trace), PROF_OK);
  const prof_trace_info info = info_of(trace);
  assert_int_equal(info.stray_count, 0);
  assert_int_equal(info.open_count, 0);
  assert_int_equal(count_scopes(trace, "other", PROF_EVENT_OTHER_THREAD), 1);
  assert_int_equal(count_scopes(trace, "own", 0), 1);
  prof_trace_destroy(trace);
  assert_int_equal(prof_stop(), PROF_OK);
}

/* A stop and a start carry it over: it is late, and the other thread's stays. */
static void so_it_does_after_a_stop_and_a_start(void **state) {
  (void)state;
  prof_trace *trace = NULL;
  fake_reset();
  start_recording();
  begin_at_one_tick((caller){0});
  assert_int_equal(prof_stop(), PROF_OK);
  fake_pass(fake_us);
  assert_int_equal(prof_start(1), PROF_OK);
  for (int i = 0; i < CALLERS; i++) {
    prof_scope_end(callers[i].start);
    assert_int_equal(prof_get(&trace), PROF_OK);
    const prof_trace_info info = info_of(trace);
    assert_int_equal(info.open_count, CALLERS - 1 - i);
    assert_int_equal(info.stray_count, 0);
    assert_int_equal(info.lost_count[PROF_LOSS_LATE], i + 1);
    assert_int_equal(count_open(trace, callers[i].name), 0);
    prof_trace_destroy(trace);
  }
  prof_scope_end(callers[0].start);
  assert_int_equal(prof_get(&trace), PROF_OK);
  assert_int_equal(info_of(trace).stray_count, 1);
  prof_trace_destroy(trace);
  for (int i = 0; i < CALLERS; i++) end_caller(&callers[i]);
  assert_int_equal(prof_stop(), PROF_OK);
}

/* At one tick, events and steps of a thread are in its order. */
static void memory_is_of_the_step_in_which_it_came(void **state) {
  (void)state;
  static const uint64_t grows[] = {100, 10, 5000, 20};
  static char addresses[4];
  prof_trace *trace = NULL;
  prof_memory *memory = NULL;
  prof_pool *pool = NULL;
  prof_memory_info info = {.size = sizeof info};
  fake_reset();
  start_recording();
  const prof_pool_options options = {.size = sizeof options, .name = "steps"};
  assert_int_equal(prof_pool_create(&options, &pool), PROF_OK);
  fake_stop_counter(true);
  for (size_t i = 0; i < 4; i++) {
    prof_memory_alloc(pool, &addresses[i], grows[i], 0);
    prof_step();
  }
  fake_stop_counter(false);
  assert_int_equal(prof_get(&trace), PROF_OK);
  assert_int_equal(prof_memory_read(trace, &memory), PROF_OK);
  assert_int_equal(prof_memory_pool_get(memory, 0, &info), PROF_OK);
  assert_int_equal(info.growth_bytes, 5000);
  assert_int_equal(info.growth_step, 2);
  prof_memory_destroy(memory);
  prof_trace_destroy(trace);
  prof_pool_destroy(pool);
  assert_int_equal(prof_stop(), PROF_OK);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_end_of_a_skipped_block_takes_no_other_threads),
      cmocka_unit_test(a_scope_by_call_ends_here_whatever_was_skipped),
      cmocka_unit_test(an_end_takes_the_scope_of_the_thread_that_began_it),
      cmocka_unit_test(so_it_does_of_deep_scopes),
      cmocka_unit_test(so_it_does_of_fibers),
      cmocka_unit_test(so_it_does_after_a_stop_and_a_start),
      cmocka_unit_test(an_end_leaves_its_own_threads_scope_of_that_tick),
      cmocka_unit_test(memory_is_of_the_step_in_which_it_came),
  };
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
