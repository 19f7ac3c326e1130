/* The operator profiler by its face: what is measured, the workspace, and what may go wrong. Series
   and verdicts are unit/test_op_judge.c's. */
#define _GNU_SOURCE
#include "op_checks.h"

/* ---- what is measured ---- */

static void latency_is_a_list_as_rafs(void **state) {
  subject s = {.workspace_bytes = 4096};
  prof_op op = op_of(&s, "list");
  double us[7] = {0};
  uint64_t bytes = 0;
  (void)state;
  op.workspace = workspace;
  assert_int_equal(prof_op_latency(&op, 3, 5, 7, us, &bytes), PROF_OK);
  assert_int_equal(s.runs, 3 + 5 * 7);
  assert_int_equal(s.prepared, 1);
  assert_int_equal(s.cleaned, 1);
  assert_int_equal(s.asked, 1);
  assert_int_equal(bytes, 4096);
  for (int i = 0; i < 7; i++) assert_true(us[i] > 0 && us[i] < 1e6);
  assert_int_equal(prof_op_latency(&op, 0, 1, 1, us, NULL), PROF_OK);
  assert_int_equal(s.runs, 3 + 5 * 7 + 1);
}

static void a_sleep_takes_what_it_takes(void **state) {
  const prof_op op = {.size = sizeof op, .key = "sleep 2 ms", .run = nap};
  const prof_op_options options = {.size = sizeof options, .time_limit_ns = 200000000};
  prof_op_result *result = NULL;
  (void)state;
  assert_int_equal(prof_op_profile(&op, &options, &result), PROF_OK);
  const prof_op_info info = info_of(result);
  assert_true(info.min_us >= 2000);
  assert_int_equal(info.exec, 1);
  assert_false(info.doubts & PROF_OP_TOO_SHORT);
  assert_true(info.sample_count >= 1 && info.sample_count <= 100);
  assert_true(info.median_low_us <= info.median_us && info.median_us <= info.median_high_us);
  prof_op_result_destroy(result);
}

/* Of what is far shorter than the timer's step, many runs make a sample. */
static void what_is_short_is_run_many_times(void **state) {
  int count = 0;
  const prof_op op = {.size = sizeof op, .key = "nothing", .user = &count, .run = nothing};
  const prof_op_options fresh = {.size = sizeof fresh, .no_reuse = 1};
  prof_op_result *result = NULL;
  (void)state;
  assert_int_equal(prof_op_profile(&op, &fresh, &result), PROF_OK);
  /* Again where a halt of the machine was taken for the operator's time. */
  for (int i = 0; i < 10 && info_of(result).exec <= 100; i++) {
    prof_op_result_destroy(result);
    assert_int_equal(prof_op_profile(&op, &fresh, &result), PROF_OK);
  }
  const prof_op_info info = info_of(result);
  assert_true(info.exec > 100);
  assert_false(info.doubts & PROF_OP_TOO_SHORT);
  assert_true(info.median_us * info.exec > 100 * info.timer_us);
  prof_op_result_destroy(result);

  const prof_op_options one_run = {
      .size = sizeof one_run, .exec = 1, .repeat = 30, .repeat_all = 1};
  assert_int_equal(prof_op_profile(&op, &one_run, &result), PROF_OK);
  assert_true(info_of(result).doubts & PROF_OP_TOO_SHORT);
  prof_op_result_destroy(result);
}

static void it_ends_when_the_median_is_known(void **state) {
  static const double steady[] = {10, 10.01, 9.99};
  subject s = {0};
  script times = {.us = steady, .count = 3};
  const prof_op op = op_of(&s, "steady");
  const prof_op_timer timer = timer_of(&times);
  const prof_op_options options = {
      .size = sizeof options, .exec = 1, .least_ns = 1, .timer = &timer};
  prof_op_result *result = NULL;
  (void)state;
  assert_int_equal(prof_op_profile(&op, &options, &result), PROF_OK);
  assert_int_equal(info_of(result).sample_count, 20);
  assert_int_equal(info_of(result).doubts, 0);
  assert_int_equal(s.runs, 10 + 20);
  prof_op_result_destroy(result);
}

