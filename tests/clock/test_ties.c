/* What happens at one tick of the counter: AMD's goes in steps of 10 ns. An end finds its scope by
   the tick of its begin. */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>

#include "fake.h"

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

/* How many scopes of that name there are, with these flags of prof_event's and no others. */
static int count_scopes(const prof_trace *trace, const char *name, uint32_t flags) {
  prof_cursor *cursor = NULL;
  prof_event event;
  int count = 0;
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  while (prof_cursor_next(cursor, &event) == 1)
    count += event.kind == PROF_EVENT_SCOPE && event.flags == flags && !strcmp(event.name, name);
  prof_cursor_destroy(cursor);
  return count;
}

/* A switch of fibers puts blocks out of order: the end of the outer one skips the inner one, whose
   own end comes later. */
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

/* A jump skips a block, whose end never comes. This thread then ends a scope by call of another one
   that began at the block's tick. */
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
  assert_int_equal(inner, other.start);
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
      cmocka_unit_test(memory_is_of_the_step_in_which_it_came),
  };
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
