/* kill -9 at random instants, of a process whose scopes are on devices. Two threads put them on an
   emulated device's streams. They write the number of device sides that the capture had into a page
   that survives with the parent. The library reads what is left: nothing is damaged, no resolved
   device side is missing, each is there once, and those of a stream are in order. If a reading sets
   the device's clock back by less than a step, the host's time stands still until the device has
   come as far. What began in that time has one beginning, and the longest comes first.

   Every second kill waits until something has been resolved, on a busy machine too. The others come
   at any instant after the fork.

   PROF_KILL_RUNS: how many kills (60; 15 under a sanitizer). PROF_KILL_SEED: of the instants. */
#define _GNU_SOURCE
#include <prof/device.h>
#include <prof/profiler.h>
#include <prof/trace.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "emulated/emulated.h"
#include "fault/support/captures.h"
#include "fault/support/skip.h"
#include "hang_guard.h"

enum { STREAMS = 2, AHEAD = 64, LONGEST_US = 60000, LAUNCHED_MAX = 1 << 20 };

static const prof_device device = {EMULATED_TYPE, 0};

/* Shared with the child. */
static struct {
  volatile uint64_t launched[STREAMS]; /* scopes that have begun */
  volatile uint64_t harvested;         /* device sides that have been read out of the capture */
} * told;

/* ---- the child ---- */

static void *launch(void *which) {
  const int number = (int)(intptr_t)which;
  emulated_stream *const stream = emulated_create(0);
  for (uint64_t i = 0;; i++) {
    char name[32];
    snprintf(name, sizeof name, "%d:%llu", number, (unsigned long long)i);
    told->launched[number] = i + 1;
    WITH_GPU_PROFILER(device, (uintptr_t)stream, name, "kill", PROF_NO_ARGS,
                      { emulated_launch(stream, 0); });
    if (i % AHEAD == AHEAD - 1) emulated_wait(stream);
  }
  return NULL;
}

static uint64_t harvested_now(void) {
  prof_trace *trace = NULL;
  prof_trace_device about = {.size = sizeof about};
  if (prof_get(&trace) != PROF_OK) return 0;
  if (prof_trace_device_get(trace, 0, &about) != PROF_OK) about.scope_count = 0;
  prof_trace_destroy(trace);
  return about.scope_count;
}

static void record_until_killed(void) {
  const prof_options options = {.size = sizeof options,
                                .policy = PROF_POLICY_STREAM,
                                .path = captures_path("out.json"),
                                .cap_bytes = 512u << 20};
  pthread_t threads[STREAMS];
  emulated_fault.has_clock = 1;
  if (prof_backend_add(&emulated_backend) != PROF_OK || prof_start_with(&options) != PROF_OK)
    _exit(1);
  for (int i = 0; i < STREAMS; i++)
    if (pthread_create(&threads[i], NULL, launch, (void *)(intptr_t)i) != 0) _exit(2);
  for (;;) told->harvested = harvested_now();
}

/* ---- what is left ---- */

static struct {
  uint64_t random, on_device, harvested, early;
  int runs;
} own;

static uint64_t next_random(void) {
  own.random ^= own.random << 13;
  own.random ^= own.random >> 7;
  own.random ^= own.random << 17;
  return own.random;
}

/* Of a stream. */
typedef struct passed {
  uint8_t *is_seen; /* by number */
  uint64_t launched, next, start_ns;
} passed;

static void check_event(const prof_event *event, passed *streams) {
  char name[64];
  int stream;
  unsigned long long number;
  snprintf(name, sizeof name, "%.*s", (int)event->name_bytes, event->name);
  if (sscanf(name, "%d:%llu", &stream, &number) != 2 || stream < 0 || stream >= STREAMS) {
    fail_msg("'%s' is no name of a scope", name);
    return;
  }
  passed *const of = &streams[stream];
  if (number >= of->launched)
    fail_msg("'%s' of %llu that had been launched", name, (unsigned long long)of->launched);
  if (of->is_seen[number]) fail_msg("'%s' is there twice", name);
  if (number < of->next && event->start_ns != of->start_ns)
    fail_msg("'%s' at %llu ns comes behind '%d:%llu' at %llu ns", name,
             (unsigned long long)event->start_ns, stream, (unsigned long long)of->next - 1,
             (unsigned long long)of->start_ns);
  of->is_seen[number] = 1;
  if (number >= of->next) of->next = number + 1;
  of->start_ns = event->start_ns;
}