static void the_time_limit_ends_it(void **state) {
  const prof_op op = {.size = sizeof op, .key = "limit", .run = nap};
  const prof_op_options options = {
      .size = sizeof options, .repeat_all = 1, .time_limit_ns = 30000000};
  prof_op_result *result = NULL;
  (void)state;
  assert_int_equal(prof_op_profile(&op, &options, &result), PROF_OK);
  const prof_op_info info = info_of(result);
  assert_true(info.sample_count >= 1 && info.sample_count < 15);
  assert_true(info.doubts & PROF_OP_TIME_OVER);
  prof_op_result_destroy(result);
  const prof_op_options none = {.size = sizeof none, .time_limit_ns = 1, .no_reuse = 1};
  assert_int_equal(prof_op_profile(&op, &none, &result), PROF_OK); /* one sample at least */
  assert_int_equal(info_of(result).sample_count, 1);
  assert_true(info_of(result).doubts & PROF_OP_FEW_SAMPLES);
  prof_op_result_destroy(result);
}

/* The limit goes before: it ends what is known well enough, too. */
static void a_time_limit_that_is_shorter_than_the_least_always_ends_it(void **state) {
  static const double steady[] = {10, 10.01, 9.99};
  subject s = {0};
  script times = {.us = steady, .count = 3};
  const prof_op op = op_of(&s, "steady");
  const prof_op_timer timer = timer_of(&times);
  const prof_op_options options = {.size = sizeof options,
                                   .exec = 1,
                                   .least_ns = 50000000,
                                   .time_limit_ns = 20000000,
                                   .timer = &timer};
  prof_op_result *result = NULL;
  (void)state;
  assert_int_equal(prof_op_profile(&op, &options, &result), PROF_OK);
  assert_true(info_of(result).doubts & PROF_OP_TIME_OVER);
  assert_false(info_of(result).doubts & PROF_OP_NOT_CONVERGED);
  prof_op_result_destroy(result);
}

/* Of what takes nothing, all the time passes between the samples, and in the statistics of many.
   bench/op_group.c has how long it takes. */
static void the_time_limit_is_the_whole_calls(void **state) {
  int count = 0;
  const prof_op op = {.size = sizeof op, .key = "nothing", .user = &count, .run = nothing};
  const prof_op_options options = {.size = sizeof options,
                                   .exec = 1,
                                   .repeat = 1 << 24,
                                   .repeat_all = 1,
                                   .no_reuse = 1,
                                   .time_limit_ns = 100000000};
  prof_op_result *result = NULL;
  (void)state;
  assert_int_equal(prof_op_profile(&op, &options, &result), PROF_OK);
  assert_true(info_of(result).doubts & PROF_OP_TIME_OVER);
  assert_true(info_of(result).sample_count < 1 << 24);
  prof_op_result_destroy(result);
}

static int count_and_nap(void *user) {
  ++*(int *)user;
  return nap(NULL);
}

static void the_warm_up_is_what_ran_and_not_what_was_asked_for(void **state) {
  int runs = 0;
  const prof_op op = {.size = sizeof op, .key = "cut short", .user = &runs, .run = count_and_nap};
  const prof_op_options options = {.size = sizeof options, .exec = 1, .time_limit_ns = 5000000};
  prof_op_result *result = NULL;
  (void)state;
  assert_int_equal(prof_op_profile(&op, &options, &result), PROF_OK);
  const prof_op_info info = info_of(result);
  assert_true(info.warmup >= 1 && info.warmup < 10);
  assert_int_equal(info.warmup + info.sample_count, runs);
  prof_op_result_destroy(result);
}

static int nap_for(void *user) {
  usleep(*(const unsigned *)user);
  return 0;
}

