/* A host with a timer of 10 kHz whose handler is not restarted (no SA_RESTART), as sampling
   profilers have: every call into the kernel may return EINTR. Starts, dumps, reads and stops
   succeed, and all is recorded: into a file on disk, into memory, and on tmpfs, where a reservation
   of room begins anew after each signal. */
#define _GNU_SOURCE
#include "failing/host.h"

#include <signal.h>
#include <time.h>

enum { ROUNDS = 4, SCOPES = 200000, PERIOD_US = 100 };

typedef struct interrupted {
  const char *path;
  uint32_t helper_thread;
  prof_policy policy;
} interrupted;

static volatile sig_atomic_t ticks;

static void tick(int signal_number) {
  const int saved = errno;
  (void)signal_number;
  ticks++;
  errno = saved;
}

static void set_timer(int period_us) {
  /* no SA_RESTART. SIGALRM is the test's own limit */
  const struct sigaction action = {.sa_handler = tick};
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGPROF};
  const struct itimerspec period = {{0, period_us * 1000}, {0, period_us * 1000}};
  timer_t timer;
  check(sigaction(SIGPROF, &action, NULL) == 0, "%s", strerror(errno));
  check(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0, "%s", strerror(errno));
  check(timer_settime(timer, 0, &period, NULL) == 0, "%s", strerror(errno));
}

static int run_interrupted(const void *context) {
  const interrupted *const what = context;
  set_timer(PERIOD_US);
  for (unsigned round = 0; round < ROUNDS; round++) {
    /* Another cap each time, so another capture. Large ones: their chunks are of a MiB, so that
       signals come while one is reserved. */
    const prof_options options = {.size = sizeof options,
                                  .path = what->path,
                                  .policy = what->policy,
                                  .cap_bytes = (64u + round) << 20,
                                  .helper_thread = what->helper_thread};
    check_status(prof_start_with(&options), PROF_OK);
    prof_health health = health_now();
    check(health.survives_kill == (what->path != NULL), "round %u: %s", round, health.reason);
    record_scopes(SCOPES);
    prof_trace *trace = NULL;
    check_status(prof_get(&trace), PROF_OK);
    prof_trace_destroy(trace);
    check_status(prof_dump(host_path(round ? "part.json" : "part.json.gz")), PROF_OK);
    check_status(prof_clear(), PROF_OK);
    record_scopes(SCOPES);
    check_status(prof_stop(), PROF_OK);
    health = health_now();
    check(health.recorded_count == SCOPES && health.lost_count[PROF_LOSS_CLEARED] == SCOPES &&
              health_lost(&health) == SCOPES,
          "round %u: %" PRIu64 " recorded, %" PRIu64 " cleared, %" PRIu64 " lost in all", round,
          health.recorded_count, health.lost_count[PROF_LOSS_CLEARED], health_lost(&health));
    check_status(prof_dump(what->path ? NULL : host_path("whole.json")), PROF_OK);
  }
  check(ticks > 1000, "only %d signals came", (int)ticks);
  return 0;
}

static void into_a_file_all_goes_through(void **state) {
  (void)state;
  const interrupted what = {host_path("trace.json"), 0, PROF_POLICY_STREAM};
  host_expect("interrupted", run_interrupted, &what);
}

static void into_a_file_with_a_helper_thread_all_goes_through(void **state) {
  (void)state;
  const interrupted what = {host_path("trace.json"), 1, PROF_POLICY_STREAM};
  host_expect("interrupted", run_interrupted, &what);
}

static void on_tmpfs_all_goes_through(void **state) {
  (void)state;
  char path[HOST_PATH_ROOM], names[512];
  snprintf(path, sizeof path, "/dev/shm/%s.json", strrchr(host_folder, '/') + 1);
  const interrupted what = {path, 0, PROF_POLICY_STREAM};
  if (access("/dev/shm", W_OK) != 0) {
    print_message("skip: /dev/shm is not writable here\n");
    skip();
  }
  host_expect("interrupted", run_interrupted, &what);
  assert_int_equal(unlink(path), 0);
  assert_int_equal(host_entries("/dev/shm", strrchr(host_folder, '/') + 1, names, sizeof names), 0);
}

static void in_memory_all_goes_through(void **state) {
  (void)state;
  const interrupted what = {NULL, 0, PROF_POLICY_KEEP};
  host_expect("interrupted", run_interrupted, &what);
}

int main(void) {
#define TEST(name) cmocka_unit_test_teardown(name, host_empty_folder)
  const struct CMUnitTest tests[] = {
      TEST(into_a_file_all_goes_through),
      TEST(into_a_file_with_a_helper_thread_all_goes_through),
      TEST(on_tmpfs_all_goes_through),
      TEST(in_memory_all_goes_through),
  };
  return cmocka_run_group_tests_name("interrupted", tests, host_make_folder, host_remove_folder);
}
