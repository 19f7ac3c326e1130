/* Threads that end without a destructor of prof: their first scope comes in the last round of
   destructors, or they end by the system call. What they leave goes to the capture and to later
   threads. A thread that is alive keeps what it has. */
#define _GNU_SOURCE
#include <limits.h>
#include <prof/profiler.h>
#include <prof/trace.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/buffer/arena.h"
#include "core/buffer/ledger.h"
#include "core/buffer/thread.h"
#include "fault/support/captures.h"
#include "fault/support/skip.h"
#include "hang_guard.h"
#include "unit/threads.h"

enum { THREADS = 2000, AT_ONCE = 48, FEW = 16 };

static pthread_key_t key;
static pthread_barrier_t all_there;
static void (*in_last_round)(void);

static void record(void) { WITH_BASE_PROFILER(PROF_HOST, "some", "thread", PROF_NO_ARGS, {}); }
static void leave_open(void) { prof_scope_begin(1, "left open", "thread", NULL); }
static void record_and_leave_open(void) {
  record();
  leave_open();
}
static void record_together(void) {
  record();
  pthread_barrier_wait(&all_there);
}

static void at_the_end(void *rounds_left) {
  const intptr_t left = (intptr_t)rounds_left;
  if (left > 1)
    pthread_setspecific(key, (void *)(left - 1));
  else
    in_last_round();
}
static void *end_by_destructor(void *unused) {
  pthread_setspecific(key, (void *)(intptr_t)PTHREAD_DESTRUCTOR_ITERATIONS);
  return unused;
}
#if !SKIP_SANITIZED /* AddressSanitizer would take the next thread there for this one */
static void *end_by_system_call(void *unused) {
  record_and_leave_open();
  syscall(SYS_exit, 0);
  return unused;
}
#endif
static void *record_once(void *unused) {
  record();
  return unused;
}

/* The kernel's threads of this process. Who joins one goes on before the kernel has done with
   it. */
static unsigned long kernel_threads(void) {
  struct stat about;
  assert_int_equal(stat("/proc/self/task", &about), 0);
  return (unsigned long)about.st_nlink;
}
static void wait_for_kernel(unsigned long threads) {
  WAIT_WHILE(kernel_threads() != threads);
  assert_int_equal(kernel_threads(), threads);
}

static void run(void *(*body)(void *), int count) {
  const unsigned long before = kernel_threads();
  for (int i = 0; i < count; i++) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, body, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    wait_for_kernel(before);
  }
}

static void run_at_once(void *(*body)(void *), int count) {
  const unsigned long before = kernel_threads();
  pthread_t threads[AT_ONCE];
  for (int i = 0; i < count; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, body, NULL), 0);
  for (int i = 0; i < count; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  wait_for_kernel(before);
}

static void start_in(const char *path, uint64_t cap_bytes) {
  const prof_options options = {
      .size = sizeof options, .level = 1, .path = path, .cap_bytes = cap_bytes};
  assert_int_equal(prof_start_with(&options), PROF_OK);
}
static void start(uint64_t cap_bytes) { start_in(NULL, cap_bytes); }

/* As health reports it, and as a reader counts it. */
static void check(uint64_t recorded, uint64_t ended, uint64_t open, uint32_t alive) {
  const prof_health health = health_now();
  for (int i = 0; i < PROF_LOSS_COUNT; i++)
    assert_int_equal(health.lost_count[i], i == PROF_LOSS_THREAD_ENDED ? ended : 0);
  assert_int_equal(health.recorded_count, recorded);
  assert_int_equal(health.open_count, open);
  assert_int_equal(health.threads_alive_count, alive);
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  assert_int_equal(prof_get(&trace), PROF_OK);
  prof_trace_info_get(trace, &info);
  prof_trace_destroy(trace);
  assert_int_equal(info.bad_count, 0);
  assert_int_equal(info.open_count + info.open_below_count, open);
  assert_int_equal(info.event_count - info.open_count, recorded);
  assert_int_equal(info.lost_count[PROF_LOSS_THREAD_ENDED], ended);
}

