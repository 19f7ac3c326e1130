/* Control flow that no scope expects, on all threads at once, while a handler that records
   interrupts each of them 10 000 times a second. The flow is longjmp() and pthread_exit() out of
   scopes, pthread_cancel() inside of them, fibers (ucontext) that take turns with scopes open.
   There, exactly, recorded + lost = attempted. With scopes by calls fibers lose nothing.

   PROF_JUMPS_SECONDS: how long in all (10). */
#define _GNU_SOURCE
#include <prof/profiler.h>
#include <prof/trace.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/buffer/thread.h"
#include "fault/support/captures.h"
#include "fault/support/skip.h"

enum { THREADS = 4, FIBRES = 4, FIBRE_STACK_BYTES = 128 << 10, HANDLER_EVERY_NS = 100000 };

static __thread volatile bool may_record; /* a handler's scope must be one that the test counts */

static struct {
  uint64_t attempts, handler_attempts;
  uint64_t until_ns;
  uint64_t rounds;
  uint64_t left_open; /* entries of scopes that are over, on threads that are outside of all */
} own;

static void count(uint64_t *what) { __atomic_fetch_add(what, 1, __ATOMIC_RELAXED); }
#define COUNTED(value) (count(&own.attempts), (value))

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
/* On a busy machine the time may be over before a thread has come to anything. */
static bool goes_on(void) {
  return now_ns() < own.until_ns || !__atomic_load_n(&own.rounds, __ATOMIC_RELAXED) ||
         !__atomic_load_n(&own.attempts, __ATOMIC_RELAXED);
}

/* ---- the handler ---- */

static void on_timer(int signal) {
  (void)signal;
  if (!may_record) return;
  WITH_BASE_PROFILER((count(&own.handler_attempts), PROF_HOST), "handler", "jumps",
                     PROF_ARGS("a", 1), {});
}

static timer_t begin_signals(void) {
  struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN};
  const struct itimerspec every = {{0, HANDLER_EVERY_NS}, {0, HANDLER_EVERY_NS}};
  timer_t timer;
  event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
  may_record = true;
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
      timer_settime(timer, 0, &every, NULL) != 0)
    abort();
  return timer;
}

static void end_signals(timer_t timer) {
  may_record = false;
  timer_delete(timer);
}

/* ---- longjmp ---- */

/* By pointers, or the compiler sees functions that never return, and says so. */
static void jump_now(jmp_buf back) { longjmp(back, 1); }
static void (*volatile jumper)(jmp_buf) = jump_now;
static void (*volatile exiter)(void *) = pthread_exit;

static void dive(jmp_buf back, int depth) {
  WITH_BASE_PROFILER(COUNTED(PROF_HOST), "skipped", "jumps", PROF_ARGS("depth", depth), {
    if (depth > 0)
      dive(back, depth - 1);
    else
      jumper(back);
  });
}

static void *jump(void *unused) {
  (void)unused;
  const timer_t timer = begin_signals();
  for (volatile int i = 0; goes_on(); i++) {
    jmp_buf back;
    WITH_BASE_PROFILER(COUNTED(PROF_HOST), "around the jump", "jumps", PROF_NO_ARGS, {
      if (setjmp(back) == 0) dive(back, i % 70);
      WITH_BASE_PROFILER(COUNTED(PROF_HOST), "after the jump", "jumps", PROF_ARGS("i", 1), {});
    });
    count(&own.rounds);
  }
  end_signals(timer);
  __atomic_fetch_add(&own.left_open,
                     prof_i_this_thread->slot->depth + prof_i_this_thread->slot->deep,
                     __ATOMIC_RELAXED);
  return NULL;
}

/* ---- threads that leave in the midst ---- */

static void leave(int depth) {
  WITH_BASE_PROFILER(COUNTED(PROF_HOST), "left", "jumps", PROF_ARGS("depth", depth), {
    if (depth > 0)
      leave(depth - 1);
    else
      exiter(NULL);
  });
}

static void *leaver(void *depth) {
  const timer_t timer = begin_signals();
  WITH_BASE_PROFILER(COUNTED(PROF_HOST), "before it leaves", "jumps", PROF_NO_ARGS, {});
  end_signals(timer);
  leave((int)(intptr_t)depth);
  return NULL;
}

