/* kill -9 at a random instant: four threads record at full rate into a file; the parent kills, opens what is left, and holds it against
   a page that the threads counted on. Of each thread, what ended is there: 0 <= recovered - counted <= 1. In a ring the newest are, without
   a gap, and what gave way is counted. PROF_KILL_RUNS sets how many times (CI: 200 over both policies). */
#define _GNU_SOURCE
#include <prof/trace.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <pthread.h>
#include <unistd.h>

#include <cmocka.h>

#include "fault/support/captures.h"

enum { THREADS = 4, WAIT_TRIES = 20000 };

/* Shared with the child. Each thread writes its own line. */
typedef struct oracle {
  struct {
    uint64_t ended; /* stored after each scope */
    char pad[56];
  } threads[THREADS];
} oracle;

static oracle *page;

static void *record(void *argument) {
  const size_t me = (size_t)argument;
  char name[16];
  snprintf(name, sizeof name, "t%zu", me);
  prof_thread_set_name(name);
  for (uint64_t i = 1;; i++) {
    if (i % 64) WITH_BASE_PROFILER(PROF_HOST, "plain", "kill", PROF_NO_ARGS, {});
    else WITH_BASE_PROFILER(PROF_HOST, name, "kill", PROF_ARGS("i", i), {});
    __atomic_store_n(&page->threads[me].ended, i, __ATOMIC_RELEASE);
  }
  return NULL;
}

static void child(uint32_t policy) {
  const prof_options options = {.size = sizeof options, .level = 1, .policy = policy, .path = captures_path("kill.json"),
                                .cap_bytes = policy == PROF_POLICY_RING ? 4u << 20 : 2u << 30};
  pthread_t threads[THREADS];
  if (prof_start_with(&options) != PROF_OK) _exit(3);
  for (size_t i = 0; i < THREADS; i++)
    if (pthread_create(&threads[i], NULL, record, (void *)i) != 0) _exit(4);
  for (;;) pause();
}

static uint64_t all_ended(void) {
  uint64_t sum = 0;
  for (int i = 0; i < THREADS; i++) sum += __atomic_load_n(&page->threads[i].ended, __ATOMIC_ACQUIRE);
  return sum;
}

/* Kills the child at an instant between its first scopes and 30 ms later. */
static void run_and_kill(uint32_t policy) {
  memset(page, 0, sizeof *page);
  const pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) child(policy);
  const struct timespec look = {0, 200000}, instant = {0, rand() % 30000000};
  for (int i = 0; i < WAIT_TRIES && all_ended() < 1000 && waitpid(pid, NULL, WNOHANG) == 0; i++) nanosleep(&look, NULL);
  nanosleep(&instant, NULL);
  int status = 0;
  kill(pid, SIGKILL);
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* The left capture's path; the folder holds just one. */
static const char *left_capture(void) {
  static char path[CAPTURE_PATH_MAX];
  DIR *const folder = opendir(captures.folder);
  path[0] = '\0';
  for (const struct dirent *e; folder && (e = readdir(folder)) != NULL;)
    if (strstr(e->d_name, ".prof")) snprintf(path, sizeof path, "%s/%s", captures.folder, e->d_name);
  if (folder) closedir(folder);
  return path;
}

typedef struct totals {
  uint64_t recovered, counted, overwritten, runs;
} totals;

static void check(uint32_t policy, totals *sum) {
  const char *const path = left_capture();
  prof_trace *trace = NULL;
  assert_int_equal(prof_trace_open(path, &trace), PROF_OK);
  prof_trace_info info = {.size = sizeof info};
  assert_int_equal(prof_trace_info_get(trace, &info), PROF_OK);
  assert_int_equal(info.bad_count, 0);
  assert_false(info.was_clean);
  uint64_t scopes_of[THREADS] = {0}, found = 0;
  prof_cursor *cursor;
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  prof_event *const event = calloc(1, sizeof *event);
  assert_non_null(event);
  while (prof_cursor_next(cursor, event) == 1) {
    if (event->kind != PROF_EVENT_SCOPE) continue;
    prof_trace_thread thread = {.size = sizeof thread};
    assert_int_equal(prof_trace_thread_get(trace, event->thread, &thread), PROF_OK);
    assert_true(thread.name[0] == 't' && thread.name[1] >= '0' && thread.name[1] < '0' + THREADS);
    const int me = thread.name[1] - '0';
    scopes_of[me]++;
    found++;
    if (event->arg_count) { /* a run-time name and the scope's own number: both whole */
      assert_int_equal(event->name_bytes, strlen(thread.name));
      assert_memory_equal(event->name, thread.name, event->name_bytes);
      assert_true(event->args[0].value.u64 % 64 == 0 && event->args[0].value.u64 <= page->threads[me].ended + 1);
      if (policy == PROF_POLICY_STREAM) assert_int_equal(event->args[0].value.u64, scopes_of[me]);
    } else {
      assert_int_equal(event->name_bytes, 5);
      assert_memory_equal(event->name, "plain", 5);
    }
  }
  prof_cursor_destroy(cursor);
  free(event);
  assert_int_equal(found, info.scope_count);
  for (int i = 0; i < THREADS; i++) {
    const uint64_t counted = page->threads[i].ended;
    if (policy == PROF_POLICY_STREAM && (scopes_of[i] < counted || scopes_of[i] > counted + 1))
      fail_msg("thread %d: %llu recovered, %llu had ended", i, (unsigned long long)scopes_of[i], (unsigned long long)counted);
    sum->counted += counted;
  }
  const uint64_t lost = info.lost_count[PROF_LOSS_OVERWRITTEN] + info.lost_count[PROF_LOSS_NO_CHUNK];
  if (policy == PROF_POLICY_RING && (found + lost < all_ended() || found + lost > all_ended() + THREADS))
    fail_msg("%llu recovered + %llu lost, %llu had ended", (unsigned long long)found, (unsigned long long)lost, (unsigned long long)all_ended());
  sum->recovered += found;
  sum->overwritten += lost;
  sum->runs++;
  prof_trace_destroy(trace);
  assert_int_equal(unlink(path), 0);
}

static void many_kills(uint32_t policy, const char *name) {
  const char *const asked = getenv("PROF_KILL_RUNS");
  const int runs = asked ? atoi(asked) / 2 : 100;
  totals sum = {0};
  for (int i = 0; i < runs; i++) {
    run_and_kill(policy);
    check(policy, &sum);
  }
  printf("%s: %llu kills, %llu scopes had ended, %llu recovered, %llu lost and counted\n", name, (unsigned long long)sum.runs,
         (unsigned long long)sum.counted, (unsigned long long)sum.recovered, (unsigned long long)sum.overwritten);
}

static void stream_loses_nothing_that_had_ended(void **state) {
  (void)state;
  many_kills(PROF_POLICY_STREAM, "stream");
}

static void ring_keeps_the_newest_and_counts_the_rest(void **state) {
  (void)state;
  many_kills(PROF_POLICY_RING, "ring");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(stream_loses_nothing_that_had_ended), cmocka_unit_test(ring_keeps_the_newest_and_counts_the_rest)};
  srand((unsigned)time(NULL));
  page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED || !captures_make_folder(false)) return 1;
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  rmdir(captures.folder);
  return failed;
}
