/* Fibers. Scopes that are open over switches stay in their fiber's track. Fibers move from thread
   to thread, over captures and into forked children. Only what a fiber leaves open is lost. */
#define _GNU_SOURCE
#include <prof/fiber.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "events.h"
#include "sanitizers.h"

enum { FIBERS = 3, ROUNDS = 100 };

/* An arena of its own: it has no loss of an earlier test. */
static void record_afresh(void) {
  static uint64_t number;
  const prof_options options = {.size = sizeof options, .cap_bytes = (8 + number++ % 2) << 20};
  if (prof_level()) prof_stop();
  assert_status(prof_start_with(&options), PROF_OK);
}

static prof_fiber *new_fiber(const char *name) {
  prof_fiber *fiber = NULL;
  assert_status(prof_fiber_create(name, &fiber), PROF_OK);
  return fiber;
}

/* A block. Unlike a scope by calls, its end closes as skipped what began later and is open. */
static prof_site block_site = {.file = __FILE__, .function = "block", .line = __LINE__, .level = 1};
static uint64_t begin_block(void) { return prof_i_begin_1(&block_site, "block", "test"); }
static void end_block(uint64_t start) {
  if (start) prof_i_end_1(start);
}

static prof_trace_thread thread_of(const seen_event *event) {
  prof_trace_thread thread = {.size = sizeof thread};
  assert_status(prof_trace_thread_get(events.trace, event->e.thread, &thread), PROF_OK);
  return thread;
}

/* Events of that name on a track of that name. */
static size_t count_on(const char *track, const char *name) {
  size_t count = 0;
  for (size_t i = 0; i < events.count; i++)
    count += strcmp(events.items[i].name, name) == 0 &&
             strcmp(thread_of(&events.items[i]).name, track) == 0;
  return count;
}

static uint64_t lost_now(int loss) {
  prof_health health = {.size = sizeof health};
  assert_status(prof_health(&health), PROF_OK);
  return health.lost_count[loss];
}

/* ---- blocks over switches ---- */

#if !WITH_TSAN /* it does not know swapcontext() */
static ucontext_t scheduler, contexts[FIBERS];
static prof_fiber *fibers[FIBERS];
static const char *const outer_names[FIBERS] = {"outer 0", "outer 1", "outer 2"};

static void switch_out(int i) { swapcontext(&contexts[i], &scheduler); }

static void run_fiber(int i) {
  for (int round = 0; round < ROUNDS; round++)
    WITH_BASE_PROFILER(PROF_HOST, outer_names[i], "test", PROF_NO_ARGS, {
      switch_out(i);
      WITH_BASE_PROFILER(PROF_HOST, "inner", "test", PROF_NO_ARGS, switch_out(i));
    });
}

static void scopes_stay_in_their_fiber(void **state) {
  (void)state;
  static const char *const tracks[FIBERS] = {"red", "green", "blue"};
  record_afresh();
  prof_thread_set_name("scheduler");
  for (int i = 0; i < FIBERS; i++) {
    enum { STACK = 256 << 10 };
    fibers[i] = new_fiber(tracks[i]);
    getcontext(&contexts[i]);
    contexts[i].uc_stack.ss_sp = malloc(STACK);
    contexts[i].uc_stack.ss_size = STACK;
    contexts[i].uc_link = &scheduler;
    makecontext(&contexts[i], (void (*)(void))run_fiber, 1, i);
  }
  for (int turn = 0; turn < 2 * ROUNDS + 1; turn++)
    for (int i = 0; i < FIBERS; i++)
      WITH_BASE_PROFILER(PROF_HOST, "turn", "test", PROF_NO_ARGS, {
        void *const stack = contexts[i].uc_stack.ss_sp;
        assert_status(prof_fiber_enter(fibers[i]), PROF_OK);
        swapcontext(&scheduler, &contexts[i]);
        prof_fiber_leave();
        if (turn == 2 * ROUNDS) free(stack);
      });
  for (int i = 0; i < FIBERS; i++) assert_status(prof_fiber_destroy(fibers[i]), PROF_OK);
  events_stop_and_read();
  assert_event_total(FIBERS * (ROUNDS * 2 + 2 * ROUNDS + 1));
  assert_int_equal(count_on("scheduler", "turn"), FIBERS * (2 * ROUNDS + 1));
  for (int i = 0; i < FIBERS; i++) {
    assert_int_equal(count_on(tracks[i], outer_names[i]), ROUNDS);
    assert_int_equal(count_on(tracks[i], "inner"), ROUNDS);
  }
  for (size_t i = 0; i < events.count; i++) {
    const seen_event *const s = &events.items[i];
    assert_int_equal(s->e.kind, PROF_EVENT_SCOPE);
    assert_int_equal(s->e.depth, strcmp(s->name, "inner") == 0);
  }
}
#endif

