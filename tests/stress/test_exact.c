/* recorded + lost = attempted, exactly: by thread and by reason, for every policy, as health
   reports it and as the reader does. A handler that itself records interrupts every thread, 10 000
   times a second. An attempt is counted where the macro evaluates its arguments: once for each
   scope whose begin saw the level on.

   PROF_EXACT_ATTEMPTS: how many in all (20 million). */
#define _GNU_SOURCE
#include <errno.h>
#include <prof/trace.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/sanitizers.h"
#include "fault/support/captures.h"
#include "fault/support/skip.h"

enum {
  THREADS = 4,
  HANDLER_EVERY_NS = 100000,
  EVENTS_A_ROUND = 16,
  CHURN_THREADS_AT_ONCE = 4,
  MEDDLE_TIMES = 1000,
  MEDDLE_TIMES_LEAST = 20,
  NO_ERRNO = 4711
};
static const uint64_t meddle_ns = 3000000000u;

typedef struct worker {
  uint64_t wanted;
  uint64_t attempts;         /* of the thread itself */
  uint64_t handler_attempts; /* of the handler that interrupts it */
  uint64_t handler_runs;
  uint64_t tid;
  timer_t timer;
  uint32_t has_timer;
} worker;

static __thread worker *volatile me;

static struct {
  uint64_t attempts; /* in all tests together */
  worker workers[THREADS];
  pthread_barrier_t begun, handed_over, rested, read;
  uint64_t inbox[THREADS]; /* a scope that another thread began, and this one is to end; 0: none */
  bool hands_over;
  uint32_t quit;
  int spoilt_errno;                     /* what a scope left in errno, where NO_ERRNO was */
  uint64_t done_attempts, done_handler; /* of all tests, for the last line */
} own;

/* ---- what is recorded ---- */

/* only its thread counts; others look */
#define COUNT(counter) __atomic_store_n(&(counter), (counter) + 1, __ATOMIC_RELAXED)
#define COUNTED(value) (COUNT(worker_of_now->attempts), (value))
#define HANDLER_COUNTED(value) (COUNT(worker_of_now->handler_attempts), (value))

static void on_timer(int signal) {
  worker *const worker_of_now = me;
  const int saved = errno;
  (void)signal;
  if (!worker_of_now) return;
  errno = NO_ERRNO;
  if (worker_of_now->handler_runs++ % 4 == 0) {
    WITH_BASE_PROFILER(PROF_HOST, HANDLER_COUNTED("handler"), "handler",
                       PROF_ARGS("run", worker_of_now->handler_runs), {});
  } else {
    WITH_BASE_PROFILER(HANDLER_COUNTED(PROF_HOST), "handler", "handler", PROF_NO_ARGS, {});
  }
  if (errno != NO_ERRNO) __atomic_store_n(&own.spoilt_errno, errno, __ATOMIC_RELAXED);
  errno = saved;
}

static void one_round(worker *worker_of_now) {
  for (int i = 0; i < EVENTS_A_ROUND - 6; i++)
    WITH_BASE_PROFILER(COUNTED(PROF_HOST), "plain", "plain", PROF_NO_ARGS, {});
  WITH_BASE_PROFILER(COUNTED(PROF_HOST), "outer", "outer", PROF_NO_ARGS, {
    WITH_BASE_PROFILER(PROF_HOST, COUNTED("a name of its own"), "named",
                       PROF_ARGS("i", 1, "text", "some text"), {});
    WITH_BASE_PROFILER_LEVEL(2, PROF_HOST, COUNTED("never"), "level 2", PROF_NO_ARGS, {});
    PROF_INSTANT(COUNTED("instant"), "instant", PROF_NO_ARGS);
    PROF_COUNTER("counter", COUNTED(1));
  });
  WITH_BASE_PROFILER(PROF_HOST, "arguments", "arguments", PROF_ARGS("i", COUNTED(7)), {});
  prof_scope_end(prof_scope_begin_at(&(prof_site){.file = "", .function = "", .level = 2}, "never",
                                     "level 2"));
}

