/* Everything that can be asked of the profiler, from sixteen threads at once, at random, while
   others record. Nobody waits for ever, every answer is one of the few that fit, and in the end
   recorded + lost = attempted, exactly; with a budget that is exceeded all the time.

   PROF_MEDDLE_SECONDS: how long (6; with a sanitizer 20). */
#define _GNU_SOURCE
#include <prof/profiler.h>
#include <prof/trace.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "fault/support/captures.h"
#include "fault/support/skip.h"
#include "hang_guard.h"

enum { RECORDERS = 4, MEDDLERS = 12, SCOPES_A_ROUND = 32 };

typedef enum deed {
  START,
  START_2,
  STOP,
  CLEAR,
  GET,
  DUMP,
  HEALTH,
  DURATION,
  LEVEL_OUTSIDE,
  MUTE,
  HEAR,
  DEEDS
} deed;
static const char *const deed_names[] = {
    "start",    "start at 2",         "stop", "clear", "get", "dump", "health",
    "duration", "level from outside", "mute", "hear"};

static struct {
  uint64_t attempts, quit;
  uint64_t done[DEEDS];
  int wrong_status, wrong_deed; /* the first answer that does not fit */
  char capture[512], error[256];
} own;

static void count(uint64_t *what) { __atomic_fetch_add(what, 1, __ATOMIC_RELAXED); }
#define COUNTED(value) (count(&own.attempts), (value))

/* ---- who records ---- */

static void *record(void *argument) {
  uint32_t seed = (uint32_t)(uintptr_t)argument;
  while (!__atomic_load_n(&own.quit, __ATOMIC_RELAXED)) {
    for (int i = 0; i < SCOPES_A_ROUND; i++) {
      WITH_BASE_PROFILER(COUNTED(PROF_HOST), "outer", "meddle", PROF_ARGS("i", i), {
        if (rand_r(&seed) % 64 == 0) sched_yield();
        WITH_BASE_PROFILER_LEVEL(2, COUNTED(PROF_HOST), "inner", "meddle", PROF_NO_ARGS, {});
        PROF_INSTANT(COUNTED("instant"), "meddle", PROF_NO_ARGS);
      });
    }
  }
  return NULL;
}

/* ---- who meddles ---- */

static int get_and_walk(void) {
  prof_trace *trace = NULL;
  prof_event *const event = calloc(1, sizeof *event);
  prof_cursor *cursor = NULL;
  int status = prof_get(&trace);
  if (status == PROF_OK && event && prof_cursor_create(trace, &cursor) == PROF_OK) {
    for (int i = 0; i < 100 && prof_cursor_next(cursor, event) == 1; i++)
      if (!event->name_bytes) status = PROF_E_CHECK;
    prof_cursor_destroy(cursor);
  }
  if (trace) prof_trace_destroy(trace);
  free(event);
  return status;
}

static int dump_own(void) {
  char path[600];
  snprintf(path, sizeof path, "%s/dump-%ld.json", captures.folder, (long)syscall(SYS_gettid));
  return prof_dump(path);
}

static int do_deed(deed which) {
  prof_health health = {.size = sizeof health};
  uint64_t total_ns = 0, times = 0;
  switch (which) {
    case START:
      return prof_start(1);
    case START_2:
      return prof_start(2);
    case STOP:
      return prof_stop();
    case CLEAR:
      return prof_clear();
    case GET:
      return get_and_walk();
    case DUMP:
      return dump_own();
    case HEALTH:
      return prof_health(&health);
    case DURATION:
      return prof_get_duration("outer", "meddle", &total_ns, &times);
    case MUTE:
      return prof_mute("inner", NULL, 1);
    case HEAR:
      return prof_mute(NULL, NULL, 0);
    default:
      return prof_trace_set_level(own.capture, 2, NULL);
  }
}

static bool fits(deed which, int status) {
  if (status == PROF_OK) return true;
  if (status == PROF_E_NOT_RUNNING) return which == STOP || which == LEVEL_OUTSIDE;
  return status == PROF_E_NOT_FOUND && which == DURATION;
}

