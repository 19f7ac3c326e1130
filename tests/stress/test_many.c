/* Threads without number: each records ten scopes and goes, 64 at a time are alive, and every
   fourth records on in a destructor that another library has left for its end. All events are
   there; memory, descriptors and what stands for the dead stay small.

   PROF_THREADS: how many in all (100 000). */
#define _GNU_SOURCE
#include <dirent.h>
#include <prof/profiler.h>
#include <prof/trace.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "fault/support/captures.h"
#include "fault/support/skip.h"

enum {
  ALIVE = 64,
  SCOPES_EACH = 10,
  SCOPES_IN_DESTRUCTOR = 2,
  BYTES_A_THREAD_MOST = 1024,
  BYTES_OF_THE_ALIVE = ALIVE * (64 + 16)
                       << 10 /* slots and first chunks, if fewer have met before than may */
};

static struct {
  uint64_t wanted, begun, attempts;
  pthread_key_t key;
} own;

static void record(int times) {
  for (int i = 0; i < times; i++)
    WITH_BASE_PROFILER(PROF_HOST, "short", "many", PROF_ARGS("i", i), {});
  __atomic_fetch_add(&own.attempts, (uint64_t)times, __ATOMIC_RELAXED);
}

/* The key is older than prof's, so libc calls this first; the second time round prof's own has been
   called. */
static void at_its_end(void *times) {
  record(SCOPES_IN_DESTRUCTOR);
  if ((intptr_t)times > 1) pthread_setspecific(own.key, (void *)((intptr_t)times - 1));
}

static void *short_life(void *number) {
  if ((uintptr_t)number % 4 == 0) pthread_setspecific(own.key, (void *)(intptr_t)2);
  record(SCOPES_EACH);
  return NULL;
}

static void *make_them(void *unused) {
  (void)unused;
  for (uint64_t n; (n = __atomic_fetch_add(&own.begun, 1, __ATOMIC_RELAXED)) < own.wanted;) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, short_life, (void *)(uintptr_t)n) != 0) return (void *)1;
    pthread_join(thread, NULL);
  }
  return NULL;
}

static int count_descriptors(void) {
  int count = 0;
  DIR *const entries = opendir("/proc/self/fd");
  while (entries && readdir(entries)) count++;
  if (entries) closedir(entries);
  return count;
}

static uint64_t resident_bytes(void) {
  unsigned long long pages = 0;
  FILE *const file = fopen("/proc/self/statm", "r");
  if (file && fscanf(file, "%*u %llu", &pages) != 1) pages = 0;
  if (file) fclose(file);
  return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void run(uint64_t wanted) {
  pthread_t makers[ALIVE];
  own.wanted = wanted;
  own.begun = 0;
  for (int i = 0; i < ALIVE; i++)
    assert_int_equal(pthread_create(&makers[i], NULL, make_them, NULL), 0);
  for (int i = 0; i < ALIVE; i++) {
    void *failed = NULL;
    pthread_join(makers[i], &failed);
    assert_null(failed);
  }
}

static void all_that_short_threads_recorded_is_there(void **state) {
  const char *const set = getenv("PROF_THREADS");
  const uint64_t wanted = set ? strtoull(set, NULL, 0) : SKIP_SANITIZED ? 3000 : 100000;
  const prof_options options = {
      .size = sizeof options, .policy = PROF_POLICY_STREAM, .path = captures_path("out.json")};
  prof_health health = {.size = sizeof health};
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  struct timespec begun, read;
  (void)state;
  if (prof_start_with(&options) != PROF_OK) fail_msg("prof_start_with: %s", prof_last_error());
  run(ALIVE * 4);
  prof_health(&health);
  const int descriptors = count_descriptors();
  const uint64_t resident = resident_bytes(), arena = health.arena_bytes;
  run(wanted);
  assert_int_equal(count_descriptors(), descriptors);
  assert_int_equal(prof_health(&health), PROF_OK);
  for (int i = 0; i < PROF_LOSS_COUNT; i++)
    if (health.lost_count[i])
      fail_msg("%llu lost as '%s'", (unsigned long long)health.lost_count[i], prof_loss_name(i));
  assert_int_equal(health.recorded_count, own.attempts);
  assert_int_equal(health.threads_alive_count, 0); /* the main thread has recorded nothing */
  if (health.arena_bytes > arena + wanted * BYTES_A_THREAD_MOST + BYTES_OF_THE_ALIVE)
    fail_msg("%llu bytes of arena for %llu threads",
             (unsigned long long)(health.arena_bytes - arena), (unsigned long long)wanted);
  const uint64_t grown = resident_bytes() > resident ? resident_bytes() - resident : 0;

  clock_gettime(CLOCK_MONOTONIC, &begun);
  assert_int_equal(prof_get(&trace), PROF_OK);
  prof_trace_info_get(trace, &info);
  clock_gettime(CLOCK_MONOTONIC, &read);
  assert_int_equal(info.scope_count, own.attempts);
  assert_int_equal(info.bad_count, 0);
  assert_int_equal(info.open_count, 0);
  uint64_t events = 0;
  for (uint32_t i = 0; i < info.thread_count; i++) {
    prof_trace_thread thread = {.size = sizeof thread};
    prof_trace_thread_get(trace, i, &thread);
    events += thread.event_count;
  }
  assert_int_equal(events, own.attempts);
  prof_trace_destroy(trace);
  print_message(
      "  %llu threads, %llu scopes; %.0f bytes of arena a thread, %.1f MiB more resident, read in "
      "%.2f s, %u threads told apart\n",
      (unsigned long long)wanted, (unsigned long long)own.attempts,
      (double)(health.arena_bytes - arena) / (double)wanted, (double)grown / 1048576,
      (double)(read.tv_sec - begun.tv_sec) + (double)(read.tv_nsec - begun.tv_nsec) / 1e9,
      info.thread_count);
  if (!SKIP_SANITIZED && grown > 64 << 20)
    fail_msg("%.1f MiB more are resident", (double)grown / 1048576);
  prof_stop();
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(all_that_short_threads_recorded_is_there)};
  if (pthread_key_create(&own.key, at_its_end) != 0 || !captures_make_folder(false)) return 1;
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  captures_clear();
  captures_remove_folder();
  return failed;
}