static void *is_cancelled(void *unused) {
  (void)unused;
  WITH_BASE_PROFILER(COUNTED(PROF_HOST), "cancelled", "jumps", PROF_ARGS("a", 1), {
    for (;;) {
      WITH_BASE_PROFILER(COUNTED(PROF_HOST), "until cancelled", "jumps", PROF_NO_ARGS, {});
      pthread_testcancel();
    }
  });
  return NULL;
}

static void *end_threads(void *unused) {
  (void)unused;
  for (intptr_t i = 0; goes_on(); i++) {
    pthread_t thread;
    const bool cancel = i % 2;
    if (pthread_create(&thread, NULL, cancel ? is_cancelled : leaver, (void *)(i % 70)) != 0)
      continue;
    if (cancel) nanosleep(&(const struct timespec){0, 20000 * (i % 10)}, NULL);
    if (cancel) pthread_cancel(thread);
    pthread_join(thread, NULL);
    count(&own.rounds);
  }
  return NULL;
}

/* ---- fibres ---- */

typedef struct fibre {
  ucontext_t here;
  struct scheduler *scheduler;
  char *stack;
  uint32_t seed;
  bool is_over;
} fibre;

typedef struct scheduler {
  ucontext_t here;
  fibre fibres[FIBRES];
  bool by_calls;
} scheduler;

static __thread fibre *now_running;

static void take_turns(fibre *f) { swapcontext(&f->here, &f->scheduler->here); }

static void call_scopes(fibre *f, int depth) {
  const prof_arg arg = {.key = "depth", .type = PROF_ARG_I64, .value.i64 = depth};
  const prof_args args = {.items = &arg, .count = 1, .kind = PROF_ARGS_PAIRS};
  const uint64_t start =
      COUNTED(prof_scope_begin(1, "by a call", "jumps", depth % 2 ? &args : NULL));
  if (rand_r(&f->seed) % 2) take_turns(f);
  if (depth > 0) call_scopes(f, depth - 1);
  if (rand_r(&f->seed) % 2) take_turns(f);
  prof_scope_end(start);
}

static void block_scopes(fibre *f, int depth) {
  WITH_BASE_PROFILER(COUNTED(PROF_HOST), "of a block", "jumps", PROF_ARGS("depth", depth), {
    if (rand_r(&f->seed) % 2) take_turns(f);
    if (depth > 0) block_scopes(f, depth - 1);
    if (rand_r(&f->seed) % 2) take_turns(f);
  });
}

static void run_fibre(void) {
  fibre *const f = now_running;
  while (goes_on()) {
    if (f->scheduler->by_calls)
      call_scopes(f, (int)(rand_r(&f->seed) % 8));
    else
      block_scopes(f, (int)(rand_r(&f->seed) % 8));
    count(&own.rounds);
  }
  f->is_over = true;
  take_turns(f);
}

static void make_fibre(fibre *f, scheduler *s, uint32_t seed) {
  *f = (fibre){.scheduler = s, .stack = malloc(FIBRE_STACK_BYTES), .seed = seed};
  getcontext(&f->here);
  f->here.uc_stack.ss_sp = f->stack;
  f->here.uc_stack.ss_size = FIBRE_STACK_BYTES;
  makecontext(&f->here, run_fibre, 0);
}

static void *schedule(void *by_calls) {
  scheduler *const s = calloc(1, sizeof *s);
  uint32_t seed = (uint32_t)syscall(SYS_gettid);
  s->by_calls = by_calls != NULL;
  for (int i = 0; i < FIBRES; i++) make_fibre(&s->fibres[i], s, seed + (uint32_t)i);
  const timer_t timer = begin_signals();
  for (int over = 0; over < FIBRES;) {
    fibre *const f = &s->fibres[(unsigned)rand_r(&seed) % FIBRES];
    over = 0;
    for (int i = 0; i < FIBRES; i++) over += s->fibres[i].is_over;
    if (f->is_over) continue;
    now_running = f;
    swapcontext(&s->here, &f->here);
  }
  end_signals(timer);
  for (int i = 0; i < FIBRES; i++) free(s->fibres[i].stack);
  free(s);
  return NULL;
}

/* ---- the tests ---- */

static uint64_t seconds(void) {
  const char *const set = getenv("PROF_JUMPS_SECONDS");
  return set ? strtoull(set, NULL, 0) : 10;
}

/* What was skipped ends with the block around it, and what a thread leaves open is lost when it
   ends. */