/* To the next worker, unless it has not yet ended what it was given. */
static void hand_over(worker *worker_of_now, int to) {
  uint64_t none = 0;
  if (__atomic_load_n(&own.inbox[to], __ATOMIC_RELAXED)) return;
  COUNT(worker_of_now->attempts);
  const uint64_t start = prof_scope_begin(1, "handed over", "stress", NULL);
  if (!__atomic_compare_exchange_n(&own.inbox[to], &none, start, false, __ATOMIC_ACQ_REL,
                                   __ATOMIC_RELAXED))
    prof_scope_end(start);
}

static void end_what_was_handed_over(int to) {
  prof_scope_end(__atomic_exchange_n(&own.inbox[to], 0, __ATOMIC_ACQ_REL));
}

/* ---- threads ---- */

static void begin_signals(worker *w) {
  struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN};
  const struct itimerspec every = {{0, HANDLER_EVERY_NS}, {0, HANDLER_EVERY_NS}};
  event._sigev_un._tid = (pid_t)w->tid;
  w->has_timer = timer_create(CLOCK_MONOTONIC, &event, &w->timer) == 0 &&
                 timer_settime(w->timer, 0, &every, NULL) == 0;
}

/* From now on the handler does not come any more. */
static void end_signals(worker *w) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGRTMIN);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  if (w->has_timer) timer_delete(w->timer);
}

static void *work(void *argument) {
  worker *const w = argument;
  w->tid = (uint64_t)syscall(SYS_gettid);
  me = w;
  /* who meddles comes first, however few processors there are */
  if (w->wanted == UINT64_MAX) setpriority(PRIO_PROCESS, (id_t)w->tid, 10);
  one_round(w); /* it has its place in the arena before another fills it */
  pthread_barrier_wait(&own.begun);
  begin_signals(w);
  const int number = (int)(w - own.workers);
  while (w->attempts < w->wanted && !__atomic_load_n(&own.quit, __ATOMIC_RELAXED)) {
    one_round(w);
    if (!own.hands_over) continue;
    hand_over(w, (number + 1) % THREADS);
    end_what_was_handed_over(number);
  }
  end_signals(w);
  pthread_barrier_wait(&own.handed_over);
  end_what_was_handed_over(number);
  pthread_barrier_wait(&own.rested);
  pthread_barrier_wait(&own.read); /* alive until its counts have been read */
  return NULL;
}

static void start(uint32_t policy, uint64_t cap_bytes, uint32_t helper_thread) {
  const prof_options options = {
      .size = sizeof options,
      .policy = policy,
      .path = policy == PROF_POLICY_STREAM ? captures_path("out.json") : NULL,
      .cap_bytes = cap_bytes,
      .helper_thread = helper_thread};
  if (prof_start_with(&options) != PROF_OK) fail_msg("prof_start_with: %s", prof_last_error());
}

static void begin_work(pthread_t *threads, uint64_t attempts) {
  memset(own.workers, 0, sizeof own.workers);
  own.quit = 0;
  pthread_barrier_init(&own.begun, NULL, THREADS + 1);
  pthread_barrier_init(&own.handed_over, NULL, THREADS);
  pthread_barrier_init(&own.rested, NULL, THREADS + 1);
  pthread_barrier_init(&own.read, NULL, THREADS + 1);
  for (int i = 0; i < THREADS; i++) {
    own.workers[i].wanted = attempts / THREADS;
    assert_int_equal(pthread_create(&threads[i], NULL, work, &own.workers[i]), 0);
  }
  pthread_barrier_wait(&own.begun);
}

static void end_work(pthread_t *threads) {
  pthread_barrier_wait(&own.read);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&own.begun);
  pthread_barrier_destroy(&own.handed_over);
  pthread_barrier_destroy(&own.rested);
  pthread_barrier_destroy(&own.read);
}

static uint64_t attempts_of(const worker *w) { return w->attempts + w->handler_attempts; }

static uint64_t all_attempts(void) {
  uint64_t sum = 0;
  for (int i = 0; i < THREADS; i++)
    sum += __atomic_load_n(&own.workers[i].attempts, __ATOMIC_RELAXED) +
           __atomic_load_n(&own.workers[i].handler_attempts, __ATOMIC_RELAXED);
  return sum;
}

/* ---- the balance ---- */

