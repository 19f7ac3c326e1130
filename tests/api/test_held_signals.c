/* prof holds signals while it changes what it shares. Every call gives the thread its mask back,
   whatever that is. What is held are the signals that a program has, and no faults. A signal that
   waited comes before the call returns. A handler may then jump out of a scope.

   This program stands in front of syscall(), by which prof holds signals. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <prof/fiber.h>
#include <prof/memory.h>
#include <prof/profiler.h>
#include <prof/trace.h>

#include "hang_guard.h"
#include "sanitizers.h"

enum { MASK_BYTES = 8, MANY_SCOPES = 400000, HOLDS_MAX = 1000 };

static long (*real_syscall)(long number, ...);

/* Of the thread under test. Its handler counts and may jump. */
static __thread bool is_watched, raises;
static uint64_t holds, raised, handled;
static uint64_t jump_at; /* the hold whose signal makes the handler jump; 0: none */
static sigjmp_buf jump_to;
static uint64_t held_in_all, held_in_one; /* of the holds */

static uint64_t mask_of(int signal) { return UINT64_C(1) << (signal - 1); }

static uint64_t mask_now(void) {
  uint64_t mask = 0;
  real_syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, MASK_BYTES);
  return mask;
}

static void mask_set(uint64_t mask) {
  real_syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, MASK_BYTES);
}

static void note_hold(void) {
  holds++;
  const uint64_t mask = mask_now();
  held_in_all &= mask;
  held_in_one |= mask;
  if (!raises || !(mask & mask_of(SIGUSR1)) || (jump_at && holds != jump_at)) return;
  raised++;
  raise(SIGUSR1);
}

long syscall(long number, ...) {
  long given[6];
  va_list rest;
  va_start(rest, number);
  for (size_t i = 0; i < sizeof given / sizeof *given; i++) given[i] = va_arg(rest, long);
  va_end(rest);
  if (!real_syscall) *(void **)&real_syscall = dlsym(RTLD_NEXT, "syscall");
  const long result =
      real_syscall(number, given[0], given[1], given[2], given[3], given[4], given[5]);
  if (number == SYS_rt_sigprocmask && given[0] == SIG_BLOCK && result == 0 && is_watched) {
    is_watched = false; /* what follows is no hold */
    note_hold();
    is_watched = true;
  }
  return result;
}

static void handler(int signal) {
  (void)signal;
  handled++;
  if (jump_at) siglongjmp(jump_to, 1);
}

/* ---- what takes the ways on which prof holds signals ---- */

static void call_start(void) { assert_int_equal(prof_start(1), PROF_OK); }
static void call_stop(void) { prof_stop(); }
static void call_stop_and_start(void) {
  prof_stop();
  call_start();
}
static void call_scopes(void) {
  for (int i = 0; i < MANY_SCOPES; i++)
    WITH_BASE_PROFILER(PROF_HOST, "held", "test", PROF_NO_ARGS, {});
}
static void call_new_sites(void) {
  char name[32];
  static int made;
  for (int i = 0; i < 4; i++) {
    snprintf(name, sizeof name, "name %d", made++);
    prof_scope_end(prof_scope_begin(1, name, "test", NULL));
  }
  PROF_INSTANT("an instant", "test", PROF_ARGS("one", 1, "text", name));
}
static void call_fiber(void) {
  prof_fiber *fiber = NULL;
  assert_int_equal(prof_fiber_create("fiber", &fiber), PROF_OK);
  prof_fiber_enter(fiber);
  prof_scope_end(prof_scope_begin(1, "in a fiber", "test", NULL));
  prof_fiber_leave();
  assert_int_equal(prof_fiber_destroy(fiber), PROF_OK);
}
static void call_clear(void) { assert_int_equal(prof_clear(), PROF_OK); }
static void call_health(void) {
  prof_health health = {.size = sizeof health};
  assert_int_equal(prof_health_get(&health), PROF_OK);
}
static void call_get(void) {
  prof_trace *trace = NULL;
  assert_int_equal(prof_get(&trace), PROF_OK);
  prof_trace_destroy(trace);
}

typedef struct held_call {
  const char *name;
  void (*call)(void);
} held_call;
static const held_call calls[] = {
    {"scopes", call_scopes},
    {"new sites", call_new_sites},
    {"a fiber", call_fiber},
    {"health", call_health},
    {"get", call_get},
    {"clear", call_clear},
    {"scopes again", call_scopes},
    {"stop and start", call_stop_and_start},
    {"the first scopes", call_new_sites},
};

