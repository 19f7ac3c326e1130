/* recorded + lost + open as it is read while threads begin, end, skip, hand over and leave scopes,
   with more open than there are entries. It is never more than what had begun when the reading was
   over, nor less than what had ended when it began. By prof_get(), by the capture file, and by
   prof_health_get(). */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <prof/profiler.h>
#include <prof/trace.h>

#include "fault/support/captures.h"
#include "fault/support/skip.h"
#include "hang_guard.h"

enum { WORKERS = 3, TASKS = 90, LEFT = 70, READINGS = SKIP_SANITIZED ? 10 : 60 };

typedef struct worker {
  _Alignas(64) uint64_t begun; /* announced; atomic */
  uint64_t ended;              /* atomic */
  uint64_t tasks[TASKS];
  uint64_t random;
} worker;

static struct {
  worker workers[WORKERS + 1]; /* the last one's threads end with scopes open */
  uint64_t inbox[WORKERS];     /* scopes handed over; atomic */
  uint32_t quit;               /* atomic */
  pthread_barrier_t rested;    /* of the workers */
} own;

static void add(uint64_t *count, uint64_t more) {
  __atomic_fetch_add(count, more, __ATOMIC_SEQ_CST);
}

static uint64_t next_random(worker *w) {
  w->random ^= w->random << 13;
  w->random ^= w->random >> 7;
  return w->random ^= w->random << 17;
}

static uint64_t begin_call(worker *w, int has_text) {
  const prof_arg items[] = {{"text", PROF_ARG_STRING, PROF_NUL_TERMINATED, {.text = "a text"}}};
  const prof_args args = {items, 1, PROF_ARGS_PAIRS, NULL};
  add(&w->begun, 1);
  return prof_scope_begin(1, "task", "tasks", has_text ? &args : NULL);
}
static void end_call(worker *w, uint64_t start) {
  prof_scope_end(start);
  add(&w->ended, 1);
}

static void nest(worker *w, int depth) {
  add(&w->begun, 1);
  WITH_BASE_PROFILER(PROF_HOST, "nested", "tasks", PROF_NO_ARGS, {
    if (depth > 0) nest(w, depth - 1);
  });
  add(&w->ended, 1);
}

/* Two that have no end of their own. */
static void skip_some(worker *w) {
  static prof_site site = {.file = "", .function = "", .level = 1};
  add(&w->begun, 3);
  const uint64_t outer = prof_i_begin_1(&site, "outer", "tasks");
  prof_i_begin_1(&site, "left", "tasks");
  prof_i_begin_1(&site, "left", "tasks");
  prof_i_end_1(outer);
  add(&w->ended, 3);
}

/* Its receiver counts its end. */
static void hand_over(worker *w, int to) {
  uint64_t none = 0;
  if (__atomic_load_n(&own.inbox[to], __ATOMIC_RELAXED)) return;
  const uint64_t start = begin_call(w, 1);
  if (!start || !__atomic_compare_exchange_n(&own.inbox[to], &none, start, false, __ATOMIC_ACQ_REL,
                                             __ATOMIC_RELAXED))
    end_call(w, start);
}
static void end_handed_over(worker *w, int number) {
  const uint64_t start = __atomic_exchange_n(&own.inbox[number], 0, __ATOMIC_ACQ_REL);
  if (start) end_call(w, start);
}

static void *work(void *argument) {
  worker *const w = argument;
  const int number = (int)(w - own.workers);
  w->random = 0x9e3779b97f4a7c15u + (uint64_t)number;
  for (int i = 0; i < TASKS; i++) w->tasks[i] = begin_call(w, i % 2);
  while (!__atomic_load_n(&own.quit, __ATOMIC_RELAXED)) {
    uint64_t *const task = &w->tasks[next_random(w) % TASKS];
    end_call(w, *task);
    *task = begin_call(w, next_random(w) % 4 == 0);
    nest(w, (int)(next_random(w) % 12));
    skip_some(w);
    hand_over(w, (number + 1) % WORKERS);
    end_handed_over(w, number);
  }
  pthread_barrier_wait(&own.rested); /* what was handed over ends before its thread does */
  end_handed_over(w, number);
  pthread_barrier_wait(&own.rested);
  for (int i = TASKS; i-- > 0;) end_call(w, w->tasks[i]);
  return NULL;
}