#define BIT(loss) (1u << PROF_LOSS_##loss)
/* Of a capture in memory with blocks, from 16 MiB on. All may be taken while a thread that has no
   processor is opening the last one. */
#define FULL_OR_OPENING (BIT(FULL) | BIT(NO_CHUNK))

static void check_losses(const char *who, const uint64_t *lost, uint32_t allowed) {
  for (int i = 0; i < PROF_LOSS_COUNT; i++)
    if (lost[i] && !(allowed >> i & 1))
      fail_msg("%s: %llu lost as '%s'", who, (unsigned long long)lost[i], prof_loss_name(i));
}

static uint64_t sum_of(const uint64_t *lost) {
  uint64_t sum = 0;
  for (int i = 0; i < PROF_LOSS_COUNT; i++) sum += lost[i];
  return sum;
}

static void check_health(uint64_t attempts, uint32_t allowed) {
  prof_health health = {.size = sizeof health};
  assert_int_equal(prof_health(&health), PROF_OK);
  check_losses("health", health.lost_count, allowed);
  const uint64_t lost = sum_of(health.lost_count);
  if (health.recorded_count + lost != attempts)
    fail_msg("health: %llu recorded + %llu lost = %llu, %llu were attempted; %llu open, %llu stray",
             (unsigned long long)health.recorded_count, (unsigned long long)lost,
             (unsigned long long)(health.recorded_count + lost), (unsigned long long)attempts,
             (unsigned long long)health.open_count, (unsigned long long)health.stray_count);
}

static const worker *worker_with(uint64_t tid) {
  for (int i = 0; i < THREADS; i++)
    if (own.workers[i].tid == tid) return &own.workers[i];
  return NULL;
}

/* Overwritten is counted over all: then a thread's own line says less. */
static void check_threads(const prof_trace *trace, uint32_t thread_count, bool by_thread) {
  for (uint32_t i = 0; i < thread_count; i++) {
    prof_trace_thread thread = {.size = sizeof thread};
    assert_int_equal(prof_trace_thread_get(trace, i, &thread), PROF_OK);
    const worker *const w = worker_with(thread.tid);
    if (!w) continue;
    const uint64_t seen = thread.event_count + sum_of(thread.lost_count), attempts = attempts_of(w);
    if (by_thread ? seen != attempts : seen > attempts)
      fail_msg("thread %llu: %llu events + %llu lost = %llu, %llu were attempted",
               (unsigned long long)thread.tid, (unsigned long long)thread.event_count,
               (unsigned long long)sum_of(thread.lost_count), (unsigned long long)seen,
               (unsigned long long)attempts);
  }
}

static void check_trace(const prof_trace *trace, uint64_t attempts, uint32_t allowed,
                        bool by_thread) {
  prof_trace_info info = {.size = sizeof info};
  assert_int_equal(prof_trace_info_get(trace, &info), PROF_OK);
  check_losses("the reader", info.lost_count, allowed);
  const uint64_t lost = sum_of(info.lost_count);
  if (info.event_count + lost != attempts || info.bad_count || info.open_count)
    fail_msg("the reader: %llu events + %llu lost = %llu, %llu were attempted; %llu open, %llu bad",
             (unsigned long long)info.event_count, (unsigned long long)lost,
             (unsigned long long)(info.event_count + lost), (unsigned long long)attempts,
             (unsigned long long)info.open_count, (unsigned long long)info.bad_count);
  check_threads(trace, info.thread_count, by_thread);
}

static void check_own_trace(uint64_t attempts, uint32_t allowed, bool by_thread) {
  prof_trace *trace = NULL;
  if (prof_get(&trace) != PROF_OK) fail_msg("prof_get: %s", prof_last_error());
  check_trace(trace, attempts, allowed, by_thread);
  prof_trace_destroy(trace);
}

static void check_file(uint64_t attempts, uint32_t allowed, bool by_thread) {
  prof_trace *trace = NULL;
  prof_health health = {.size = sizeof health};
  prof_health(&health);
  if (!health.capture_path[0]) return;
  if (prof_trace_open(health.capture_path, &trace) != PROF_OK)
    fail_msg("prof_trace_open: %s", prof_last_error());
  check_trace(trace, attempts, allowed, by_thread);
  prof_trace_destroy(trace);
}