/* Asked for, too: ten runs of 90 ms took the whole second, and left time for one sample. */
static void the_warm_up_takes_a_quarter_of_the_time_at_most(void **state) {
  unsigned nap_us = 2000;
  prof_op op = {.size = sizeof op, .key = "a nap", .user = &nap_us, .run = nap_for};
  const prof_op_options
      many = {.size = sizeof many, .warmup = 1000, .exec = 1, .time_limit_ns = 80000000},
      few = {.size = sizeof few, .warmup = 3, .exec = 1, .repeat = 1, .time_limit_ns = 60000000000};
  prof_op_result *result = NULL;
  (void)state;
  assert_int_equal(prof_op_profile(&op, &many, &result), PROF_OK);
  assert_in_range(info_of(result).warmup, 1, 10); /* 20 ms hold no more */
  prof_op_result_destroy(result);
  assert_int_equal(prof_op_profile(&op, &few, &result), PROF_OK);
  assert_int_equal(info_of(result).warmup, 3); /* all of them where there is time */
  prof_op_result_destroy(result);
  nap_us = 50000;
  op.key = "a long nap";
  assert_int_equal(prof_op_profile(&op, &many, &result), PROF_OK);
  assert_int_equal(info_of(result).warmup, 1);
  prof_op_result_destroy(result);
}

static void expect_six_samples_of(unsigned nap_us) {
  const prof_op op = {.size = sizeof op, .key = "slow", .user = &nap_us, .run = nap_for};
  const prof_op_options options = {.size = sizeof options, .no_reuse = 1};
  prof_op_result *result = NULL;
  assert_int_equal(prof_op_profile(&op, &options, &result), PROF_OK);
  const prof_op_info info = info_of(result);
  /* prof gives it 10 s, five times what it takes */
  assert_true(info.sample_count >= 6 && !(info.doubts & PROF_OP_FEW_SAMPLES));
  assert_in_range(info.warmup, 1, 250000 / nap_us > 1 ? 250000 / nap_us : 1);
  prof_op_result_destroy(result);
}

static void what_is_slow_gets_six_samples_where_nobody_said_a_limit(void **state) {
  unsigned nap_us = 200000;
  const prof_op op = {.size = sizeof op, .key = "slow", .user = &nap_us, .run = nap_for};
  const prof_op_options limited = {.size = sizeof limited, .time_limit_ns = 1000000000};
  prof_op_result *result = NULL;
  (void)state;
  expect_six_samples_of(90000);  /* within the second */
  expect_six_samples_of(180000); /* and beyond */
  assert_int_equal(prof_op_profile(&op, &limited, &result), PROF_OK);
  assert_false(info_of(result).was_kept); /* no limit is another than one of a second */
  assert_in_range(info_of(result).sample_count, 1, 5);
  assert_true(info_of(result).doubts & PROF_OP_TIME_OVER);
  prof_op_result_destroy(result);
}

enum { LINE_WORDS = 8, COLD_LINES = COLD_BYTES / 8 / LINE_WORDS };

/* Each line names the next, in no order. So no line is cached before it is read, and no sum of a
   sanitizer's checks hides the wait. */
static void tie_lines(uint64_t *words) {
  uint64_t order[COLD_LINES], seed = 1;
  for (uint64_t i = 0; i < COLD_LINES; i++) order[i] = i;
  for (uint64_t i = COLD_LINES - 1; i > 0; i--) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const uint64_t other = (seed >> 33) % (i + 1), kept = order[i];
    order[i] = order[other];
    order[other] = kept;
  }
  for (uint64_t i = 0; i < COLD_LINES; i++)
    words[order[i] * LINE_WORDS] = order[(i + 1) % COLD_LINES] * LINE_WORDS;
}

static int follow_lines(void *user) {
  const uint64_t *const words = user;
  uint64_t at = 0;
  for (int i = 0; i < COLD_LINES; i++) at = words[at];
  return at != 0;
}

/* By their least times: a neighbour empties caches, too, and fills none. */
static double times_as_long(const prof_op_result *cold, const prof_op_result *warm) {
  return info_of(cold).min_us / info_of(warm).min_us;
}