/* ---- tracks ---- */

static void a_fiber_is_a_track_with_a_number_of_its_own(void **state) {
  (void)state;
  prof_fiber *const a = new_fiber("a"), *const unnamed = new_fiber(NULL);
  record_afresh();
  prof_fiber_enter(a);
  PROF_INSTANT("of a", "test", PROF_NO_ARGS);
  prof_fiber_enter(unnamed); /* switches */
  PROF_INSTANT("of the unnamed", "test", PROF_NO_ARGS);
  prof_fiber_enter(NULL); /* leaves */
  PROF_INSTANT("of the thread", "test", PROF_NO_ARGS);
  prof_fiber_leave(); /* nothing to leave */
  prof_fiber_enter(a);
  prof_fiber_enter(a); /* it is */
  assert_status(prof_thread_set_name("renamed"), PROF_OK);
  PROF_INSTANT("again of a", "test", PROF_NO_ARGS);
  prof_fiber_leave();
  events_stop_and_read();
  assert_event_total(4);
  const prof_trace_thread of_a = thread_of(only_event("of a"));
  assert_string_equal(of_a.name, "renamed");
  assert_int_equal(of_a.is_main, 0);
  assert_int_equal(of_a.is_fiber, 1);
  assert_int_equal(of_a.is_stream, 0);
  assert_int_equal(only_event("of a")->e.thread, only_event("again of a")->e.thread);
  const prof_trace_thread other = thread_of(only_event("of the unnamed"));
  assert_string_equal(other.name, "fiber");
  const prof_trace_thread self = thread_of(only_event("of the thread"));
  assert_int_equal(self.tid, (uint64_t)gettid());
  assert_int_equal(self.is_fiber, 0);
  assert_true(of_a.tid != other.tid && of_a.tid != self.tid && other.tid != self.tid);
  assert_status(prof_fiber_destroy(a), PROF_OK);
  assert_status(prof_fiber_destroy(unnamed), PROF_OK);
  assert_status(prof_fiber_destroy(NULL), PROF_OK);
}

static void a_table_by_threads_names_the_fiber(void **state) {
  (void)state;
  const prof_aggregate_options options = {
      .size = sizeof options, .group = PROF_GROUP_NAME | PROF_GROUP_THREAD, .rows_limit = 10};
  prof_fiber *const fiber = new_fiber("in a row");
  char *table = NULL, row[64];
  record_afresh();
  prof_fiber_enter(fiber);
  end_block(begin_block());
  prof_fiber_leave();
  events_stop_and_read();
  assert_status(prof_trace_table(events.trace, &options, &table), PROF_OK);
  const uint64_t number = thread_of(only_event("block")).tid - (1u << 30);
  snprintf(row, sizeof row, "in a row (fiber %" PRIu64 ")", number);
  assert_non_null(strstr(table, row));
  prof_free(table);
  assert_status(prof_fiber_destroy(fiber), PROF_OK);
}

static void it_lives_over_captures(void **state) {
  (void)state;
  prof_fiber *const fiber = new_fiber("lasting");
  if (prof_level()) prof_stop();
  prof_fiber_enter(fiber);
  PROF_INSTANT("unseen", "test", PROF_NO_ARGS); /* nothing records */
  prof_fiber_leave();
  for (uint64_t cap = 4; cap <= 16; cap *= 2) { /* each in memory of its own */
    const prof_options options = {.size = sizeof options, .cap_bytes = cap << 20};
    assert_status(prof_start_with(&options), PROF_OK);
    prof_fiber_enter(fiber);
    const uint64_t block = begin_block();
    prof_fiber_leave();
    PROF_INSTANT("between", "test", PROF_NO_ARGS);
    prof_fiber_enter(fiber);
    end_block(block);
    prof_fiber_leave();
    events_stop_and_read();
    assert_event_total(2);
    assert_int_equal(count_on("lasting", "block"), 1);
    assert_int_equal(count_on("lasting", "between"), 0);
  }
  assert_status(prof_fiber_destroy(fiber), PROF_OK);
}

static void what_it_leaves_open_is_lost(void **state) {
  (void)state;
  prof_fiber *const fiber = new_fiber("short"), *const within = new_fiber("within");
  record_afresh();
  const uint64_t before = lost_now(PROF_LOSS_THREAD_ENDED);
  prof_fiber_enter(fiber);
  begin_block();
  begin_block();
  prof_fiber_leave();
  assert_status(prof_fiber_destroy(fiber), PROF_OK);
  assert_int_equal(lost_now(PROF_LOSS_THREAD_ENDED) - before, 2);
  prof_fiber_enter(within);
  PROF_INSTANT("within", "test", PROF_NO_ARGS);
  assert_status(prof_fiber_destroy(within), PROF_OK); /* leaves it */
  PROF_INSTANT("outside", "test", PROF_NO_ARGS);
  events_stop_and_read();
  assert_int_equal(events.count, 2);
  assert_int_equal(count_on("within", "within"), 1);
  assert_int_equal(count_on("within", "outside"), 0);
}