/* All workers rest, and are alive. */
static void check_all(uint32_t allowed, bool by_thread) {
  const uint64_t attempts = all_attempts();
  check_health(attempts, allowed);
  check_own_trace(attempts, allowed, by_thread);
  check_file(attempts, allowed, by_thread);
}

static void report(const char *what) {
  prof_health health = {.size = sizeof health};
  uint64_t handler = 0;
  prof_health(&health);
  for (int i = 0; i < THREADS; i++) handler += own.workers[i].handler_attempts;
  own.done_attempts += all_attempts();
  own.done_handler += handler;
  print_message("  %-22s %9llu attempted (%llu by handlers): %llu recorded", what,
                (unsigned long long)all_attempts(), (unsigned long long)handler,
                (unsigned long long)health.recorded_count);
  for (int i = 0; i < PROF_LOSS_COUNT; i++)
    if (health.lost_count[i])
      print_message(", %llu %s", (unsigned long long)health.lost_count[i], prof_loss_name(i));
  print_message("\n");
}

static int clean(void **state) {
  (void)state;
  prof_stop();
  /* its runtime looks for a symbolizer inside of our loads */
  if (!WITH_TSAN) assert_int_equal(own.spoilt_errno, 0);
  /* Another arena: whatever a test has left is gone with the previous one. */
  static uint64_t cap_bytes = 1 << 20;
  const prof_options options = {.size = sizeof options, .cap_bytes = cap_bytes += 1 << 16};
  prof_start_with(&options);
  prof_stop();
  captures_clear();
  return 0;
}

/* ---- the policies ---- */

static void one_policy(const char *what, uint32_t policy, uint64_t cap_bytes, uint32_t helper,
                       uint64_t attempts, uint32_t allowed) {
  pthread_t threads[THREADS];
  const bool by_thread = policy != PROF_POLICY_RING;
  start(policy, cap_bytes, helper);
  begin_work(threads, attempts);
  pthread_barrier_wait(&own.rested);
  check_all(allowed, by_thread);
  prof_stop();
  check_all(allowed, by_thread);
  end_work(threads);
  check_health(all_attempts(), allowed);
  check_own_trace(all_attempts(), allowed, false);
  report(what);
}

static void keep_counts_what_found_no_room(void **state) {
  (void)state;
  one_policy("keep, 8 MiB", PROF_POLICY_KEEP, 8 << 20, 0, own.attempts / 5, BIT(FULL));
}
static void a_ring_counts_what_it_overwrites(void **state) {
  (void)state;
  one_policy("ring, 4 MiB", PROF_POLICY_RING, 4 << 20, 0, own.attempts / 4,
             BIT(OVERWRITTEN) | BIT(NO_CHUNK));
}
static void a_stream_counts_what_is_past_its_cap(void **state) {
  (void)state;
  one_policy("stream, 16 MiB", PROF_POLICY_STREAM, 16 << 20, 0, own.attempts / 10, BIT(FULL));
}
/* A request for any number gives no more than the disk has room for: 40 bytes are enough for
   one. */
static void one_stream_with_room(const char *what, uint32_t helper, uint64_t attempts,
                                 uint32_t allowed) {
  const uint64_t most = attempts < 200000000 ? attempts : 200000000;
  one_policy(what, PROF_POLICY_STREAM, most * 40 + (64 << 20), helper, most, allowed);
}
static void a_stream_with_room_loses_nothing(void **state) {
  (void)state;
  one_stream_with_room("stream", 0, own.attempts / 5, 0);
}
static void a_helper_counts_what_found_no_chunk_ready(void **state) {
  (void)state;
  one_stream_with_room("stream with helper", 1, own.attempts / 10, BIT(NO_CHUNK));
}
static void a_ring_with_helper_counts_all_that_goes(void **state) {
  (void)state;
  one_policy("ring with helper", PROF_POLICY_RING, 8 << 20, 1, own.attempts / 20,
             BIT(OVERWRITTEN) | BIT(NO_CHUNK));
}

