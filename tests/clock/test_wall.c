/* The wall clock is set while scopes are recorded: by NTP, by an operator, by hours and either way.
   Times and durations are CLOCK_MONOTONIC's; the wall clock's time that exports count from is that
   of the start; and that it was set is counted and shown. */
#define _GNU_SOURCE
#include "fake.h"

static const uint64_t good_error_ns = 200;
static const int64_t hour_ns = 3600ll * 1000000000;

static char trace_path[64], capture_path[512];
static uint64_t start_wall; /* what the wall clock said right before the start */

/* Three hours ahead, five back, and a second ahead in the last stretch. */
static prof_trace *record(void) {
  snprintf(trace_path, sizeof trace_path, "/tmp/prof-clock-wall-%d.json", (int)getpid());
  fake_reset();
  start_wall = fake.now + (uint64_t)fake.wall;
  start_with(PROF_CLOCK_DEFAULT, trace_path, 0, 0);
  const uint32_t outer = begin_scope();
  record_scopes(100, 20 * fake_us, 80 * fake_us);
  take_a_pair();
  fake.wall += 3 * hour_ns;
  record_scopes(100, 20 * fake_us, 80 * fake_us);
  take_a_pair();
  fake.wall -= 5 * hour_ns;
  record_scopes(100, 20 * fake_us, 80 * fake_us);
  take_a_pair();
  record_scopes(100, 20 * fake_us, 80 * fake_us);
  fake.wall += 1000000000;
  end_scope(outer);
  prof_trace *const trace = stop_and_check();
  prof_health health = {.size = sizeof health};
  assert_int_equal(prof_health(&health), PROF_OK);
  snprintf(capture_path, sizeof capture_path, "%s", health.capture_path);
  return trace;
}

static void forget(prof_trace *trace) {
  prof_trace_destroy(trace);
  unlink(trace_path);
  unlink(capture_path);
}

static void steps_of_the_wall_clock_move_nothing_and_are_counted(void **state) {
  (void)state;
  prof_trace *const trace = record();
  const prof_trace_info info = info_of(trace);
  assert_int_equal(info.wall_step_count, 3);
  assert_true(info.wall_step_ns > -2 * hour_ns + 1000000000 - 1000 &&
              info.wall_step_ns < -2 * hour_ns + 1000000000 + 1000);
  assert_int_equal(info.clock_segments_count, 1);
  assert_in_range(info.clock_error_ns, 1, good_error_ns);
  assert_in_range(info.start_unix_ns, start_wall, start_wall + fake_ms); /* before all steps */
  forget(trace);
}

static void the_chrome_trace_counts_from_the_wall_clock_at_the_start(void **state) {
  (void)state;
  prof_trace *const trace = record();
  const prof_trace_info info = info_of(trace);
  assert_int_equal(prof_dump(NULL), PROF_OK);
  FILE *const json = fopen(trace_path, "r");
  assert_non_null(json);
  static char line[4096];
  uint64_t base = 0;
  uint32_t count = 0;
  bool has_steps = false;
  while (fgets(line, sizeof line, json)) {
    uint32_t i;
    double ts;
    const char *const name = strstr(line, "\"name\":\"s"), *const at = strstr(line, "\"ts\":");
    sscanf(line, "\"baseTimeNanoseconds\": %" SCNu64, &base);
    char wanted[64];
    snprintf(wanted, sizeof wanted, "\"wall_steps\":3,\"wall_step_ns\":%" PRId64 ",",
             info.wall_step_ns);
    has_steps |= strstr(line, wanted) != NULL;
    if (!strstr(line, "\"ph\":\"X\"") || !name || sscanf(name, "\"name\":\"s%" SCNu32, &i) != 1)
      continue;
    assert_int_equal(sscanf(at, "\"ts\":%lf", &ts), 1);
    const double since_start = ts * 1000 - (double)(info.start_unix_ns - base);
    const double wanted_from =
        (double)(truth.items[i].begin.from - info.start_ns) - (double)good_error_ns;
    assert_true(since_start > wanted_from &&
                since_start < wanted_from + (double)(3 * good_error_ns));
    count++;
  }
  fclose(json);
  assert_int_equal(count, truth.count);
  assert_true(has_steps);
  forget(trace);
}

/* The command is built from the real library. */
static void prof_info_says_it(void **state) {
  (void)state;
  prof_trace *const trace = record();
  const char *const build = getenv("PROF_TEST_BUILD_DIR");
  char command[1024], line[512];
  snprintf(command, sizeof command, "%s/prof", build ? build : "build/dev");
  if (access(command, X_OK) != 0) {
    print_message("skip: there is no command prof at %s\n", command);
    forget(trace);
    return;
  }
  snprintf(command, sizeof command, "%s/prof info %s", build ? build : "build/dev", capture_path);
  FILE *const out = popen(command, "r");
  assert_non_null(out);
  bool is_said = false;
  while (fgets(line, sizeof line, out))
    is_said |= strstr(line, "3 times: -7199000 ms together") != NULL;
  assert_int_equal(pclose(out), 0);
  assert_true(is_said);
  forget(trace);
}

/* NTP adjusts both clocks alike: no step, however long. */
static void a_wall_clock_that_is_slewed_is_no_step(void **state) {
  (void)state;
  fake_reset();
  start_recording();
  for (int i = 0; i < 50; i++) {
    record_scopes(20, 20 * fake_us, 80 * fake_us);
    fake_pass(10 * fake_s);
    /* 500 ppm: a step of 50 ms in these 100 s */
    if (i % 10 == 5) fake_set_rate(i % 20 == 5 ? 2998500000 : 3000000000);
    take_a_pair();
  }
  const prof_trace_info info = stop_and_look();
  assert_int_equal(info.wall_step_count, 0);
  assert_int_equal(info.wall_step_ns, 0);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(steps_of_the_wall_clock_move_nothing_and_are_counted),
      cmocka_unit_test(the_chrome_trace_counts_from_the_wall_clock_at_the_start),
      cmocka_unit_test(prof_info_says_it),
      cmocka_unit_test(a_wall_clock_that_is_slewed_is_no_step),
  };
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
