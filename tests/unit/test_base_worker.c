/* A worker does each job once, beside its caller if it has a thread, and else in place of it. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/worker.h"

enum { JOBS = 1000 };

/* What the system says: the number of processors, and whether it gives a thread. */
static size_t processors = 2;
static bool refuses_threads;

int sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set) {
  (void)pid;
  memset(set, 0, bytes);
  for (size_t i = 0; i < processors; i++) CPU_SET(i, set);
  return 0;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*work)(void *),
                   void *argument) {
  int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  if (refuses_threads) return EAGAIN;
  *(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
  return create(thread, attributes, work, argument);
}

typedef struct job {
  int done_count;
  pthread_t thread;
  sigset_t blocked;
  int pipe[2];
} job;

static void do_job(void *argument) {
  job *const j = argument;
  j->done_count++;
  j->thread = pthread_self();
  pthread_sigmask(SIG_SETMASK, NULL, &j->blocked);
}

static void wait_for_byte(void *argument) {
  job *const j = argument;
  char byte;
  if (read(j->pipe[0], &byte, 1) == 1) do_job(j);
}

static void do_jobs(job *j) {
  prof_i_worker *const worker = prof_i_worker_create("test-worker");
  assert_non_null(worker);
  assert_true(prof_i_worker_wait(worker));
  for (int i = 0; i < JOBS; i++) {
    prof_i_worker_begin(worker, do_job, j);
    assert_true(prof_i_worker_wait(worker));
    assert_int_equal(j->done_count, i + 1);
  }
  assert_true(prof_i_worker_destroy(worker));
}

static void jobs_are_done_by_a_thread_that_blocks_signals(void **state) {
  (void)state;
  job j = {.done_count = 0};
  do_jobs(&j);
  assert_false(pthread_equal(j.thread, pthread_self()));
  assert_true(sigismember(&j.blocked, SIGINT) && sigismember(&j.blocked, SIGTERM) &&
              sigismember(&j.blocked, SIGUSR1));
  assert_false(sigismember(&j.blocked, SIGBUS)); /* the command's handler prints why it ends */
}

/* The first test: threads cannot be forbidden again. */
static void a_host_has_no_thread_until_it_is_allowed(void **state) {
  (void)state;
  job j = {.done_count = 0};
  do_jobs(&j);
  assert_true(pthread_equal(j.thread, pthread_self()));
  prof_i_worker_allow_threads();
}

static void one_processor_has_no_thread(void **state) {
  (void)state;
  job j = {.done_count = 0};
  processors = 1;
  do_jobs(&j);
  processors = 2;
  assert_true(pthread_equal(j.thread, pthread_self()));
}

static void a_refused_thread_is_done_without(void **state) {
  (void)state;
  job j = {.done_count = 0};
  refuses_threads = true;
  do_jobs(&j);
  refuses_threads = false;
  assert_true(pthread_equal(j.thread, pthread_self()));
}

static void the_end_waits_for_the_job(void **state) {
  (void)state;
  job j = {.done_count = 0};
  prof_i_worker *const worker = prof_i_worker_create("test-worker");
  prof_i_worker_begin(worker, do_job, &j);
  assert_true(prof_i_worker_destroy(worker));
  assert_int_equal(j.done_count, 1);
  assert_true(prof_i_worker_destroy(NULL));
}

static void a_child_does_not_wait_for_the_thread_that_it_lacks(void **state) {
  (void)state;
  job j = {.done_count = 0};
  int status;
  assert_int_equal(pipe(j.pipe), 0);
  prof_i_worker *const worker = prof_i_worker_create("test-worker");
  prof_i_worker_begin(worker, wait_for_byte, &j);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    const bool waits = prof_i_worker_wait(worker);
    _exit(waits || prof_i_worker_destroy(worker));
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  assert_int_equal(write(j.pipe[1], "x", 1), 1);
  assert_true(prof_i_worker_destroy(worker));
  assert_int_equal(j.done_count, 1);
  close(j.pipe[0]);
  close(j.pipe[1]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_host_has_no_thread_until_it_is_allowed),
      cmocka_unit_test(jobs_are_done_by_a_thread_that_blocks_signals),
      cmocka_unit_test(one_processor_has_no_thread),
      cmocka_unit_test(a_refused_thread_is_done_without),
      cmocka_unit_test(the_end_waits_for_the_job),
      cmocka_unit_test(a_child_does_not_wait_for_the_thread_that_it_lacks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