/* ---- others meddle ---- */

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Until somebody has done something more, or for a while. */
static void wait_for_work(void) {
  const uint64_t until = now_ns() + 20000000, before = all_attempts();
  while (all_attempts() == before && now_ns() < until) sched_yield();
}

/* Meddles that often while the workers work, but on a slow machine for no more than meddle_ns. */
static uint64_t meddle_often(void (*meddle)(void)) {
  const uint64_t until = now_ns() + meddle_ns;
  uint64_t times = 0;
  while (times < MEDDLE_TIMES && (now_ns() < until || times < MEDDLE_TIMES_LEAST)) {
    wait_for_work();
    meddle();
    times++;
  }
  __atomic_store_n(&own.quit, 1, __ATOMIC_RELAXED);
  return times;
}

static void under(const char *what, uint32_t policy, uint64_t cap_bytes, uint32_t helper,
                  void (*meddle)(void), uint32_t allowed) {
  pthread_t threads[THREADS];
  start(policy, cap_bytes, helper);
  begin_work(threads, UINT64_MAX);
  const uint64_t times = meddle_often(meddle);
  prof_start(1); /* whatever the last was; ends that are late come before the barrier */
  pthread_barrier_wait(&own.rested);
  check_all(allowed, false);
  prof_stop();
  check_all(allowed, false);
  end_work(threads);
  check_health(all_attempts(), allowed);
  report(what);
  print_message("  %-22s %9llu times\n", "", (unsigned long long)times);
}

static void stop_and_start(void) {
  prof_stop();
  sched_yield();
  prof_start(1);
  sched_yield();
}
static void stop_clear_and_start(void) {
  prof_clear();
  stop_and_start();
  prof_clear();
}
static void clear(void) {
  prof_clear();
  sched_yield();
}

/* Between what was attempted before, less what was under way, and what was after. */
static void check_between(const char *who, uint64_t seen, uint64_t before) {
  enum { UNDER_WAY = 4 }; /* a thread's: a scope in a scope, and as many of its handler's */
  const uint64_t after = all_attempts();
  if (seen + THREADS * UNDER_WAY < before || seen > after)
    fail_msg("%s: %llu recorded or lost; %llu attempted before, %llu after", who,
             (unsigned long long)seen, (unsigned long long)before, (unsigned long long)after);
}

static void look(void) {
  uint64_t before = all_attempts();
  prof_health health = {.size = sizeof health};
  assert_int_equal(prof_health(&health), PROF_OK);
  check_between("health", health.recorded_count + sum_of(health.lost_count), before);
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  before = all_attempts();
  assert_int_equal(prof_get(&trace), PROF_OK);
  assert_int_equal(prof_trace_info_get(trace, &info), PROF_OK);
  check_between("prof_get", info.event_count - info.open_count + sum_of(info.lost_count), before);
  prof_trace_destroy(trace);
}

static void a_ring_may_be_looked_at_under_load(void **state) {
  (void)state;
  under("look, ring", PROF_POLICY_RING, 4 << 20, 0, look, BIT(OVERWRITTEN) | BIT(NO_CHUNK));
}
static void a_ring_with_helper_may_be_looked_at_under_load(void **state) {
  (void)state;
  under("look, ring with helper", PROF_POLICY_RING, 32 << 20, 1, look,
        BIT(OVERWRITTEN) | BIT(NO_CHUNK));
}
static void a_stream_may_be_looked_at_under_load(void **state) {
  (void)state;
  under("look, stream", PROF_POLICY_STREAM, 32 << 20, 0, look, BIT(FULL));
}

