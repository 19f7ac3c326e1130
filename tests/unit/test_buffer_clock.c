/* The clock: ticks, their rate against CLOCK_MONOTONIC, and how exact a conversion is said to
   be. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <prof/profiler.h>
#include <prof/trace.h>

#include "base/port.h"
#include "core/buffer/clock.h"

#include "hang_guard.h"
#include "health.h"

/* One of each pair (clock asked for, ticks per ns known beforehand or 0). Skips what this machine
   lacks. */
static int start_with_clock(uint32_t clock) {
  const prof_options options = {.size = sizeof options, .clock = clock, .cap_bytes = 2 << 20};
  const int status = prof_start_with(&options);
  if (status == PROF_E_UNSUPPORTED) {
    print_message("skip: %s\n", prof_last_error());
    return 0;
  }
  assert_int_equal(status, PROF_OK);
  return 1;
}

static void spin_until(uint64_t ns) {
  while (prof_i_port_monotonic_ns() < ns) {
  }
}

static void a_clock_that_nobody_knows_is_refused(void **state) {
  (void)state;
  const prof_options options = {.size = sizeof options, .clock = 3};
  assert_int_equal(prof_start_with(&options), PROF_E_INVALID);
}

static void the_default_is_the_counter_where_it_is_safe(void **state) {
  (void)state;
  const char *why = "";
  const int is_safe = prof_i_port_counter_is_safe(&why);
  assert_int_equal(prof_i_clock_choose(PROF_CLOCK_DEFAULT), PROF_OK);
  assert_int_equal(prof_i_clock_kind(), is_safe ? PROF_CLOCK_TSC : PROF_CLOCK_MONOTONIC);
  assert_int_equal(prof_i_clock_choose(PROF_CLOCK_TSC), is_safe ? PROF_OK : PROF_E_UNSUPPORTED);
  assert_int_equal(prof_i_clock_choose(PROF_CLOCK_MONOTONIC), PROF_OK);
  assert_false(prof_i_clock_is_counter());
  const uint64_t before = prof_i_port_raw_ns(), ticks = prof_i_clock_ticks(),
                 after = prof_i_port_raw_ns();
  assert_in_range(ticks, before, after); /* nanoseconds themselves */
}

/* A scope that is known to last 20 to 20.x ms comes back as that, with either clock. If each
   reading of the clocks was interrupted, the recording has the possible error, and is repeated. */
static void durations_are_the_hosts(void **state) {
  (void)state;
  unsigned naps = 0;
  for (uint32_t clock = PROF_CLOCK_TSC; clock <= PROF_CLOCK_MONOTONIC; clock++) {
    if (!start_with_clock(clock)) continue;
    assert_int_equal(prof_clear(), PROF_OK);
    uint64_t least = 0, most = 0, total = 0;
    const uint64_t outer_begin = prof_i_port_monotonic_ns();
    WITH_BASE_PROFILER(PROF_HOST, "20 ms", "x", PROF_NO_ARGS, {
      const uint64_t begin = prof_i_port_monotonic_ns();
      spin_until(begin + 20000000);
      least = prof_i_port_monotonic_ns() - begin;
    });
    most = prof_i_port_monotonic_ns() - outer_begin;
    assert_int_equal(prof_stop(), PROF_OK);
    assert_int_equal(prof_get_duration("20 ms", NULL, &total, NULL), PROF_OK);
    const prof_health health = health_now();
    /* 1e-4: the rate is known from the run's own pairs */
    const uint64_t error = least / 10000 + 2000 + 2 * health.clock_error_ns;
    assert_in_range(total, least - error, most + error);
    assert_int_equal(health.clock, clock);
    assert_int_equal(health.clock_segments_count, 1);
    if (health.clock_error_ns > 100000 && hang_nap(&naps)) {
      clock--;
      continue;
    }
    assert_in_range(health.clock_error_ns, 0, 100000);
    if (clock == PROF_CLOCK_MONOTONIC)
      assert_true(health.ticks_per_ns > 0.999 && health.ticks_per_ns < 1.001);
    else
      assert_true(health.ticks_per_ns > 0.01 && health.ticks_per_ns < 10);
  }
}