static void *leave_scopes_open(void *argument) {
  worker *const w = argument;
  for (int i = 0; i < LEFT; i++) begin_call(w, i % 2);
  return NULL;
}

static void *come_and_go(void *argument) {
  worker *const w = argument;
  while (!__atomic_load_n(&own.quit, __ATOMIC_RELAXED)) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, leave_scopes_open, w) != 0) abort();
    pthread_join(thread, NULL);
    add(&w->ended, LEFT);
  }
  return NULL;
}

/* All begin, and then all end while others read: nothing that begins meanwhile hides a scope that
   counts twice. Half of the scopes end on another thread. */
enum { ENDS = 300, TURNS = SKIP_SANITIZED ? 20 : 300 };
static uint64_t to_end[WORKERS][ENDS];

static void *begin_and_end(void *argument) {
  worker *const w = argument;
  const int number = (int)(w - own.workers), next = (number + 1) % WORKERS;
  for (int turn = 0; turn < TURNS; turn++) {
    for (int i = 0; i < ENDS; i++) to_end[number][i] = begin_call(w, i % 3 == 0);
    pthread_barrier_wait(&own.rested);
    for (int i = 0; i < ENDS; i++) {
      const int place = (i * 7 + turn) % ENDS;
      end_call(w, to_end[place % 2 ? number : next][place]);
    }
    pthread_barrier_wait(&own.rested); /* the reader goes on, too */
  }
  return NULL;
}

/* ---- what is read ---- */

static uint64_t all_begun(void) {
  uint64_t sum = 0;
  for (int i = 0; i <= WORKERS; i++)
    sum += __atomic_load_n(&own.workers[i].begun, __ATOMIC_SEQ_CST);
  return sum;
}
static uint64_t all_ended(void) {
  uint64_t sum = 0;
  for (int i = 0; i <= WORKERS; i++)
    sum += __atomic_load_n(&own.workers[i].ended, __ATOMIC_SEQ_CST);
  return sum;
}

static uint64_t lost_in(const uint64_t *lost) {
  uint64_t sum = 0;
  for (int i = 0; i < PROF_LOSS_COUNT; i++) sum += lost[i];
  return sum;
}

static void check_between(const char *who, uint64_t sum, uint64_t least, uint64_t most) {
  if (sum < least || sum > most)
    fail_msg("%s: %llu recorded, lost or open; %llu had ended, %llu had begun", who,
             (unsigned long long)sum, (unsigned long long)least, (unsigned long long)most);
}

static void check_trace(const char *who, uint64_t least, prof_trace *trace) {
  const uint64_t most = all_begun();
  prof_trace_info info = {.size = sizeof info};
  prof_trace_info_get(trace, &info);
  prof_trace_destroy(trace);
  assert_int_equal(info.bad_count, 0);
  check_between(who, info.event_count + info.open_below_count + lost_in(info.lost_count), least,
                most);
}

static void read_all(const char *path) {
  prof_trace *trace = NULL;
  prof_health health = {.size = sizeof health};
  uint64_t least = all_ended();
  assert_int_equal(prof_get(&trace), PROF_OK);
  check_trace("prof_get", least, trace);
  least = all_ended();
  if (path) {
    assert_int_equal(prof_trace_open(path, &trace), PROF_OK);
    check_trace("the file", least, trace);
  }
  least = all_ended();
  assert_int_equal(prof_health_get(&health), PROF_OK);
  /* A thread may stand between its record and its entry: health does not look for that. */
  check_between("health", health.recorded_count + health.open_count + lost_in(health.lost_count),
                least, all_begun() + WORKERS + 1);
}