static void run_piece(const char *what, void *(*body)(void *), void *argument, uint32_t may_be_lost,
                      uint64_t piece_ns) {
  static uint64_t cap_bytes = 4ull << 30; /* another one is another capture */
  const prof_options options = {.size = sizeof options,
                                .policy = PROF_POLICY_STREAM,
                                .path = captures_path(what),
                                .cap_bytes = cap_bytes += 1 << 16};
  pthread_t threads[THREADS];
  prof_health health = {.size = sizeof health};
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  uint64_t lost = 0;
  memset(&own, 0, sizeof own);
  if (prof_start_with(&options) != PROF_OK) fail_msg("prof_start_with: %s", prof_last_error());
  own.until_ns = now_ns() + piece_ns; /* a start may await a busy disk */
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, body, argument), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  prof_health(&health);
  for (int i = 0; i < PROF_LOSS_COUNT; i++) {
    lost += health.lost_count[i];
    if (health.lost_count[i] && !(may_be_lost >> i & 1))
      fail_msg("%s: %llu lost as '%s'", what, (unsigned long long)health.lost_count[i],
               prof_loss_name(i));
  }
  assert_int_equal(prof_get(&trace), PROF_OK);
  prof_trace_info_get(trace, &info);
  prof_trace_destroy(trace);
  prof_stop();
  const uint64_t attempts = own.attempts + own.handler_attempts;
  print_message(
      "  %-10s %9llu rounds, %10llu attempted (%llu by handlers), %llu recorded, %llu lost\n", what,
      (unsigned long long)own.rounds, (unsigned long long)attempts,
      (unsigned long long)own.handler_attempts, (unsigned long long)health.recorded_count,
      (unsigned long long)lost);
  if (own.rounds == 0 || own.attempts == 0) fail_msg("%s: nothing was done", what);
  if (info.bad_count || info.open_count)
    fail_msg("%s: %llu bad, %llu open", what, (unsigned long long)info.bad_count,
             (unsigned long long)info.open_count);
  if (own.left_open)
    fail_msg("%s: %llu scopes that were skipped stand open on their threads", what,
             (unsigned long long)own.left_open);
  if (info.scope_count != health.recorded_count)
    fail_msg("%s: the reader sees %llu", what, (unsigned long long)info.scope_count);
  if (health.recorded_count + lost != attempts)
    fail_msg("%s: %llu recorded + %llu lost, %llu attempted", what,
             (unsigned long long)health.recorded_count, (unsigned long long)lost,
             (unsigned long long)attempts);
}

/* In pieces, each a capture of its own, or a fast machine fills one. */
static void run_all(const char *what, void *(*body)(void *), void *argument, uint32_t may_be_lost) {
  const uint64_t most = 2500000000u;
  for (uint64_t left = seconds() * 1000000000u / 4; left > 0;) {
    const uint64_t piece = left < most ? left : most;
    captures_clear();
    run_piece(what, body, argument, may_be_lost, piece);
    left -= piece;
  }
}

static void jumps_out_of_scopes_leave_none_open(void **state) {
  (void)state;
  run_all("longjmp", jump, NULL, 0);
}

static void threads_that_leave_or_are_cancelled_leave_none_open(void **state) {
  (void)state;
  run_all("exit", end_threads, NULL, 1u << PROF_LOSS_THREAD_ENDED);
}

static void fibres_with_scopes_by_calls_lose_nothing(void **state) {
  (void)state;
  run_all("calls", schedule, &own, 0);
}

/* Blocks must nest on their thread: one that a switch has put out of order ends with another, and
   its own end is a stray. */
static void fibres_with_blocks_are_counted(void **state) {
  (void)state;
  run_all("blocks", schedule, NULL, 0);
}

static int clean(void **state) {
  (void)state;
  prof_stop();
  captures_clear();
  return 0;
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(jumps_out_of_scopes_leave_none_open, clean),
      cmocka_unit_test_teardown(threads_that_leave_or_are_cancelled_leave_none_open, clean),
      cmocka_unit_test_teardown(fibres_with_scopes_by_calls_lose_nothing, clean),
      cmocka_unit_test_teardown(fibres_with_blocks_are_counted, clean),
  };
  const struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
#if defined(__SANITIZE_ADDRESS__)
  skip_because(
      "the address sanitizer takes a jump out of a block, and a fibre's stack, for faults");
#endif
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  if (sigaction(SIGRTMIN, &action, NULL) != 0 || !captures_make_folder(false)) return 1;
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  captures_remove_folder();
  return failed;
}