static void cold_caches_cost_more(void **state) {
  uint64_t *const words = calloc(1, COLD_BYTES);
  const prof_op op = {.size = sizeof op, .key = "cold", .user = words, .run = follow_lines};
  const prof_op_options warm = {.size = sizeof warm, .exec = 1, .repeat = 40, .no_reuse = 1},
                        cold = {.size = sizeof cold, .caches = PROF_OP_COLD, .repeat = 40},
                        twice = {.size = sizeof twice, .caches = PROF_OP_COLD, .exec = 2};
  prof_op_comparison comparison = {.size = sizeof comparison};
  prof_op_result *first = NULL, *second = NULL, *none = NULL;
  (void)state;
  assert_non_null(words);
  tie_lines(words);
  assert_int_equal(prof_op_profile(&op, &warm, &first), PROF_OK);
  assert_int_equal(prof_op_profile(&op, &cold, &second), PROF_OK);
  assert_int_equal(info_of(second).caches, PROF_OP_COLD);
  assert_int_equal(info_of(second).exec, 1);
  const char *const loaded = getenv("LD_PRELOAD"); /* valgrind has no caches */
  if (!SKIP_SANITIZED && !(loaded && strstr(loaded, "vgpreload"))) {
    for (int i = 0; i < 20 && times_as_long(second, first) <= 1.2; i++) { /* they were never warm */
      prof_op_result_destroy(first);
      assert_int_equal(prof_op_profile(&op, &warm, &first), PROF_OK);
    }
    if (times_as_long(second, first) <= 1.2)
      fail_msg("%.3f us with cold caches, %.3f with warm ones", info_of(second).min_us,
               info_of(first).min_us);
  }
  assert_int_equal(prof_op_compare(first, second, 0, &comparison), PROF_E_INVALID); /* two things */
  assert_int_equal(prof_op_profile(&op, &twice, &none), PROF_E_INVALID);
  prof_op_result_destroy(first);
  prof_op_result_destroy(second);
  free(words);
}

/* ---- workspace ---- */

static void the_allocators_peak_is_the_workspace(void **state) {
  subject s = {.asks_for_bytes = 1000};
  const prof_op op = op_of(&s, "allocates");
  prof_op_result *result = NULL;
  (void)state;
  prof_op_workspace_alloc(1 << 20); /* outside of a measurement: nothing of this one's */
  assert_int_equal(prof_op_profile(&op, NULL, &result), PROF_OK);
  assert_int_equal(info_of(result).has_workspace, 1);
  assert_int_equal(info_of(result).workspace_bytes, 1000);
  assert_int_equal(info_of(result).workspace_source, PROF_OP_WORKSPACE_TOLD);
  prof_op_result_destroy(result);
}

static void without_a_warm_up_the_first_run_says_the_workspace(void **state) {
  subject s = {.asks_for_bytes = 1000, .workspace_bytes = 4096};
  prof_op op = op_of(&s, "allocates");
  const prof_op_options options = {.size = sizeof options, .no_warmup = 1, .no_reuse = 1};
  prof_op_result *result = NULL;
  double us[7];
  uint64_t bytes = 77;
  (void)state;
  assert_int_equal(prof_op_latency(&op, 0, 5, 7, us, &bytes), PROF_OK);
  assert_int_equal(bytes, 1000);
  assert_int_equal(s.runs, 35); /* none that does not count */
  assert_int_equal(prof_op_profile(&op, &options, &result), PROF_OK);
  assert_int_equal(info_of(result).has_workspace, 1);
  assert_int_equal(info_of(result).workspace_bytes, 1000);
  prof_op_result_destroy(result);
  op.workspace = workspace;
  op.key = "says it";
  assert_int_equal(prof_op_latency(&op, 0, 1, 1, us, &bytes), PROF_OK);
  assert_int_equal(bytes, 4096);
  s = (subject){0};
  op.workspace = NULL;
  op.key = "asks for nothing";
  assert_int_equal(prof_op_profile(&op, &options, &result), PROF_OK);
  assert_int_equal(info_of(result).has_workspace, 1); /* the allocator told of others' */
  assert_int_equal(info_of(result).workspace_bytes, 0);
  prof_op_result_destroy(result);
}

/* The first test: nobody has told anything yet, and one call tells that the allocator does, for
   good. */
static void what_asks_for_nothing_is_known_to_once_the_allocator_tells(void **state) {
  subject s = {0};
  const prof_op op = op_of(&s, "asks for nothing");
  const prof_op_options options = {
      .size = sizeof options, .exec = 1, .repeat = 2, .repeat_all = 1, .no_reuse = 1};
  (void)state;
  for (uint32_t is_hooked = 0; is_hooked < 2; is_hooked++) {
    prof_op_result *result = NULL;
    assert_int_equal(prof_op_profile(&op, &options, &result), PROF_OK);
    assert_int_equal(info_of(result).has_workspace, is_hooked);
    assert_int_equal(info_of(result).workspace_bytes, 0);
    prof_op_result_destroy(result);
    prof_op_workspace_alloc(16); /* outside of a measurement, before there is a second one */
    prof_op_workspace_free(16);
  }
}