/* Instants recorded between two readings of CLOCK_MONOTONIC come back between them. */
static void times_are_on_the_hosts_clock(void **state) {
  (void)state;
  enum { COUNT = 50 };
  uint64_t before[COUNT], after[COUNT];
  if (!start_with_clock(PROF_CLOCK_DEFAULT)) return;
  for (int i = 0; i < COUNT; i++) {
    before[i] = prof_i_port_monotonic_ns();
    PROF_INSTANT("now", "x", PROF_NO_ARGS);
    after[i] = prof_i_port_monotonic_ns();
    spin_until(after[i] + 500000);
  }
  assert_int_equal(prof_stop(), PROF_OK);
  prof_trace *trace = NULL;
  prof_cursor *cursor = NULL;
  static prof_event event;
  prof_trace_info info = {.size = sizeof info};
  assert_int_equal(prof_get(&trace), PROF_OK);
  assert_int_equal(prof_trace_info_get(trace, &info), PROF_OK);
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  const uint64_t error = info.clock_error_ns + 2000;
  for (int i = 0; i < COUNT; i++) {
    assert_int_equal(prof_cursor_next(cursor, &event), 1);
    assert_in_range(info.start_ns + event.start_ns, before[i] - error, after[i] + error);
  }
  prof_cursor_destroy(cursor);
  prof_trace_destroy(trace);
}

/* A process that may not read the counter, neither itself nor by the C library's clocks, which read
   it too. There prof must do without, from the first start to the dump. */
static void a_process_without_the_counter_records(void **state) {
  (void)state;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  print_message(
      "skip: the sanitizer's own code reads the counter, AddressSanitizer's where it takes memory "
      "of a size for the first time\n");
#elif defined(__x86_64__)
  const pid_t child = fork();
  if (child == 0) {
    if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) != 0) _exit(77);
    const prof_options options = {.size = sizeof options, .cap_bytes = 3 << 20};
    if (prof_start_with(&options) != PROF_OK) _exit(2);
    for (int i = 0; i < 5000; i++) WITH_BASE_PROFILER(PROF_HOST, "without", "x", PROF_NO_ARGS, {});
    const pid_t grandchild = fork(); /* our handlers run here, too */
    if (grandchild == 0) _exit(0);
    int how = 0;
    if (grandchild < 0 || waitpid(grandchild, &how, 0) != grandchild || how != 0) _exit(3);
    prof_health health = {.size = sizeof health};
    if (prof_health(&health) != PROF_OK || health.clock != PROF_CLOCK_MONOTONIC) _exit(4);
    if (prof_stop() != PROF_OK || prof_dump("/dev/null") != PROF_OK) _exit(5);
    prof_trace *trace = NULL;
    prof_trace_info info = {.size = sizeof info};
    if (prof_get(&trace) != PROF_OK || prof_trace_info_get(trace, &info) != PROF_OK) _exit(6);
    _exit(info.scope_count == 5000 && info.clock == PROF_CLOCK_MONOTONIC ? 0 : 7);
  }
  int how = 0;
  assert_int_equal(waitpid(child, &how, 0), child);
  if (WIFEXITED(how) && WEXITSTATUS(how) == 77) {
    print_message("skip: this kernel does not forbid the time-stamp counter\n");
    return;
  }
  if (!WIFEXITED(how) || WEXITSTATUS(how) != 0)
    fail_msg("the child ended with %d, signal %d", WEXITSTATUS(how), WTERMSIG(how));
#else
  print_message("skip: only x86-64 forbids the counter\n");
#endif
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_clock_that_nobody_knows_is_refused),
      cmocka_unit_test(the_default_is_the_counter_where_it_is_safe),
      cmocka_unit_test(durations_are_the_hosts),
      cmocka_unit_test(times_are_on_the_hosts_clock),
      cmocka_unit_test(a_process_without_the_counter_records),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
