/* A capture is replaced at each instruction of an end that has not come to the slow path. A child's
   main thread is stepped to that instruction and stopped there, and its other thread begins another
   capture. Then the end goes on. The scope is counted once: recorded, or lost, in one of the two.
   */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <prof/profiler.h>
#include <prof/trace.h>

#include "hang_guard.h"
#include "support/captures.h"
#include "support/skip.h"

enum { WARM = 100, STEPS_MAX = 400 };

/* What parent and child share. Atomic. */
typedef struct stage {
  uint32_t may_replace, has_replaced, is_over;
  int replaced_as;              /* of prof_start_with() */
  char first[512], second[512]; /* the captures' files */
} stage;
static stage *shared;

typedef void begin_and_end(int what); /* 0: begins, 1: ends */

static uint64_t plain_start, long_start, deep_start;

static void plain(int what) {
  if (what)
    prof_scope_end(plain_start);
  else
    plain_start = prof_scope_begin(1, "plain", "x", NULL);
}
static void with_text(int what) {
  const prof_arg items[] = {{"text", PROF_ARG_STRING, PROF_NUL_TERMINATED, {.text = "a text"}}};
  const prof_args args = {items, 1, PROF_ARGS_PAIRS, NULL};
  if (what)
    prof_scope_end(long_start);
  else
    long_start = prof_scope_begin(1, "long", "x", &args);
}
/* Of each time that it begins, the first 69 stay open. */
static void deep(int what) {
  if (what) prof_scope_end(deep_start);
  for (int i = 0; !what && i < 70; i++) deep_start = prof_scope_begin(1, "deep", "x", NULL);
}

static void start_in(const char *name, char *path_out) {
  prof_health health = {.size = sizeof health};
  const prof_options options = {
      .size = sizeof options, .path = captures_path(name), .keep_capture = 1};
  shared->replaced_as = prof_start_with(&options);
  prof_health(&health);
  snprintf(path_out, sizeof shared->first, "%s", health.capture_path);
}

static void *replace(void *unused) {
  (void)unused;
  while (!__atomic_load_n(&shared->may_replace, __ATOMIC_ACQUIRE)) usleep(50);
  prof_stop();
  start_in("second.json", shared->second);
  __atomic_store_n(&shared->has_replaced, 1, __ATOMIC_RELEASE);
  return NULL;
}

static void be_child(begin_and_end *act) {
  pthread_t other;
  hang_guard();
  start_in("first.json", shared->first);
  for (int i = 0; i < WARM; i++) WITH_BASE_PROFILER(PROF_HOST, "warm", "x", PROF_NO_ARGS, {});
  for (int i = 0; i < 2; i++) { /* its site and names are known */
    act(0);
    act(1);
  }
  act(0);
  pthread_create(&other, NULL, replace, NULL);
  ptrace(PTRACE_TRACEME, 0, NULL, NULL);
  raise(SIGSTOP);
  act(1);
  __atomic_store_n(&shared->is_over, 1, __ATOMIC_SEQ_CST);
  raise(SIGSTOP);
  pthread_join(other, NULL);
  prof_stop();
  _exit(0);
}

/* Steps it so often. False: the end was over before. */
static bool step_to(pid_t child, int steps) {
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFSTOPPED(status));
  for (int i = 0; i < steps; i++) {
    assert_int_equal(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSTOPPED(status));
    if (__atomic_load_n(&shared->is_over, __ATOMIC_SEQ_CST)) return false;
  }
  return true;
}

static void let_it_end(pid_t child) {
  int status = 0;
  do {
    assert_int_equal(ptrace(PTRACE_CONT, child, NULL, NULL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_false(WIFSIGNALED(status));
  } while (!WIFEXITED(status));
}

/* Events that ended, and losses. */
static uint64_t counted_in(const char *path, uint64_t *open_out) {
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  assert_int_equal(prof_trace_open(path, &trace), PROF_OK);
  prof_trace_info_get(trace, &info);
  uint64_t sum = info.event_count - info.open_count;
  for (int i = 0; i < PROF_LOSS_COUNT; i++) sum += info.lost_count[i];
  *open_out = info.open_count + info.open_below_count;
  prof_trace_destroy(trace);
  unlink(path);
  return sum;
}

/* Steps go through the code that raises the stop at both ends, too: that is of no harm. */
static void replace_at_each_instruction(begin_and_end *act, uint64_t begun, uint64_t others) {
  int replaced = 0, refused = 0;
  for (int steps = 1;; steps++) {
    assert_true(steps < STEPS_MAX * 20);
    memset(shared, 0, sizeof *shared);
    const pid_t child = fork();
    if (child == 0) be_child(act);
    assert_true(child > 0);
    const bool is_there = step_to(child, steps);
    if (is_there) {
      __atomic_store_n(&shared->may_replace, 1, __ATOMIC_RELEASE);
      while (!__atomic_load_n(&shared->has_replaced, __ATOMIC_ACQUIRE)) usleep(50);
    }
    const int replaced_as = shared->replaced_as;
    __atomic_store_n(&shared->may_replace, 1, __ATOMIC_RELEASE);
    let_it_end(child);
    uint64_t open = 0, still_open = 0;
    uint64_t sum = counted_in(shared->first, &open);
    const bool is_refused = replaced_as != PROF_OK; /* it was past the gate */
    if (!is_refused && strcmp(shared->first, shared->second) != 0)
      sum += counted_in(shared->second, &still_open);
    if (is_there && !is_refused && (sum != begun || still_open != 0 || open > others + 1))
      fail_msg(
          "step %d: %llu counted, %llu open of the first, %llu of the second; %llu begun and "
          "%llu of them open",
          steps, (unsigned long long)sum, (unsigned long long)open, (unsigned long long)still_open,
          (unsigned long long)(begun + others), (unsigned long long)others);
    if (!is_there) break;
    replaced += !is_refused;
    refused += is_refused;
  }
  print_message("replaced at %d instructions, refused at %d\n", replaced, refused);
  assert_in_range(replaced, 20, INT32_MAX);
}

static void a_plain_end_counts_once(void **state) {
  (void)state;
  replace_at_each_instruction(plain, WARM + 3, 0);
}
static void an_end_with_a_text_counts_once(void **state) {
  (void)state;
  replace_at_each_instruction(with_text, WARM + 3, 0);
}
static void a_deep_end_counts_once(void **state) {
  (void)state;
  replace_at_each_instruction(deep, WARM + 3, 3 * 69);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_plain_end_counts_once),
                                     cmocka_unit_test(an_end_with_a_text_counts_once),
                                     cmocka_unit_test(a_deep_end_counts_once)};
  skip_unless_steppable();
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  const int flags = MAP_SHARED | MAP_ANONYMOUS;
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (shared == MAP_FAILED || !captures_make_folder(true)) return 1;
  hang_guard();
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  captures_remove_folder();
  return failed;
}