static void sessions_may_change_under_load(void **state) {
  (void)state;
  under("stop and start, keep", PROF_POLICY_KEEP, 256 << 20, 0, stop_and_start,
        BIT(LATE) | FULL_OR_OPENING);
}
static void sessions_of_a_ring_may_change_under_load(void **state) {
  (void)state;
  under("stop and start, ring", PROF_POLICY_RING, 4 << 20, 0, stop_and_start,
        BIT(LATE) | BIT(OVERWRITTEN) | BIT(NO_CHUNK));
}
static void a_clear_under_load_counts_what_it_forgets(void **state) {
  (void)state;
  under("clear, keep", PROF_POLICY_KEEP, 64 << 20, 0, clear, BIT(CLEARED) | FULL_OR_OPENING);
}
static void a_clear_of_a_ring_under_load_counts_what_it_forgets(void **state) {
  (void)state;
  under("clear, ring", PROF_POLICY_RING, 4 << 20, 0, clear,
        BIT(CLEARED) | BIT(OVERWRITTEN) | BIT(NO_CHUNK));
}
static void a_clear_of_a_stream_under_load_counts_what_it_forgets(void **state) {
  (void)state;
  under("clear, stream", PROF_POLICY_STREAM, 64 << 20, 0, clear, BIT(CLEARED) | BIT(FULL));
}
static void all_of_it_at_once_is_counted(void **state) {
  (void)state;
  under("all at once, keep", PROF_POLICY_KEEP, 16 << 20, 0, stop_clear_and_start,
        BIT(CLEARED) | FULL_OR_OPENING | BIT(LATE));
}

/* What the arena before held is gone with it: only that nobody is hurt, and that the last one is
   whole. */
static void other_arena(void) {
  static uint64_t cap_bytes = 16 << 20;
  const prof_options options = {.size = sizeof options, .cap_bytes = cap_bytes += 1 << 16};
  prof_stop();
  prof_start_with(&options);
  sched_yield();
}

static void captures_may_be_replaced_under_load(void **state) {
  pthread_t threads[THREADS];
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  (void)state;
  start(PROF_POLICY_KEEP, 16 << 20, 0);
  begin_work(threads, UINT64_MAX);
  const uint64_t times = meddle_often(other_arena);
  pthread_barrier_wait(&own.rested);
  assert_int_equal(prof_get(&trace), PROF_OK);
  prof_trace_info_get(trace, &info);
  prof_trace_destroy(trace);
  if (info.bad_count || info.open_count)
    fail_msg("%llu bad, %llu open", (unsigned long long)info.bad_count,
             (unsigned long long)info.open_count);
  end_work(threads);
  own.done_attempts += all_attempts();
  print_message("  %-22s %9llu attempted, %llu captures one after the other\n", "another capture",
                (unsigned long long)all_attempts(), (unsigned long long)times);
}

static void handed_over_scopes_are_recorded_while_others_look(void **state) {
  (void)state;
  own.hands_over = true;
  under("handed over, look", PROF_POLICY_RING, 4 << 20, 0, look, BIT(OVERWRITTEN) | BIT(NO_CHUNK));
  own.hands_over = false;
}

/* An end that finds the gate closed must neither look at a slot that moves nor leave the scope
   open. */
static void handed_over_scopes_do_not_stay_open_under_clears(void **state) {
  (void)state;
  own.hands_over = true;
  under("handed over, clear", PROF_POLICY_KEEP, 64 << 20, 0, clear, BIT(CLEARED) | FULL_OR_OPENING);
  own.hands_over = false;
}

static void scopes_may_be_handed_over_while_captures_are_replaced(void **state) {
  own.hands_over = true;
  captures_may_be_replaced_under_load(state);
  own.hands_over = false;
}

/* ---- threads come and go ---- */

static void *short_life(void *argument) {
  worker *const w = argument;
  w->tid = (uint64_t)syscall(SYS_gettid);
  me = w;
  for (uint64_t rounds = 1 + w->wanted % 40; rounds > 0; rounds--) one_round(w);
  me = NULL;
  return NULL;
}