static int measures_another(void *user) {
  subject inner = {.asks_for_bytes = 500};
  const prof_op op = op_of(&inner, "inner");
  const prof_op_options options = {.size = sizeof options, .repeat = 2, .exec = 1, .no_reuse = 1};
  prof_op_result *result = NULL;
  (void)user;
  prof_op_workspace_alloc(64);
  if (prof_op_profile(&op, &options, &result) != PROF_OK || info_of(result).workspace_bytes != 500)
    return 1;
  prof_op_result_destroy(result);
  prof_op_workspace_free(64);
  return 0;
}

static void a_measurement_inside_of_one_has_its_own_workspace(void **state) {
  const prof_op op = {.size = sizeof op, .key = "outer", .run = measures_another};
  const prof_op_options options = {.size = sizeof options, .repeat = 2, .exec = 1};
  prof_op_result *result = NULL;
  (void)state;
  assert_int_equal(prof_op_profile(&op, &options, &result), PROF_OK);
  assert_int_equal(info_of(result).workspace_bytes, 64);
  prof_op_result_destroy(result);
}

/* ---- what may go wrong ---- */

static void callbacks_that_fail_end_it(void **state) {
  const prof_op_options options = {.size = sizeof options, .exec = 1, .repeat = 5};
  (void)state;
  subject s = {.fail_prepare = 3};
  prof_op op = op_of(&s, "fails");
  refuse(&op, &options, PROF_E_OPERATOR, "prepare returned 3");
  assert_int_equal(s.cleaned, 0);       /* nothing was prepared */
  for (int at = 1; at <= 15; at += 7) { /* warming up, and in a sample */
    s = (subject){.fail_run_at = at};
    refuse(&op, &options, PROF_E_OPERATOR, "fails: run returned 7");
    assert_int_equal(s.cleaned, 1);
    assert_int_equal(s.runs, at);
  }
  s = (subject){.fail_workspace = -4};
  op.workspace = workspace;
  refuse(&op, &options, PROF_E_OPERATOR, "workspace returned -4");
  assert_int_equal(s.cleaned, 1);
  s = (subject){.workspace_bytes = UINT64_MAX};
  refuse(&op, &options, PROF_E_OPERATOR, "workspace says 18446744073709551615 bytes");
  assert_int_equal(s.cleaned, 1);
}

static void timers_that_lie_end_it(void **state) {
  static const double values[] = {NAN, -1, INFINITY, 1e300};
  (void)state;
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    subject s = {0};
    script times = {.us = &values[i], .count = 1};
    const prof_op op = op_of(&s, "timed");
    const prof_op_timer timer = timer_of(&times);
    const prof_op_options options = {.size = sizeof options, .timer = &timer};
    refuse(&op, &options, PROF_E_OPERATOR, "the timer script says");
    assert_int_equal(s.cleaned, 1);
  }
  static const double sound[] = {10};
  for (int at = 1; at <= TIMER_LOOKS + 3; at += TIMER_LOOKS) {
    subject s = {0};
    script times = {.us = sound, .count = 1, .fail_at = at};
    const prof_op op = op_of(&s, "timed");
    prof_op_timer timer = timer_of(&times);
    const prof_op_options options = {.size = sizeof options, .timer = &timer};
    refuse(&op, &options, PROF_E_OPERATOR, "returned 5");
    assert_int_equal(s.prepared, s.cleaned);
    timer.end = NULL;
    refuse(&op, &options, PROF_E_INVALID, "timer");
  }
}

static int constant_begin(void *user) {
  (void)user;
  return 0;
}
static int constant_end(void *user, double *us_out) {
  *us_out = *(const double *)user;
  return 0;
}