static void begin_check(passed *streams) {
  static uint8_t seen[STREAMS][LAUNCHED_MAX];
  for (int i = 0; i < STREAMS; i++) {
    streams[i] = (passed){.launched = told->launched[i], .is_seen = seen[i]};
    assert_in_range(told->launched[i], 0, LAUNCHED_MAX);
    memset(seen[i], 0, told->launched[i]);
  }
}

static void check_capture(const char *path) {
  static prof_event event;
  prof_trace *trace = NULL;
  prof_cursor *cursor = NULL;
  prof_trace_info info = {.size = sizeof info};
  passed streams[STREAMS];
  uint64_t on_device = 0;
  if (prof_trace_open(path, &trace) != PROF_OK) fail_msg("%s", prof_last_error());
  assert_int_equal(prof_trace_info_get(trace, &info), PROF_OK);
  assert_int_equal(info.bad_count, 0);
  assert_int_equal(info.lost_count[PROF_LOSS_FULL] + info.lost_count[PROF_LOSS_OVERWRITTEN], 0);
  begin_check(streams);
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  while (prof_cursor_next(cursor, &event) == 1) {
    if (!(event.flags & PROF_EVENT_ON_DEVICE)) continue;
    check_event(&event, streams);
    on_device++;
  }
  prof_cursor_destroy(cursor);
  prof_trace_destroy(trace);
  if (on_device < told->harvested)
    fail_msg("%llu device sides had been harvested, %llu are there",
             (unsigned long long)told->harvested, (unsigned long long)on_device);
  own.on_device += on_device;
  own.harvested += told->harvested;
}

static bool has_ended(pid_t child) {
  siginfo_t info = {.si_pid = 0};
  return waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0;
}

/* A child that has ended by itself is found by run_once(). */
static void await_harvest(pid_t child) { WAIT_WHILE(!told->harvested && !has_ended(child)); }

static void run_once(bool waits) {
  const uint64_t wait_us = next_random() % LONGEST_US;
  memset((void *)(uintptr_t)told, 0, sizeof *told);
  fflush(NULL);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) record_until_killed();
  if (waits) await_harvest(child);
  nanosleep(&(const struct timespec){0, (long)wait_us * 1000}, NULL);
  kill(child, SIGKILL);
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  if (!WIFSIGNALED(status)) fail_msg("the child ended by itself, status %x", (unsigned)status);
  captures_look();
  captures_measure();
  uint64_t launched = 0;
  for (int i = 0; i < STREAMS; i++) launched += told->launched[i];
  if (captures.count == 1 && captures.sizes[0] >= 4096 && launched) {
    check_capture(captures_path(captures.names[0]));
  } else {
    own.early++;
    assert_int_equal(told->harvested, 0);
  }
  captures_clear();
}

static void what_had_been_harvested_is_there_after_kill_9(void **state) {
  (void)state;
  for (int run = 0; run < own.runs; run++) run_once(run % 2 == 0);
  print_message(
      "  %llu device sides recovered, of %llu it was known, %llu of %d killed before the first "
      "scope\n",
      (unsigned long long)own.on_device, (unsigned long long)own.harvested,
      (unsigned long long)own.early, own.runs);
  assert_true(own.harvested > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_had_been_harvested_is_there_after_kill_9)};
  const char *const runs = getenv("PROF_KILL_RUNS"), *const seed = getenv("PROF_KILL_SEED");
  own.runs = runs ? atoi(runs) : SKIP_SANITIZED ? 15 : 60;
  own.random = seed ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL) * 0x9e3779b97f4a7c15ull | 1;
  told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (told == MAP_FAILED || !captures_make_folder(false)) return 1;
  print_message("%d kills, PROF_KILL_SEED=%#llx\n", own.runs, (unsigned long long)own.random);
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  captures_remove_folder();
  return failed;
}