static void churn(const char *what, uint32_t policy, uint64_t cap_bytes, uint32_t allowed,
                  void (*meddle)(void)) {
  const uint64_t wanted = own.attempts / 40;
  uint64_t attempts = 0, lives = 0;
  start(policy, cap_bytes, 0);
  while (attempts < wanted) {
    pthread_t threads[CHURN_THREADS_AT_ONCE];
    memset(own.workers, 0, sizeof own.workers);
    for (int i = 0; i < CHURN_THREADS_AT_ONCE; i++) {
      own.workers[i].wanted = lives++;
      assert_int_equal(pthread_create(&threads[i], NULL, short_life, &own.workers[i]), 0);
    }
    if (meddle) meddle();
    for (int i = 0; i < CHURN_THREADS_AT_ONCE; i++) pthread_join(threads[i], NULL);
    attempts += all_attempts();
  }
  /* their numbers go round: one that died long ago may have had the same */
  memset(own.workers, 0, sizeof own.workers);
  check_health(attempts, allowed);
  check_own_trace(attempts, allowed, false);
  check_file(attempts, allowed, false);
  prof_stop();
  check_health(attempts, allowed);
  prof_health health = {.size = sizeof health};
  prof_health(&health);
  own.done_attempts += attempts;
  print_message("  %-22s %9llu attempted by %llu threads: %llu recorded, %llu MiB of arena\n", what,
                (unsigned long long)attempts, (unsigned long long)lives,
                (unsigned long long)health.recorded_count,
                (unsigned long long)(health.arena_bytes >> 20));
  if (health.threads_seen_count > lives || health.threads_alive_count > 1)
    fail_msg("%llu threads were made; %u were seen, %u are alive", (unsigned long long)lives,
             health.threads_seen_count, health.threads_alive_count);
}

static void threads_may_come_and_go(void **state) {
  (void)state;
  churn("threads, stream", PROF_POLICY_STREAM, own.attempts + (64 << 20), 0, NULL);
}
static void threads_may_come_and_go_in_a_ring(void **state) {
  (void)state;
  churn("threads, ring", PROF_POLICY_RING, 4 << 20, BIT(OVERWRITTEN) | BIT(NO_CHUNK), NULL);
}
static void threads_may_come_and_go_while_others_clear(void **state) {
  (void)state;
  churn("threads and clear", PROF_POLICY_KEEP, 32 << 20, BIT(CLEARED) | FULL_OR_OPENING, clear);
}
static void threads_may_come_and_go_while_others_stop(void **state) {
  (void)state;
  /* where it is full, threads find no place */
  churn("threads and stop", PROF_POLICY_KEEP, 64 << 20,
        BIT(LATE) | FULL_OR_OPENING | BIT(NO_THREAD), stop_and_start);
}

int main(int argc, char **argv) {
#define ENTRY(test) cmocka_unit_test_teardown(test, clean)
  const struct CMUnitTest tests[] = {
      ENTRY(keep_counts_what_found_no_room),
      ENTRY(a_ring_counts_what_it_overwrites),
      ENTRY(a_stream_counts_what_is_past_its_cap),
      ENTRY(a_stream_with_room_loses_nothing),
      ENTRY(a_helper_counts_what_found_no_chunk_ready),
      ENTRY(a_ring_with_helper_counts_all_that_goes),
      ENTRY(a_ring_may_be_looked_at_under_load),
      ENTRY(a_ring_with_helper_may_be_looked_at_under_load),
      ENTRY(a_stream_may_be_looked_at_under_load),
      ENTRY(sessions_may_change_under_load),
      ENTRY(sessions_of_a_ring_may_change_under_load),
      ENTRY(a_clear_under_load_counts_what_it_forgets),
      ENTRY(a_clear_of_a_ring_under_load_counts_what_it_forgets),
      ENTRY(a_clear_of_a_stream_under_load_counts_what_it_forgets),
      ENTRY(all_of_it_at_once_is_counted),
      ENTRY(captures_may_be_replaced_under_load),
      ENTRY(handed_over_scopes_are_recorded_while_others_look),
      ENTRY(handed_over_scopes_do_not_stay_open_under_clears),
      ENTRY(scopes_may_be_handed_over_while_captures_are_replaced),
      ENTRY(threads_may_come_and_go),
      ENTRY(threads_may_come_and_go_in_a_ring),
      ENTRY(threads_may_come_and_go_while_others_clear),
      ENTRY(threads_may_come_and_go_while_others_stop),
  };
  const char *const attempts = getenv("PROF_EXACT_ATTEMPTS");
  const struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
  own.attempts = attempts ? strtoull(attempts, NULL, 0) : SKIP_SANITIZED ? 1000000 : 5000000;
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  if (sigaction(SIGRTMIN, &action, NULL) != 0 || !captures_make_folder(false)) return 1;
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  print_message("%llu attempted, %llu of them by handlers\n", (unsigned long long)own.done_attempts,
                (unsigned long long)own.done_handler);
  captures_remove_folder();
  return failed;
}