static void a_first_scope_in_the_last_round_leaves_its_room(void **state) {
  (void)state;
  const int before = states_of_threads();
  start(8 << 20);
  in_last_round = record;
  run(end_by_destructor, THREADS);
  assert_in_range(states_of_threads(), 0, before + FEW);
  assert_in_range(health_now().arena_bytes, 0, 4 << 20);
  assert_int_equal(health_now().threads_seen_count, THREADS);
  check(THREADS, 0, 0, 0);
}

/* However many threads were alive before: so a search may be due at a number that the cap has no
   room for. */
static void before_the_cap_is_reached_the_ended_are_found(void **state) {
  (void)state;
  start(15 << 20);
  prof_i_threads.search_at = UINT32_MAX - 1;
  in_last_round = record;
  run(end_by_destructor, THREADS);
  assert_in_range(health_now().arena_bytes, 8 << 20, 15 << 20);
  check(THREADS, 0, 0, 0);
}

/* Chunks that are known to be free are nearly full. */
static void the_chunks_of_the_ended_are_found(void **state) {
  (void)state;
  start(16 << 20);
  in_last_round = record;
  run(end_by_destructor, THREADS);
  prof_i_threads.search_at = UINT32_MAX - 1;
  run(end_by_destructor, THREADS);
  assert_in_range(health_now().arena_bytes, 8 << 20, 16 << 20);
  check(2 * THREADS, 0, 0, 0);
}

static uint64_t lost_for_lack_of_room(void) {
  const prof_i_thread_slot *const slot = prof_i_this_thread->slot;
  return prof_i_slot_lost(slot, prof_i_ledger_of(slot), PROF_LOSS_FULL);
}

/* As if another thread searched, or the code that a handler has interrupted. prof_health() would
   free the ended threads. */
static void while_another_searches_the_arena_does_not_count_as_full(void **state) {
  (void)state;
  start(17 << 20);
  record();
  prof_i_threads.searches = 1;
  in_last_round = record;
  run(end_by_destructor, THREADS);
  while (lost_for_lack_of_room() == 0) record();
  assert_int_equal(prof_i_arena_full_loss(), -1);
  const uint64_t lost = lost_for_lack_of_room();
  prof_i_threads.searches = prof_i_threads.search_at = 0;
  record();
  assert_int_equal(lost_for_lack_of_room(), lost);
}

static void what_the_last_round_leaves_open_is_lost_as_thread_ended(void **state) {
  (void)state;
  start(9 << 20);
  in_last_round = leave_open;
  run(end_by_destructor, THREADS);
  check(0, THREADS, 0, 0);
}

#if !SKIP_SANITIZED
static void a_thread_that_ends_by_the_system_call_is_seen(void **state) {
  (void)state;
  start(10 << 20);
  run(end_by_system_call, THREADS);
  check(THREADS, THREADS, 0, 0);
}
#endif

static void a_stop_sees_those_that_have_ended(void **state) {
  (void)state;
  start_in(captures_path("out.json"), 8 << 20);
  const prof_health health = health_now();
  in_last_round = record_and_leave_open;
  run(end_by_destructor, FEW);
  assert_int_equal(prof_stop(), PROF_OK);
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  assert_int_equal(prof_trace_open(health.capture_path, &trace), PROF_OK);
  prof_trace_info_get(trace, &info);
  prof_trace_destroy(trace);
  assert_int_equal(info.event_count, FEW);
  assert_int_equal(info.open_count, 0);
  assert_int_equal(info.lost_count[PROF_LOSS_THREAD_ENDED], FEW);
}

/* All of them are there at once, so none can take the place of another. */
static void those_of_a_crowd_are_all_seen(void **state) {
  (void)state;
  start(13 << 20);
  pthread_barrier_init(&all_there, NULL, AT_ONCE);
  in_last_round = record_together;
  for (int round = 0; round < 4; round++) run_at_once(end_by_destructor, AT_ONCE);
  pthread_barrier_destroy(&all_there);
  const int before = states_of_threads();
  check(4 * AT_ONCE, 0, 0, 0);
  run(record_once, THREADS);
  assert_int_equal(states_of_threads(), before);
  check(4 * AT_ONCE + THREADS, 0, 0, 0);
}

/* ---- threads that are alive ---- */

static void *stay(void *unused) {
  const uint64_t start = prof_scope_begin(1, "around", "thread", NULL);
  pthread_barrier_wait(&all_there);
  pthread_barrier_wait(&all_there); /* the others have come and gone */
  record();
  prof_scope_end(start);
  return unused;
}