static void a_null_place_is_refused(void **state) {
  (void)state;
  assert_status(prof_fiber_create("x", NULL), PROF_E_INVALID);
  assert_error_has("fiber_out");
}

/* ---- threads ---- */

static pthread_barrier_t at_each;

static void *refused_elsewhere(void *fiber) {
  int *const seen = calloc(2, sizeof *seen);
  seen[0] = prof_fiber_enter(fiber);
  seen[1] = prof_fiber_destroy(fiber);
  PROF_INSTANT("elsewhere", "test", PROF_NO_ARGS);
  return seen;
}

static void it_is_on_one_thread_at_a_time(void **state) {
  (void)state;
  prof_fiber *const fiber = new_fiber("one");
  pthread_t other;
  void *seen = NULL;
  record_afresh();
  prof_fiber_enter(fiber);
  PROF_INSTANT("here", "test", PROF_NO_ARGS);
  pthread_create(&other, NULL, refused_elsewhere, fiber);
  pthread_join(other, &seen);
  assert_int_equal(((int *)seen)[0], PROF_E_INVALID);
  assert_int_equal(((int *)seen)[1], PROF_E_INVALID);
  free(seen);
  prof_fiber_leave();
  assert_status(prof_fiber_destroy(fiber), PROF_OK);
  events_stop_and_read();
  assert_event_total(2);
  assert_int_equal(count_on("one", "here"), 1);
  assert_int_equal(count_on("one", "elsewhere"), 0);
}

/* Two threads hand two fibers to each other, again and again; each scope begins on one and ends on
   the other. */
typedef struct handed {
  prof_fiber *fiber;
  uint64_t open;
} handed;
static handed hands[2];

static void *hand_over(void *which) {
  const int me = *(const int *)which;
  for (int round = 0; round < 2000; round++) {
    handed *const h = &hands[(me + round) % 2];
    prof_fiber_enter(h->fiber);
    end_block(h->open);
    h->open = begin_block();
    prof_fiber_leave();
    PROF_INSTANT("own", "test", PROF_NO_ARGS);
    pthread_barrier_wait(&at_each);
  }
  return NULL;
}

static void it_goes_from_thread_to_thread(void **state) {
  (void)state;
  static const int numbers[2] = {0, 1};
  pthread_t threads[2];
  pthread_barrier_init(&at_each, NULL, 2);
  record_afresh();
  for (int i = 0; i < 2; i++) hands[i] = (handed){new_fiber(i ? "second" : "first"), 0};
  for (int i = 0; i < 2; i++)
    pthread_create(&threads[i], NULL, hand_over, (void *)(uintptr_t)&numbers[i]);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < 2; i++) {
    prof_fiber_enter(hands[i].fiber);
    end_block(hands[i].open);
    assert_status(prof_fiber_destroy(hands[i].fiber), PROF_OK);
  }
  assert_status(prof_stop(), PROF_OK);
  prof_health health = {.size = sizeof health};
  assert_status(prof_health(&health), PROF_OK);
  assert_int_equal(health.recorded_count, 2 * 2000 * 2);
  assert_int_equal(health.stray_count, 0);
  for (int i = 0; i < PROF_LOSS_COUNT; i++)
    if (i != PROF_LOSS_CLEARED) assert_int_equal(health.lost_count[i], 0);
  pthread_barrier_destroy(&at_each);
}

static void *end_inside(void *fiber) {
  PROF_INSTANT("of the thread itself", "test", PROF_NO_ARGS); /* its end is seen then */
  prof_fiber_enter(fiber);
  PROF_INSTANT("in the ended thread", "test", PROF_NO_ARGS);
  return NULL;
}

/* It should not: the thread's own track must end all the same. */
static void a_thread_may_end_in_a_fiber(void **state) {
  (void)state;
  prof_fiber *const fiber = new_fiber("left");
  pthread_t other;
  record_afresh();
  pthread_create(&other, NULL, end_inside, fiber);
  pthread_join(other, NULL);
  PROF_INSTANT("after", "test", PROF_NO_ARGS);
  events_stop_and_read();
  assert_event_total(3);
  assert_int_equal(count_on("left", "in the ended thread"), 1);
  assert_status(prof_fiber_destroy(fiber), PROF_OK);
}

/* ---- handlers ---- */

static uint32_t handled; /* atomic */
static void record_in_handler(int number) {
  (void)number;
  end_block(begin_block());
  __atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
}

/* Handlers record at any point: between the stores of a switch, at a fiber's first record and at
   its end. */