/* Already at the first look, and not with a code that nobody returned. */
static void a_time_that_cannot_be_is_said_as_it_was_given(void **state) {
  static const struct {
    double us;
    const char *text;
  } lies[] = {{-1, "says -1 us"},
              {(double)NAN, "nan us"},
              {(double)INFINITY, "says inf us"},
              {1e300, "says 1e+300 us"}};
  (void)state;
  for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
    subject s = {0};
    double us = lies[i].us;
    const prof_op op = op_of(&s, "timed");
    const prof_op_timer timer = {.size = sizeof timer,
                                 .name = "constant",
                                 .user = &us,
                                 .begin = constant_begin,
                                 .end = constant_end};
    const prof_op_options options = {.size = sizeof options, .timer = &timer};
    refuse(&op, &options, PROF_E_OPERATOR, lies[i].text);
    assert_non_null(strstr(prof_last_error(), "the timer constant"));
    assert_int_equal(s.prepared, 0);
  }
}

static void a_timer_that_always_says_0_is_doubted(void **state) {
  subject s = {0};
  double us = 0;
  const prof_op op = op_of(&s, "timed");
  const prof_op_timer timer = {.size = sizeof timer,
                               .name = "constant",
                               .user = &us,
                               .begin = constant_begin,
                               .end = constant_end};
  const prof_op_options options = {.size = sizeof options,
                                   .repeat = 30,
                                   .repeat_all = 1,
                                   .time_limit_ns = 1000000000,
                                   .timer = &timer};
  prof_op_result *result = NULL;
  (void)state;
  assert_int_equal(prof_op_profile(&op, &options, &result), PROF_OK);
  assert_true(info_of(result).doubts & PROF_OP_TOO_SHORT);
  prof_op_result_destroy(result);
}

static void arguments_are_looked_at(void **state) {
  subject s = {0};
  prof_op op = op_of(&s, "arguments");
  prof_op_info info = {.size = 4};
  prof_op_comparison comparison = {.size = sizeof comparison};
  double us[1];
  static const double one[] = {1};
  (void)state;
#define REFUSE(text, ...)                                                  \
  do {                                                                     \
    const prof_op_options options = {.size = sizeof options, __VA_ARGS__}; \
    refuse(&op, &options, PROF_E_INVALID, text);                           \
  } while (0)
  REFUSE("options.warmup is -1", .warmup = -1);
  REFUSE("options.exec is -5", .exec = -5);
  REFUSE("options.repeat is -2147483648", .repeat = INT32_MIN);
  REFUSE("options.repeat is 2147483647", .repeat = INT32_MAX);
  REFUSE("options.precision", .precision = NAN);
  REFUSE("options.precision", .precision = -0.1);
  REFUSE("options.caches is 2", .caches = 2);
  REFUSE("options.reserved", .reserved = 1);
  REFUSE("no_warmup", .no_warmup = 2);
  REFUSE("options.warmup is 3", .warmup = 3, .no_warmup = 1);
  refuse(NULL, NULL, PROF_E_INVALID, "op is NULL");
  op.key = "";
  refuse(&op, NULL, PROF_E_INVALID, "op.key is empty");
  op.key = "arguments";
  op.run = NULL;
  refuse(&op, NULL, PROF_E_INVALID, "op.run is NULL");
  op.run = run;
  op.size = 3;
  refuse(&op, NULL, PROF_E_INVALID, "prof_op.size is 3");
  op.size = sizeof op;
  assert_int_equal(prof_op_profile(&op, NULL, NULL), PROF_E_INVALID);
  assert_int_equal(prof_op_latency(&op, -1, 1, 1, us, NULL), PROF_E_INVALID);
  assert_int_equal(prof_op_latency(&op, 0, 0, 1, us, NULL), PROF_E_INVALID);
  assert_int_equal(prof_op_latency(&op, 0, 1, 0, us, NULL), PROF_E_INVALID);
  assert_int_equal(prof_op_latency(&op, 0, 1, 1, NULL, NULL), PROF_E_INVALID);
  assert_int_equal(s.prepared, 0);
  prof_op_result *const result = measured("whole", one, 1);
  assert_int_equal(prof_op_info_get(result, &info), PROF_E_INVALID);
  assert_int_equal(prof_op_info_get(result, NULL), PROF_E_INVALID);
  assert_int_equal(prof_op_info_get(NULL, &info), PROF_E_INVALID);
  assert_int_equal(prof_op_compare(result, NULL, 0, &comparison), PROF_E_INVALID);
  assert_int_equal(prof_op_compare(result, result, -1, &comparison), PROF_E_INVALID);
  assert_int_equal(prof_op_compare(result, result, NAN, &comparison), PROF_E_INVALID);
  comparison.size = 3;
  assert_int_equal(prof_op_compare(result, result, 0, &comparison), PROF_E_INVALID);
  prof_op_result_destroy(result);
  prof_op_result_destroy(NULL);
  assert_null(prof_op_samples(NULL, NULL));
}

