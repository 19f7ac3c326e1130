/* A stop that waits for a device: whoever does not change the capture goes on meanwhile. The device
   is a hook of this test's, which does not return before the others have. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <prof/memory.h>
#include <prof/profiler.h>
#include <prof/trace.h>

#include "core/session/control.h"
#include "hang_guard.h"

static uint32_t is_inside, is_let_go; /* the hook's. Atomic */

static void begin(bool waits) { (void)waits; }
static void nothing(void) {}
static void wait_to_be_let_go(void) {
  __atomic_store_n(&is_inside, 1, __ATOMIC_SEQ_CST);
  WAIT_WHILE(!__atomic_load_n(&is_let_go, __ATOMIC_SEQ_CST));
}

static void *stop(void *status) {
  *(int *)status = prof_stop();
  return NULL;
}
/* A call on a thread of its own. */
typedef struct call {
  int (*run)(void);
  pthread_t thread;
  uint32_t tid; /* 0: it has not begun. Atomic, as has_ended */
  uint32_t has_ended;
  int status;
} call;

static int start_at_2(void) { return prof_start(2); }

static void *run_call(void *of) {
  call *const c = of;
  __atomic_store_n(&c->tid, (uint32_t)syscall(SYS_gettid), __ATOMIC_SEQ_CST);
  c->status = c->run();
  __atomic_store_n(&c->has_ended, 1, __ATOMIC_SEQ_CST);
  return NULL;
}

static bool is_asleep(uint32_t tid) {
  char path[64], state = 0;
  snprintf(path, sizeof path, "/proc/self/task/%u/stat", tid);
  FILE *const file = tid ? fopen(path, "r") : NULL;
  if (file && fscanf(file, "%*d (%*[^)]) %c", &state) != 1) state = 0;
  if (file) fclose(file);
  return state == 'S';
}

/* Begun, and it waits or has come back. */
static void begin_call(call *c) {
  assert_int_equal(pthread_create(&c->thread, NULL, run_call, c), 0);
  WAIT_WHILE(!__atomic_load_n(&c->has_ended, __ATOMIC_SEQ_CST) &&
             !is_asleep(__atomic_load_n(&c->tid, __ATOMIC_SEQ_CST)));
}
static void end_call(call *c) {
  assert_int_equal(pthread_join(c->thread, NULL), 0);
  assert_int_equal(c->status, PROF_OK);
}

/* Recording, and a thread is in prof_stop(), in the hook. */
static pthread_t begin_stop(int *status) {
  static const prof_i_device_hooks hooks = {begin, nothing, wait_to_be_let_go, nothing};
  pthread_t thread;
  __atomic_store_n(&is_inside, 0, __ATOMIC_SEQ_CST);
  __atomic_store_n(&is_let_go, 0, __ATOMIC_SEQ_CST);
  assert_int_equal(prof_start(1), PROF_OK);
  prof_i_control_set_devices(&hooks);
  WITH_BASE_PROFILER(PROF_HOST, "before", "stop", PROF_NO_ARGS, {});
  assert_int_equal(pthread_create(&thread, NULL, stop, status), 0);
  WAIT_WHILE(!__atomic_load_n(&is_inside, __ATOMIC_SEQ_CST));
  assert_int_equal(is_inside, 1);
  return thread;
}

static void end_stop(pthread_t thread, const int *status) {
  __atomic_store_n(&is_let_go, 1, __ATOMIC_SEQ_CST);
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_int_equal(*status, PROF_OK);
}

static uint64_t count(const char *name) {
  uint64_t calls = 0;
  prof_get_duration(name, NULL, NULL, &calls);
  return calls;
}

static void others_go_on(void **state) {
  (void)state;
  int status = -1;
  prof_health health = {.size = sizeof health};
  prof_trace *trace = NULL;
  prof_pool *pool = NULL;
  const prof_pool_options options = {.size = sizeof options, .name = "beside a stop"};
  hang_guard();
  const pthread_t thread = begin_stop(&status);
  assert_int_equal(prof_health(&health), PROF_OK);
  assert_int_equal(prof_level(), 0);
  assert_int_equal(prof_thread_set_name("beside"), PROF_OK);
  assert_int_equal(prof_mute("nobody's", NULL, 1), PROF_OK);
  assert_int_equal(prof_mute("nobody's", NULL, 0), PROF_OK);
  assert_int_equal(prof_pool_create(&options, &pool), PROF_OK);
  prof_pool_destroy(pool);
  assert_int_equal(prof_get(&trace), PROF_OK);
  prof_trace_destroy(trace);
  assert_int_equal(count("before"), 1);
  end_stop(thread, &status);
  assert_int_equal(prof_stop(), PROF_E_NOT_RUNNING);
}

static void a_start_and_a_clear_wait_for_it(void **state) {
  (void)state;
  int stopped = -1;
  call clear = {.run = prof_clear}, start = {.run = start_at_2};
  hang_guard();
  const pthread_t thread = begin_stop(&stopped);
  begin_call(&clear);
  begin_call(&start);
  assert_int_equal(__atomic_load_n(&clear.has_ended, __ATOMIC_SEQ_CST), 0);
  assert_int_equal(__atomic_load_n(&start.has_ended, __ATOMIC_SEQ_CST), 0);
  end_stop(thread, &stopped);
  end_call(&clear);
  end_call(&start);
  assert_int_equal(prof_level(), 2);
  assert_int_equal(count("before"), 0);
  WITH_BASE_PROFILER(PROF_HOST, "after", "stop", PROF_NO_ARGS, {});
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(count("after"), 1);
}

/* The parent does not record any more, and the child has no stop to wait for. */
static void a_child_that_is_forked_meanwhile_is_free(void **state) {
  (void)state;
  int status = -1, ended = 0;
  hang_guard();
  const pthread_t thread = begin_stop(&status);
  const pid_t child = fork();
  if (child == 0) {
    hang_guard();
    static const prof_i_device_hooks hooks = {begin, nothing, nothing, nothing};
    prof_i_control_set_devices(&hooks);
    WITH_BASE_PROFILER(PROF_HOST, "child", "stop", PROF_NO_ARGS, {});
    const bool is_free = prof_stop() == PROF_E_NOT_RUNNING && prof_start(1) == PROF_OK;
    WITH_BASE_PROFILER(PROF_HOST, "child", "stop", PROF_NO_ARGS, {});
    _exit(is_free && prof_stop() == PROF_OK && count("child") == 1 ? 0 : 1);
  }
  assert_true(child > 0);
  assert_int_equal(waitpid(child, &ended, 0), child);
  end_stop(thread, &status);
  assert_int_equal(ended, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(others_go_on),
      cmocka_unit_test(a_start_and_a_clear_wait_for_it),
      cmocka_unit_test(a_child_that_is_forked_meanwhile_is_free),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