static void handlers_record_at_any_moment(void **state) {
  (void)state;
  const struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
  struct sigaction action = {.sa_handler = record_in_handler, .sa_flags = SA_RESTART}, was;
  record_afresh();
  handled = 0;
  sigaction(SIGALRM, &action, &was);
  setitimer(ITIMER_REAL, &often, NULL);
  uint64_t count = 0;
  while (__atomic_load_n(&handled, __ATOMIC_RELAXED) < 300) {
    prof_fiber *const a = new_fiber("a"), *const b = new_fiber("b");
    for (int i = 0; i < 20; i++, count += 2) {
      prof_fiber_enter(a);
      const uint64_t in_a = begin_block();
      prof_fiber_enter(b);
      end_block(begin_block());
      prof_fiber_enter(a);
      end_block(in_a);
      prof_fiber_leave();
    }
    prof_fiber_destroy(a);
    prof_fiber_destroy(b);
  }
  setitimer(ITIMER_REAL, &never, NULL);
  sigaction(SIGALRM, &was, NULL);
  prof_health health = {.size = sizeof health};
  assert_status(prof_stop(), PROF_OK);
  assert_status(prof_health(&health), PROF_OK);
  uint64_t lost = 0;
  for (int i = 0; i < PROF_LOSS_COUNT; i++)
    lost += i == PROF_LOSS_CLEARED ? 0 : health.lost_count[i];
  assert_int_equal(health.recorded_count + lost, count + handled);
  assert_int_equal(health.stray_count, 0);
}

/* ---- forks ---- */

/* Fails by its status: what a child asserts nobody hears. */
static int in_child(prof_fiber *forked_in, prof_fiber *of_another) {
  if (prof_fiber_enter(of_another) != PROF_OK) return 1; /* the thread that was in it is not here */
  PROF_INSTANT("child in another", "test", PROF_NO_ARGS);
  prof_fiber_leave();
  if (prof_fiber_enter(forked_in) != PROF_OK) return 2;
  PROF_INSTANT("child", "test", PROF_NO_ARGS);
  prof_fiber_leave();
  PROF_INSTANT("child itself", "test", PROF_NO_ARGS);
  events_stop_and_read();
  if (events.count != 3) return 3;
  if (count_on("forked", "child") != 1 || count_on("of another", "child in another") != 1) return 4;
  return count_on("forked", "child itself") == 0 ? 0 : 5;
}

static prof_fiber *entered_there;
static void *stay_inside(void *unused) {
  prof_fiber_enter(entered_there);
  PROF_INSTANT("there", "test", PROF_NO_ARGS);
  pthread_barrier_wait(&at_each);
  pthread_barrier_wait(&at_each);
  prof_fiber_leave();
  return unused;
}

static void a_forked_child_has_its_fibers(void **state) {
  (void)state;
  prof_fiber *const fiber = new_fiber("forked");
  pthread_t other;
  int status = -1;
  record_afresh();
  entered_there = new_fiber("of another");
  pthread_barrier_init(&at_each, NULL, 2);
  pthread_create(&other, NULL, stay_inside, NULL);
  pthread_barrier_wait(&at_each);
  prof_fiber_enter(fiber);
  PROF_INSTANT("parent", "test", PROF_NO_ARGS);
  const pid_t child = fork();
  if (child == 0) _exit(in_child(fiber, entered_there));
  waitpid(child, &status, 0);
  assert_int_equal(status, 0);
  PROF_INSTANT("parent later", "test", PROF_NO_ARGS);
  prof_fiber_leave();
  pthread_barrier_wait(&at_each);
  pthread_join(other, NULL);
  assert_status(prof_fiber_destroy(fiber), PROF_OK);
  assert_status(prof_fiber_destroy(entered_there), PROF_OK);
  events_stop_and_read();
  assert_event_total(3);
  assert_int_equal(count_on("forked", "parent") + count_on("forked", "parent later"), 2);
  pthread_barrier_destroy(&at_each);
}

int main(void) {
  const struct CMUnitTest tests[] = {
#if !WITH_TSAN
    cmocka_unit_test(scopes_stay_in_their_fiber),
#endif
    cmocka_unit_test(a_fiber_is_a_track_with_a_number_of_its_own),
    cmocka_unit_test(a_table_by_threads_names_the_fiber),
    cmocka_unit_test(it_lives_over_captures),
    cmocka_unit_test(what_it_leaves_open_is_lost),
    cmocka_unit_test(a_null_place_is_refused),
    cmocka_unit_test(it_is_on_one_thread_at_a_time),
    cmocka_unit_test(it_goes_from_thread_to_thread),
    cmocka_unit_test(a_thread_may_end_in_a_fiber),
    cmocka_unit_test(handlers_record_at_any_moment),
    cmocka_unit_test(a_forked_child_has_its_fibers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