static void *meddle(void *argument) {
  uint32_t seed = (uint32_t)(uintptr_t)argument;
  while (!__atomic_load_n(&own.quit, __ATOMIC_RELAXED)) {
    const unsigned roll = (unsigned)rand_r(&seed) % 64; /* dumps and clears are dear */
    const deed which = roll < 2 ? DUMP : roll < 4 ? CLEAR : (deed)(roll % DEEDS);
    if (which == DUMP && roll >= 2) continue;
    const int status = do_deed(which);
    count(&own.done[which]);
    if (!fits(which, status) && !__atomic_exchange_n(&own.wrong_status, status, __ATOMIC_RELAXED)) {
      own.wrong_deed = which;
      snprintf(own.error, sizeof own.error, "%s", prof_last_error());
    }
    for (unsigned yields = (unsigned)rand_r(&seed) % 8; yields > 0; yields--) sched_yield();
  }
  return NULL;
}

/* ---- the test ---- */

static uint64_t seconds(void) {
  const char *const set = getenv("PROF_MEDDLE_SECONDS");
#if defined(__SANITIZE_ADDRESS__)
  const uint64_t usual = 6;
#else
  /* Threads take turns slowly under ThreadSanitizer. */
  const uint64_t usual = SKIP_SANITIZED ? 20 : 6;
#endif
  return set ? strtoull(set, NULL, 0) : usual;
}

static bool everything_was_done(void) {
  for (int i = 0; i < DEEDS; i++)
    if (!__atomic_load_n(&own.done[i], __ATOMIC_RELAXED)) return false;
  return true;
}

static uint64_t lost_in_all(const uint64_t *lost) {
  uint64_t sum = 0;
  for (int i = 0; i < PROF_LOSS_COUNT; i++) sum += lost[i];
  return sum;
}

static void sixteen_threads_may_ask_for_anything_at_once(void **state) {
  const prof_options options = {.size = sizeof options,
                                .level = 2,
                                .cap_bytes = 64 << 20,
                                .path = captures_path("out.json"),
                                .keep_capture = 1,
                                .budget_events = 2000000};
  pthread_t threads[RECORDERS + MEDDLERS];
  prof_health health = {.size = sizeof health};
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  (void)state;
  if (prof_start_with(&options) != PROF_OK) fail_msg("prof_start_with: %s", prof_last_error());
  prof_health(&health);
  snprintf(own.capture, sizeof own.capture, "%s", health.capture_path);
  for (intptr_t i = 0; i < RECORDERS + MEDDLERS; i++)
    assert_int_equal(
        pthread_create(&threads[i], NULL, i < RECORDERS ? record : meddle, (void *)(i + 1)), 0);
  const uint64_t limit = seconds() + hang_seconds();
  for (uint64_t s = 0; s < seconds() || (s < limit && !everything_was_done()); s++) sleep(1);
  __atomic_store_n(&own.quit, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < RECORDERS + MEDDLERS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < DEEDS; i++)
    print_message("  %8llu times %s\n", (unsigned long long)own.done[i], deed_names[i]);
  if (own.wrong_status)
    fail_msg("%s: %s (%s)", deed_names[own.wrong_deed], prof_status_name(own.wrong_status),
             own.error);

  prof_start(2);
  assert_int_equal(prof_health(&health), PROF_OK);
  const uint64_t lost = lost_in_all(health.lost_count);
  print_message("  %llu attempted: %llu recorded, %llu lost\n", (unsigned long long)own.attempts,
                (unsigned long long)health.recorded_count, (unsigned long long)lost);
  if (health.recorded_count + lost != own.attempts)
    fail_msg("health: %llu + %llu lost, %llu attempted", (unsigned long long)health.recorded_count,
             (unsigned long long)lost, (unsigned long long)own.attempts);
  assert_int_equal(prof_get(&trace), PROF_OK);
  prof_trace_info_get(trace, &info);
  prof_trace_destroy(trace);
  if (info.event_count + lost_in_all(info.lost_count) != own.attempts || info.bad_count ||
      info.open_count)
    fail_msg("the reader: %llu + %llu lost, %llu attempted; %llu bad, %llu open",
             (unsigned long long)info.event_count, (unsigned long long)lost_in_all(info.lost_count),
             (unsigned long long)own.attempts, (unsigned long long)info.bad_count,
             (unsigned long long)info.open_count);
  for (int i = 0; i < DEEDS; i++)
    if (!own.done[i]) fail_msg("nobody came to: %s", deed_names[i]);
  prof_stop();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sixteen_threads_may_ask_for_anything_at_once)};
  if (!captures_make_folder(false)) return 1;
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  captures_clear();
  captures_remove_folder();
  return failed;
}