static void who_is_alive_keeps_its_scopes(void **state) {
  enum { STAYERS = 12 };
  pthread_t stayers[STAYERS];
  (void)state;
  start(11 << 20);
  pthread_barrier_init(&all_there, NULL, STAYERS + 1);
  for (int i = 0; i < STAYERS; i++)
    assert_int_equal(pthread_create(&stayers[i], NULL, stay, NULL), 0);
  pthread_barrier_wait(&all_there);
  in_last_round = record;
  run(end_by_destructor, THREADS);
  assert_in_range(health_now().arena_bytes, 0, 6 << 20); /* of 28 slots with their first chunks */
  check(THREADS, 0, STAYERS, STAYERS);
  pthread_barrier_wait(&all_there);
  for (int i = 0; i < STAYERS; i++) assert_int_equal(pthread_join(stayers[i], NULL), 0);
  pthread_barrier_destroy(&all_there);
  check(THREADS + 2 * STAYERS, 0, 0, 0);
}

/* A child of vfork() has the thread's memory and another number: what it began goes on. */
static void *record_in_vfork(void *unused) {
  const pid_t child = vfork();
  if (child == 0) {
    record(); /* NOLINT(clang-analyzer-unix.Vfork): what is tested */
    _exit(0);
  }
  waitpid(child, NULL, 0);
  const uint64_t start = prof_scope_begin(1, "around", "thread", NULL);
  assert_int_equal(prof_i_this_thread->tid, syscall(SYS_gettid)); /* not the child's */
  assert_int_equal(prof_i_this_thread->thread_kind, PROF_I_KIND_OF_THREAD);
  run(record_once, FEW);
  check(1 + FEW, 0, 1, 1);
  prof_scope_end(start);
  return unused;
}

static void a_thread_that_first_recorded_in_a_child_of_vfork_is_alive(void **state) {
  (void)state;
  start(12 << 20);
  run(record_in_vfork, 1);
  check(2 + FEW, 0, 0, 0);
}

#if !SKIP_SANITIZED
/* As if the kernel had given the number of the thread that has ended to this one. */
static void *record_with_an_old_number(void *unused) {
  const uint64_t tid = (uint64_t)syscall(SYS_gettid);
  for (prof_i_thread *t = prof_i_thread_first(); t; t = t->next)
    if (t->life_of) __atomic_store_n(&t->tid, tid, __ATOMIC_RELAXED);
  const uint64_t start = prof_scope_begin(1, "second", "thread", NULL);
  check(1, 1, 1, 1);
  prof_scope_end(start);
  return unused;
}

static void a_thread_whose_number_another_has_is_over(void **state) {
  (void)state;
  start(14 << 20);
  run(end_by_system_call, 1);
  run(record_with_an_old_number, 1);
  check(2, 1, 0, 0);
}
#endif

static int end(void **state) {
  (void)state;
  prof_stop();
  return 0;
}

int main(void) {
#if defined(__SANITIZE_THREAD__)
  skip_because("ThreadSanitizer's own state of a thread is gone in its last round of destructors");
#endif
#define ENTRY(test) cmocka_unit_test_teardown(test, end)
  const struct CMUnitTest tests[] = {
    ENTRY(a_first_scope_in_the_last_round_leaves_its_room),
    ENTRY(before_the_cap_is_reached_the_ended_are_found),
    ENTRY(the_chunks_of_the_ended_are_found),
    ENTRY(while_another_searches_the_arena_does_not_count_as_full),
    ENTRY(what_the_last_round_leaves_open_is_lost_as_thread_ended),
#if !SKIP_SANITIZED
    ENTRY(a_thread_that_ends_by_the_system_call_is_seen),
    ENTRY(a_thread_whose_number_another_has_is_over),
#endif
    ENTRY(a_stop_sees_those_that_have_ended),
    ENTRY(those_of_a_crowd_are_all_seen),
    ENTRY(who_is_alive_keeps_its_scopes),
    ENTRY(a_thread_that_first_recorded_in_a_child_of_vfork_is_alive),
  };
  if (pthread_key_create(&key, at_the_end) != 0 || !captures_make_folder(false)) return 1;
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  captures_remove_folder();
  return failed;
}
