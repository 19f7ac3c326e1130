/* recorded + lost = attempted, exactly: four threads record at full rate, with plain and long scopes, while a 10 kHz handler records on all
   of them; under each policy, through health, the reader, and thread by thread. PROF_EXACT_SCOPES: attempts of the threads in all (CI: 1e8). */
#define _GNU_SOURCE
#include <prof/trace.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <pthread.h>
#include <unistd.h>

#include <cmocka.h>

#include "fault/support/captures.h"

enum { THREADS = 4 };

static struct {
  uint64_t each;
  uint64_t attempted[THREADS]; /* by the thread itself */
  uint64_t in_handler[THREADS];
  volatile int stop;
} run;

static __thread volatile uint64_t handled; /* scopes of the handler on this thread */
static __thread volatile int is_recorder;

static void on_tick(int number) {
  (void)number;
  if (!is_recorder) return;
  WITH_BASE_PROFILER(PROF_HOST, "handler", "exact", PROF_ARGS("n", handled), { handled = handled + 1; });
}

static void *record(void *argument) {
  const size_t me = (size_t)argument;
  char name[16];
  snprintf(name, sizeof name, "t%zu", me);
  prof_thread_set_name(name);
  is_recorder = 1;
  for (uint64_t i = 0; i < run.each; i++) {
    if (i % 16) WITH_BASE_PROFILER(PROF_HOST, "plain", "exact", PROF_NO_ARGS, {});
    else WITH_BASE_PROFILER(PROF_HOST, name, "exact", PROF_ARGS("i", i, "text", "some text"), {});
  }
  is_recorder = 0;
  run.attempted[me] = run.each;
  run.in_handler[me] = handled;
  return NULL;
}

static void run_threads(void) {
  pthread_t threads[THREADS];
  const struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
  const struct itimerval every = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
  sigaction(SIGPROF, &action, NULL);
  for (size_t i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, record, (void *)i), 0);
  setitimer(ITIMER_PROF, &every, NULL);
  for (size_t i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  setitimer(ITIMER_PROF, &never, NULL);
}

static uint64_t sum_losses(const uint64_t *lost) {
  uint64_t sum = 0;
  for (int i = 0; i < PROF_LOSS_COUNT; i++) sum += lost[i];
  return sum;
}

static void compare(const char *name, uint64_t attempted, uint64_t recorded, const uint64_t *lost) {
  printf("%-24s %11llu attempted = %11llu recorded + %11llu lost (", name, (unsigned long long)attempted, (unsigned long long)recorded,
         (unsigned long long)sum_losses(lost));
  for (int i = 0; i < PROF_LOSS_COUNT; i++)
    if (lost[i]) printf("%s %llu ", prof_loss_name(i), (unsigned long long)lost[i]);
  puts(")");
  assert_int_equal(attempted, recorded + sum_losses(lost));
}

/* Of each thread by its name, what the reader found and what its exit record or slot says. Losses by a ring are nobody's. */
static void compare_threads(const prof_trace *trace, const prof_trace_info *info, int by_thread) {
  for (uint32_t i = 0; i < info->thread_count; i++) {
    prof_trace_thread thread = {.size = sizeof thread};
    assert_int_equal(prof_trace_thread_get(trace, i, &thread), PROF_OK);
    if (thread.name[0] != 't' || thread.name[2]) continue;
    const int me = thread.name[1] - '0';
    assert_true(me >= 0 && me < THREADS);
    if (by_thread) assert_int_equal(thread.event_count + sum_losses(thread.lost_count), run.attempted[me] + run.in_handler[me]);
  }
}

static void exact(const char *name, prof_options options, int by_thread) {
  const char *const asked = getenv("PROF_EXACT_SCOPES");
  options.size = sizeof options;
  memset(&run, 0, sizeof run);
  run.each = (asked ? strtoull(asked, NULL, 10) : 20000000u) / THREADS / 4;
  assert_int_equal(prof_start_with(&options), PROF_OK);
  run_threads();
  assert_int_equal(prof_stop(), PROF_OK);
  uint64_t attempted = 0;
  for (int i = 0; i < THREADS; i++) attempted += run.attempted[i] + run.in_handler[i];
  prof_health health = {.size = sizeof health};
  assert_int_equal(prof_health(&health), PROF_OK);
  compare(name, attempted, health.recorded_count, health.lost_count);
  prof_trace *trace;
  prof_trace_info info = {.size = sizeof info};
  assert_int_equal(prof_get(&trace), PROF_OK);
  assert_int_equal(prof_trace_info_get(trace, &info), PROF_OK);
  compare("  through the reader", attempted, info.event_count - info.open_count, info.lost_count);
  assert_int_equal(info.bad_count, 0);
  compare_threads(trace, &info, by_thread);
  prof_trace_destroy(trace);
  if (health.capture_path[0]) unlink(health.capture_path);
}

static void keep(void **state) {
  (void)state;
  exact("keep, 16 MiB", (prof_options){.policy = PROF_POLICY_KEEP, .cap_bytes = 16u << 20}, 1);
}
static void ring(void **state) {
  (void)state;
  exact("ring, 8 MiB", (prof_options){.policy = PROF_POLICY_RING, .cap_bytes = 8u << 20}, 0);
}
static void stream(void **state) {
  (void)state;
  exact("stream, 64 MiB", (prof_options){.path = captures_path("exact.json"), .cap_bytes = 64u << 20}, 1);
}
static void stream_with_helper(void **state) {
  (void)state;
  exact("stream with helper", (prof_options){.path = captures_path("helper.json"), .cap_bytes = 2048ull << 20, .helper_thread = 1}, 1);
}
static void everything_in_memory(void **state) {
  (void)state;
  exact("keep, all of it", (prof_options){.policy = PROF_POLICY_KEEP, .cap_bytes = 4096ull << 20}, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(keep), cmocka_unit_test(ring), cmocka_unit_test(stream),
                                     cmocka_unit_test(stream_with_helper), cmocka_unit_test(everything_in_memory)};
  if (!captures_make_folder(false)) return 1;
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  rmdir(captures.folder);
  return failed;
}