static void expect_size_said(const char *name, int status) {
  char wanted[96];
  snprintf(wanted, sizeof wanted, "%s.size is 0; set it to sizeof(%s)", name, name);
  assert_int_equal(status, PROF_E_INVALID);
  assert_string_equal(prof_last_error(), wanted);
}

/* The status first, and the text then: who calls prof_last_error() in the same argument list may
   have it of before. */
static void a_size_of_0_is_refused_with_what_to_set_it_to(void **state) {
  subject s = {0};
  const prof_op op = op_of(&s, "sizes"), no_op = {.size = 0};
  const prof_op_options no_options = {.size = 0};
  const prof_op_timer no_timer = {.size = 0};
  const prof_op_options of_no_timer = {.size = sizeof of_no_timer, .timer = &no_timer};
  const prof_pool_options no_pool_options = {.size = 0};
  prof_op_result *results[2] = {NULL};
  prof_op_overlap overlap = {.size = 0};
  prof_op_comparison comparison = {.size = 0};
  prof_op_info info = {.size = 0};
  prof_pool *pool = NULL;
  static const double one[] = {1};
  (void)state;
  prof_op_result *const result = measured("sizes", one, 1);
  expect_size_said("prof_op", prof_op_profile(&no_op, NULL, results));
  expect_size_said("prof_op_options", prof_op_profile(&op, &no_options, results));
  expect_size_said("prof_op_timer", prof_op_profile(&op, &of_no_timer, results));
  expect_size_said("prof_op_overlap",
                   prof_op_profile_group(&op, 1, PROF_OP_THREADS, NULL, results, &overlap));
  expect_size_said("prof_op_comparison", prof_op_compare(result, result, 0, &comparison));
  expect_size_said("prof_op_info", prof_op_info_get(result, &info));
  expect_size_said("prof_pool_options", prof_pool_create(&no_pool_options, &pool));
  assert_null(pool);
  prof_op_result_destroy(result);
}

#define ENTRY(test) cmocka_unit_test_setup(test, clean)

int main(void) {
  const struct CMUnitTest tests[] = {
      ENTRY(what_asks_for_nothing_is_known_to_once_the_allocator_tells),
      ENTRY(latency_is_a_list_as_rafs),
      ENTRY(a_sleep_takes_what_it_takes),
      ENTRY(what_is_short_is_run_many_times),
      ENTRY(it_ends_when_the_median_is_known),
      ENTRY(the_time_limit_ends_it),
      ENTRY(a_time_limit_that_is_shorter_than_the_least_always_ends_it),
      ENTRY(the_time_limit_is_the_whole_calls),
      ENTRY(the_warm_up_is_what_ran_and_not_what_was_asked_for),
      ENTRY(the_warm_up_takes_a_quarter_of_the_time_at_most),
      ENTRY(what_is_slow_gets_six_samples_where_nobody_said_a_limit),
      ENTRY(cold_caches_cost_more),
      ENTRY(the_allocators_peak_is_the_workspace),
      ENTRY(without_a_warm_up_the_first_run_says_the_workspace),
      ENTRY(a_measurement_inside_of_one_has_its_own_workspace),
      ENTRY(callbacks_that_fail_end_it),
      ENTRY(timers_that_lie_end_it),
      ENTRY(a_time_that_cannot_be_is_said_as_it_was_given),
      ENTRY(a_timer_that_always_says_0_is_doubted),
      ENTRY(arguments_are_looked_at),
      ENTRY(a_size_of_0_is_refused_with_what_to_set_it_to),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
