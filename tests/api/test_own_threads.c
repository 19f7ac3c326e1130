/* prof's own threads take nothing from whoever starts them: neither processors, nor scheduling
 * class, nor signals. */
#define _GNU_SOURCE
#include <dirent.h>
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
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <prof/profiler.h>

#include "../hang_guard.h"

static cpu_set_t at_load;

static long tid_named(const char *wanted) {
  long tid = 0;
  DIR *const tasks = opendir("/proc/self/task");
  for (const struct dirent *e; tasks && !tid && (e = readdir(tasks)) != NULL;) {
    char path[300], name[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", e->d_name);
    FILE *const file = fopen(path, "r");
    if (file && fgets(name, sizeof name, file) && strncmp(name, wanted, strlen(wanted)) == 0)
      tid = strtol(e->d_name, NULL, 10);
    if (file) fclose(file);
  }
  if (tasks) closedir(tasks);
  return tid;
}

/* It gives itself its name as the first thing that it does. */
static long wait_for(const char *name) {
  long tid;
  WAIT_WHILE((tid = tid_named(name)) == 0);
  assert_true(tid != 0);
  return tid;
}

static unsigned long long blocked_signals(long tid) {
  char path[64], line[256];
  unsigned long long blocked = 0;
  snprintf(path, sizeof path, "/proc/self/task/%ld/status", tid);
  FILE *const file = fopen(path, "r");
  while (file && fgets(line, sizeof line, file))
    if (sscanf(line, "SigBlk: %llx", &blocked) == 1) break;
  if (file) fclose(file);
  return blocked;
}

static void check_thread(const char *name) {
  const long tid = wait_for(name);
  cpu_set_t allowed;
  assert_int_equal(sched_getaffinity((pid_t)tid, sizeof allowed, &allowed), 0);
  if (!CPU_EQUAL(&allowed, &at_load))
    fail_msg("%s may run on %d processors, not %d", name, CPU_COUNT(&allowed), CPU_COUNT(&at_load));
  assert_int_equal(sched_getscheduler((pid_t)tid), SCHED_OTHER);
  const unsigned long long blocked = blocked_signals(tid);
  for (int signal = 1; signal < 32; signal++)
    if (signal != SIGKILL && signal != SIGSTOP && !(blocked >> (signal - 1) & 1))
      fail_msg("%s does not block signal %d", name, signal);
}

static void pin(void) {
  cpu_set_t one;
  size_t processor = 0;
  while (!CPU_ISSET(processor, &at_load)) processor++;
  CPU_ZERO(&one);
  CPU_SET(processor, &one);
  assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
}

/* The sampler's, the collector's and the operator profiler's are made by the same function. */
static void check_helper(void) {
  const prof_options options = {.size = sizeof options, .helper_thread = 1};
  assert_int_equal(prof_start_with(&options), PROF_OK);
  check_thread("prof-helper");
  assert_int_equal(prof_stop(), PROF_OK);
}

static void threads_run_where_the_main_thread_might_when_prof_was_loaded(void **state) {
  (void)state;
  pin();
  check_helper();
  assert_int_equal(sched_setaffinity(0, sizeof at_load, &at_load), 0);
}

static void threads_of_a_real_time_thread_are_normal(void **state) {
  (void)state;
  const struct sched_param urgent = {.sched_priority = 1}, none = {0};
  if (sched_setscheduler(0, SCHED_FIFO, &urgent) != 0) {
    print_message("skip: no real-time scheduling: %s\n", strerror(errno));
    skip();
  }
  pin();
  check_helper();
  assert_int_equal(sched_setaffinity(0, sizeof at_load, &at_load), 0);
  assert_int_equal(sched_setscheduler(0, SCHED_OTHER, &none), 0);
}

/* In a separate process, because dropped rights cannot be restored. */
static void expect_no_helper(void) {
  const struct rlimit none = {1, 1};
  const prof_options options = {.size = sizeof options, .helper_thread = 1};
  prof_health health = {.size = sizeof health};
  if (geteuid() == 0 && setuid(65534) != 0) _exit(2);
  if (setrlimit(RLIMIT_NPROC, &none) != 0 || prof_start_with(&options) != PROF_OK) _exit(3);
  prof_health(&health);
  WITH_BASE_PROFILER(PROF_HOST, "scope", "test", PROF_NO_ARGS, {});
  if (health.helper_thread || !strstr(health.reason, "no helper thread: ")) _exit(4);
  prof_stop();
  prof_health_get(&health);
  _exit(health.recorded_count == 1 ? 0 : 5);
}

static void a_helper_that_cannot_be_made_has_a_reason(void **state) {
  (void)state;
  int status = 0;
  const pid_t child = fork();
  if (child == 0) expect_no_helper();
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void) {
  if (sched_getaffinity(0, sizeof at_load, &at_load) != 0) return 77;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(threads_run_where_the_main_thread_might_when_prof_was_loaded),
      cmocka_unit_test(threads_of_a_real_time_thread_are_normal),
      cmocka_unit_test(a_helper_that_cannot_be_made_has_a_reason),
  };
  return cmocka_run_group_tests_name("own threads", tests, NULL, NULL);
}