static void watch(const held_call *what) {
  holds = raised = handled = 0;
  is_watched = true;
  what->call();
  is_watched = false;
}

/* ---- tests ---- */

typedef struct check {
  uint64_t mask, raised;
  char fault[128]; /* empty: none */
} check;

static bool check_call(const held_call *what, check *it) {
  watch(what);
  const uint64_t now = mask_now();
  if (now != it->mask)
    snprintf(it->fault, sizeof it->fault, "%s: the mask is %llx, not %llx", what->name,
             (unsigned long long)now, (unsigned long long)it->mask);
  else if (!raised != !handled)
    snprintf(it->fault, sizeof it->fault, "%s: %llu signals raised, %llu handled", what->name,
             (unsigned long long)raised, (unsigned long long)handled);
  it->raised += raised;
  return !it->fault[0];
}

/* In a thread of its own, so that its first scope is seen. */
static void *check_each_call(void *context) {
  check *const it = context;
  mask_set(it->mask);
  raises = true;
  for (size_t i = 0; i < sizeof calls / sizeof *calls && check_call(&calls[i], it); i++) {
  }
  return NULL;
}

static void check_calls_with(uint64_t mask) {
  pthread_t thread;
  check it = {.mask = mask};
  call_start();
  assert_int_equal(pthread_create(&thread, NULL, check_each_call, &it), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  call_stop();
  if (it.fault[0]) fail_msg("%s", it.fault);
  assert_true(it.raised > 0);
}

static void each_call_gives_the_mask_back(void **state) {
  (void)state;
  check_calls_with(0);
  check_calls_with(mask_of(SIGUSR2) | mask_of(SIGTERM) | mask_of(SIGRTMAX) | mask_of(SIGSEGV));
}

static void the_programs_signals_are_held_and_no_faults(void **state) {
  static const int not_held[] = {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE,
                                 SIGILL,  SIGTRAP, SIGSYS,  SIGABRT};
  uint64_t expected = UINT64_MAX;
  (void)state;
  held_in_all = UINT64_MAX;
  held_in_one = 0;
  call_start();
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) watch(&calls[i]);
  call_stop();
  for (size_t i = 0; i < sizeof not_held / sizeof *not_held; i++) expected &= ~mask_of(not_held[i]);
  for (int signal = 32; signal < SIGRTMIN; signal++) expected &= ~mask_of(signal);
  assert_int_equal(held_in_all, expected);
  assert_int_equal(held_in_one, expected);
}

/* A child makes its capture in its first scope. The handler comes when the hold is given back. */
static int jump_out_in_child(uint64_t at, uint64_t *holds_out) {
  raises = true;
  jump_at = at;
  if (sigsetjmp(jump_to, 1) == 0) watch(&(held_call){"a child's first scope", call_new_sites});
  is_watched = raises = false;
  jump_at = 0;
  *holds_out = holds;
  int cancel = -1;
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &cancel);
  if (cancel != PTHREAD_CANCEL_ENABLE) return 2;
  return mask_now() ? 3 : 0;
}

static void a_handler_that_jumps_out_leaves_the_thread_as_it_was(void **state) {
  uint64_t *const count =
      mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  (void)state;
  assert_true(count != MAP_FAILED);
  call_start();
  *count = HOLDS_MAX; /* as many as the child before has seen */
  for (uint64_t at = HOLDS_MAX; at > 0; at = *count < at ? *count : at - 1) {
    int status = -1;
    const pid_t child = fork();
    if (child == 0) _exit(jump_out_in_child(at, count));
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status) fail_msg("hold %llu: wait status %x", (unsigned long long)at, (unsigned)status);
  }
  call_stop();
  munmap(count, sizeof *count);
}

static int set_up(void **state) {
  (void)state;
  hang_guard();
  return 0;
}

#define CASE(test) cmocka_unit_test_setup(test, set_up)

int main(void) {
  const struct sigaction action = {.sa_handler = handler};
  sigaction(SIGUSR1, &action, NULL);
  if (!real_syscall) *(void **)&real_syscall = dlsym(RTLD_NEXT, "syscall");
  const struct CMUnitTest tests[] = {
      CASE(each_call_gives_the_mask_back),
      CASE(the_programs_signals_are_held_and_no_faults),
      CASE(a_handler_that_jumps_out_leaves_the_thread_as_it_was),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