static void read_under_load(uint32_t policy, uint64_t cap_bytes) {
  pthread_t threads[WORKERS + 1];
  prof_health health = {.size = sizeof health};
  const prof_options options = {
      .size = sizeof options,
      .policy = policy,
      .path = policy == PROF_POLICY_STREAM ? captures_path("out.json") : NULL,
      .cap_bytes = cap_bytes};
  hang_guard();
  memset(&own, 0, sizeof own);
  pthread_barrier_init(&own.rested, NULL, WORKERS);
  assert_int_equal(prof_start_with(&options), PROF_OK);
  prof_health_get(&health);
  for (int i = 0; i <= WORKERS; i++)
    assert_int_equal(
        pthread_create(&threads[i], NULL, i < WORKERS ? work : come_and_go, &own.workers[i]), 0);
  for (int i = 0; i < READINGS; i++)
    read_all(policy == PROF_POLICY_STREAM ? health.capture_path : NULL);
  __atomic_store_n(&own.quit, 1, __ATOMIC_RELAXED);
  for (int i = 0; i <= WORKERS; i++) pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&own.rested);
  const uint64_t begun = all_begun();
  assert_int_equal(all_ended(), begun);
  assert_int_equal(prof_stop(), PROF_OK);
  prof_health_get(&health);
  assert_int_equal(health.open_count, 0);
  assert_int_equal(health.stray_count, 0);
  assert_int_equal(health.recorded_count + lost_in(health.lost_count), begun);
  read_all(policy == PROF_POLICY_STREAM ? health.capture_path : NULL);
}

static void read_ends(uint32_t policy, uint64_t cap_bytes) {
  pthread_t threads[WORKERS];
  const prof_options options = {.size = sizeof options, .policy = policy, .cap_bytes = cap_bytes};
  hang_guard();
  memset(&own, 0, sizeof own);
  pthread_barrier_init(&own.rested, NULL, WORKERS + 1);
  assert_int_equal(prof_start_with(&options), PROF_OK);
  for (int i = 0; i < WORKERS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, begin_and_end, &own.workers[i]), 0);
  for (int turn = 0; turn < TURNS; turn++) {
    pthread_barrier_wait(&own.rested);
    do read_all(NULL);
    while (all_ended() < all_begun());
    pthread_barrier_wait(&own.rested);
  }
  for (int i = 0; i < WORKERS; i++) pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&own.rested);
  read_all(NULL);
  assert_int_equal(prof_stop(), PROF_OK);
}

static void ends_add_up_while_they_are_read(void **state) {
  (void)state;
  read_ends(PROF_POLICY_RING, 4 << 20);
}
static void ends_without_room_add_up_while_they_are_read(void **state) {
  (void)state;
  read_ends(PROF_POLICY_KEEP, 1 << 20);
}

static void a_ring_adds_up_while_it_is_read(void **state) {
  (void)state;
  read_under_load(PROF_POLICY_RING, 4 << 20);
}
static void a_full_capture_adds_up_while_it_is_read(void **state) {
  (void)state;
  read_under_load(PROF_POLICY_KEEP, 4 << 20);
}
static void a_stream_adds_up_while_it_is_read(void **state) {
  (void)state;
  read_under_load(PROF_POLICY_STREAM, 16 << 20);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ends_add_up_while_they_are_read),
      cmocka_unit_test(ends_without_room_add_up_while_they_are_read),
      cmocka_unit_test(a_ring_adds_up_while_it_is_read),
      cmocka_unit_test(a_full_capture_adds_up_while_it_is_read),
      cmocka_unit_test(a_stream_adds_up_while_it_is_read),
  };
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  if (!captures_make_folder(false)) return 1;
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  captures_remove_folder();
  return failed;
}
