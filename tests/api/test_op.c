/* The operator profiler as a runtime calls it: the order of callbacks, samples, workspace, doubts by scripted timers, comparisons, kept results, and every
   way in which a callback or an argument may be wrong. */
#define _GNU_SOURCE
#include <dirent.h>
#include <math.h>
#include <prof/memory.h>
#include <prof/op.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "../fault/support/skip.h"

/* ---- an operator that tells what was done with it ---- */

typedef struct subject {
  int prepared, runs, cleaned, asked;
  int fail_prepare, fail_run_at, fail_workspace; /* codes; of the run with that number, from 1 */
  uint64_t workspace_bytes, asks_for_bytes;
} subject;

static int prepare(void *user) {
  subject *const s = user;
  s->prepared++;
  return s->fail_prepare;
}
static int run(void *user) {
  subject *const s = user;
  if (s->prepared - s->cleaned != 1) return 99;
  s->runs++;
  if (s->asks_for_bytes) { /* half, then all of it, then half again and a little: the peak is all of it */
    prof_op_workspace_alloc(s->asks_for_bytes / 2);
    prof_op_workspace_alloc(s->asks_for_bytes / 2);
    prof_op_workspace_free(s->asks_for_bytes / 2);
    prof_op_workspace_alloc(1);
    prof_op_workspace_free(s->asks_for_bytes / 2 + 1);
  }
  return s->runs == s->fail_run_at ? 7 : 0;
}
static int workspace(void *user, uint64_t *bytes_out) {
  subject *const s = user;
  s->asked++;
  *bytes_out = s->workspace_bytes;
  return s->fail_workspace;
}
static void clean_up(void *user) { ((subject *)user)->cleaned++; }

static prof_op op_of(subject *s, const char *key) {
  return (prof_op){.size = sizeof(prof_op), .key = key, .user = s, .prepare = prepare, .run = run, .cleanup = clean_up};
}

/* ---- a timer that says what the test wants ---- */

typedef struct script {
  const double *us;
  size_t count, next;
  int begun, ended;
  int fail_at; /* the end with that number */
} script;

enum { COLD_BYTES = 128 << 10, TIMER_LOOKS = 64 }; /* at what it may be wrong by: 0.001 us */

static int script_begin(void *user) {
  ((script *)user)->begun++;
  return 0;
}
static int script_end(void *user, double *us_out) {
  script *const s = user;
  s->ended++;
  *us_out = s->ended <= TIMER_LOOKS ? 0.001 : s->us[s->next++ % s->count];
  return s->ended == s->fail_at ? 5 : 0;
}
static prof_op_timer timer_of(script *s) {
  return (prof_op_timer){.size = sizeof(prof_op_timer), .name = "script", .user = s, .begin = script_begin, .end = script_end};
}

static prof_op_info info_of(const prof_op_result *result) {
  prof_op_info info = {.size = sizeof info};
  assert_int_equal(prof_op_info_get(result, &info), PROF_OK);
  return info;
}

/* All samples as scripted, one run each. */
static prof_op_result *measured(const char *key, const double *us, size_t count) {
  subject s = {0};
  script times = {.us = us, .count = count};
  const prof_op op = op_of(&s, key);
  const prof_op_timer timer = timer_of(&times);
  const prof_op_options options = {.size = sizeof options,
                                   .no_warmup = 1,
                                   .exec = 1,
                                   .repeat = (int32_t)count,
                                   .repeat_all = 1,
                                   .no_reuse = 1,
                                   .timer = &timer};
  prof_op_result *result = NULL;
  if (prof_op_profile(&op, &options, &result) != PROF_OK) fail_msg("%s", prof_last_error());
  assert_int_equal(times.begun, times.ended);
  assert_int_equal(s.runs, count);
  return result;
}

static int clean(void **state) {
  (void)state;
  prof_op_cache_reset(NULL);
  return 0;
}

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

static int nap(void *user) {
  (void)user;
  usleep(2000);
  return 0;
}

static void a_sleep_takes_what_it_takes(void **state) {
  const prof_op op = {.size = sizeof op, .key = "sleep 2 ms", .run = nap};
  const prof_op_options options = {.size = sizeof options, .time_limit_ns = 200000000};
  prof_op_result *result = NULL;
  (void)state;
  assert_int_equal(prof_op_profile(&op, &options, &result), PROF_OK);
  const prof_op_info info = info_of(result);
  assert_true(info.min_us >= 2000 && info.median_us < 20000);
  assert_int_equal(info.exec, 1);
  assert_false(info.doubts & PROF_OP_TOO_SHORT);
  assert_false(info.has_workspace);
  assert_true(info.sample_count >= 1 && info.sample_count <= 100);
  assert_true(info.median_low_us <= info.median_us && info.median_us <= info.median_high_us);
  prof_op_result_destroy(result);
}

static int nothing(void *user) {
  ++*(volatile int *)user;
  return 0;
}

/* Of what is far shorter than the timer's step, many runs make a sample. */
static void what_is_short_is_run_many_times(void **state) {
  int count = 0;
  const prof_op op = {.size = sizeof op, .key = "nothing", .user = &count, .run = nothing};
  prof_op_result *result = NULL;
  (void)state;
  assert_int_equal(prof_op_profile(&op, NULL, &result), PROF_OK);
  const prof_op_info info = info_of(result);
  assert_true(info.exec > 100);
  assert_false(info.doubts & PROF_OP_TOO_SHORT);
  assert_true(info.median_us < 50);
  assert_true(info.median_us * info.exec > 100 * info.timer_us);
  prof_op_result_destroy(result);

  const prof_op_options one_run = {.size = sizeof one_run, .exec = 1, .repeat = 30, .repeat_all = 1};
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
  const prof_op_options options = {.size = sizeof options, .exec = 1, .least_ns = 1, .timer = &timer};
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
  const prof_op_options options = {.size = sizeof options, .repeat_all = 1, .time_limit_ns = 30000000};
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

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Of what takes nothing, all the time passes between the samples, and in the statistics of many. */
static void the_time_limit_is_the_whole_calls(void **state) {
  int count = 0;
  const prof_op op = {.size = sizeof op, .key = "nothing", .user = &count, .run = nothing};
  const char *const loaded = getenv("LD_PRELOAD"); /* valgrind's time is its own */
  (void)state;
  const prof_op_options options = {
      .size = sizeof options, .exec = 1, .repeat = 1 << 24, .repeat_all = 1, .time_limit_ns = 300000000};
  prof_op_result *result = NULL;
  const double begun = seconds();
  assert_int_equal(prof_op_profile(&op, &options, &result), PROF_OK);
  const double passed = seconds() - begun;
  print_message("  a limit of 0.3 s: %.2f s, %u samples\n", passed, info_of(result).sample_count);
  if (!SKIP_SANITIZED && !(loaded && strstr(loaded, "vgpreload"))) assert_true(passed > 0.15 && passed < 0.6);
  assert_true(info_of(result).doubts & PROF_OP_TIME_OVER);
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

static int sum_up(void *user) {
  const uint64_t *const words = user;
  uint64_t sum = 0;
  for (size_t i = 0; i < COLD_BYTES / 8; i += 8) sum += words[i];
  return sum == 1;
}

static void cold_caches_cost_more(void **state) {
  uint64_t *const words = calloc(1, COLD_BYTES);
  const prof_op op = {.size = sizeof op, .key = "cold", .user = words, .run = sum_up};
  const prof_op_options warm = {.size = sizeof warm, .exec = 1, .repeat = 40},
                        cold = {.size = sizeof cold, .caches = PROF_OP_COLD, .repeat = 40},
                        twice = {.size = sizeof twice, .caches = PROF_OP_COLD, .exec = 2};
  prof_op_comparison comparison = {.size = sizeof comparison};
  prof_op_result *first = NULL, *second = NULL, *none = NULL;
  (void)state;
  assert_non_null(words);
  memset(words, 0, COLD_BYTES);
  assert_int_equal(prof_op_profile(&op, &warm, &first), PROF_OK);
  assert_int_equal(prof_op_profile(&op, &cold, &second), PROF_OK);
  assert_int_equal(info_of(second).caches, PROF_OP_COLD);
  assert_int_equal(info_of(second).exec, 1);
  const char *const loaded = getenv("LD_PRELOAD"); /* valgrind has no caches */
  if (!SKIP_SANITIZED && !(loaded && strstr(loaded, "vgpreload")))
    assert_true(info_of(second).median_us > 1.2 * info_of(first).median_us);
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
  prof_op_workspace_alloc(1 << 20); /* outside of a measurement: nothing */
  assert_int_equal(prof_op_profile(&op, NULL, &result), PROF_OK);
  assert_int_equal(info_of(result).has_workspace, 1);
  assert_int_equal(info_of(result).workspace_bytes, 1000);
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
  assert_int_equal(info_of(result).has_workspace, 0);
  prof_op_result_destroy(result);
}

static int measures_another(void *user) {
  subject inner = {.asks_for_bytes = 500};
  const prof_op op = op_of(&inner, "inner");
  const prof_op_options options = {.size = sizeof options, .repeat = 2, .exec = 1, .no_reuse = 1};
  prof_op_result *result = NULL;
  (void)user;
  prof_op_workspace_alloc(64);
  if (prof_op_profile(&op, &options, &result) != PROF_OK || info_of(result).workspace_bytes != 500) return 1;
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

/* ---- doubts, as scripted ---- */

static void doubts_are_those_of_the_samples(void **state) {
  double us[200];
  (void)state;
  for (int i = 0; i < 200; i++) us[i] = 100 + 0.1 * i + i % 3;
  prof_op_result *result = measured("drift", us, 200);
  assert_true(info_of(result).doubts & PROF_OP_DRIFTING);
  assert_true(info_of(result).drift > 0.15 && info_of(result).drift < 0.21);
  assert_non_null(strstr(prof_op_key(result), "drift"));
  prof_op_result_destroy(result);

  for (int i = 0; i < 200; i++) us[i] = (i * 7 % 10 < 4 ? 120 : 100) + i % 3;
  result = measured("modes", us, 200);
  assert_true(info_of(result).doubts & PROF_OP_TWO_MODES);
  assert_true(fabs(info_of(result).low_mode_us - 101) < 0.2 && fabs(info_of(result).high_mode_us - 121) < 0.3);
  assert_true(fabs(info_of(result).high_mode_share - 0.4) < 0.01);
  prof_op_result_destroy(result);

  for (int i = 0; i < 200; i++) us[i] = 100 + i * 37 % 50;
  result = measured("noise", us, 200);
  assert_true(info_of(result).doubts & PROF_OP_NOISY);
  prof_op_result_destroy(result);

  for (int i = 0; i < 200; i++) us[i] = 100 + i * 37 % 3;
  result = measured("sound", us, 200);
  assert_int_equal(info_of(result).doubts, 0);
  size_t count = 0;
  const double *const samples = prof_op_samples(result, &count);
  assert_int_equal(count, 200);
  assert_memory_equal(samples, us, sizeof us); /* in the order in which they were taken */
  assert_true(prof_op_quantile(result, 0) == 100 && prof_op_quantile(result, 1) == 102 && prof_op_quantile(result, 2) == 0);
  prof_op_result_destroy(result);
}

static void the_text_says_it(void **state) {
  static const double us[] = {10, 12, 11, 10.5, 11.5, 10.2, 11.1};
  char text[256], cut[8];
  (void)state;
  prof_op_result *const result = measured("text", us, 7);
  const size_t bytes = prof_op_text(result, text, sizeof text);
  assert_int_equal(bytes, strlen(text));
  if (info_of(result).has_energy)
    assert_non_null(strstr(text, " uJ a run"));
  else
    assert_string_equal(text, "11 us (10 to 12, 98 %), 7 samples of 1 run; not converged");
  assert_int_equal(prof_op_text(result, cut, sizeof cut), bytes);
  assert_string_equal(cut, "11 us (");
  assert_int_equal(prof_op_text(result, NULL, 0), bytes);
  assert_int_equal(prof_op_text(NULL, text, sizeof text), 0);
  assert_string_equal(text, "");
  prof_op_result_destroy(result);
}

static void expect_text(const double *us, size_t count, const char *begin) {
  char text[256];
  prof_op_result *const result = measured("digits", us, count);
  prof_op_text(result, text, sizeof text);
  if (strncmp(text, begin, strlen(begin)) != 0) fail_msg("'%s' does not begin with '%s'", text, begin);
  prof_op_result_destroy(result);
}

static void times_are_said_in_four_digits_and_a_unit(void **state) {
  static const double one[] = {300200}, zero[] = {0}, round_up[] = {9999.6}, below[] = {9999.4}, long_one[] = {123456789},
                      wide[] = {0.002, 0.002, 0.002, 0.002, 0.002, 0.002, 300200},
                      short_ones[] = {0.002436, 0.002437, 0.002435, 0.002436, 0.002436, 0.002436, 0.0024358};
  char text[256];
  (void)state;
  expect_text(one, 1, "300.2 ms, 1 sample of 1 run"); /* of which there is no interval */
  expect_text(zero, 1, "0 us, 1 sample of 1 run");
  expect_text(below, 1, "9999 us,");
  expect_text(round_up, 1, "10 ms,");
  expect_text(long_one, 1, "123.5 s,");
  expect_text(short_ones, 7, "2.436 ns (2.435 to 2.437, 98 %), 7 samples of 1 run");
  expect_text(wide, 7, "2 ns (2 to 300200000, 98 %), 7 samples of 1 run");
  double us = 1.23456789e-7;
  for (int magnitude = 0; magnitude < 22; magnitude++, us *= 10) {
    const double spread[] = {us / 1e6, us, us, us, us, us, us * 1e6 < 1e15 ? us * 1e6 : us};
    prof_op_result *const result = measured("magnitudes", spread, 7);
    prof_op_text(result, text, sizeof text);
    if (strstr(text, "e+") || strstr(text, "e-")) fail_msg("'%s' has an exponent", text);
    prof_op_result_destroy(result);
  }
}

/* ---- comparing ---- */

static prof_op_comparison compared(double factor, double spread, double threshold) {
  double first[60], second[60];
  prof_op_comparison comparison = {.size = sizeof comparison};
  for (int i = 0; i < 60; i++) {
    first[i] = 100 + spread * (i * 37 % 60) / 60;
    second[i] = factor * (100 + spread * (i * 23 % 60) / 60);
  }
  prof_op_result *const a = measured("first", first, 60), *const b = measured("second", second, 60);
  assert_int_equal(prof_op_compare(a, b, threshold, &comparison), PROF_OK);
  prof_op_result_destroy(a);
  prof_op_result_destroy(b);
  return comparison;
}

static void comparisons_say_no_more_than_is_sure(void **state) {
  (void)state;
  assert_int_equal(compared(0.8, 2, 0).order, PROF_OP_FASTER);
  assert_int_equal(compared(1.25, 2, 0).order, PROF_OP_SLOWER);
  assert_int_equal(compared(1.0, 2, 0).order, PROF_OP_SAME);
  assert_int_equal(compared(1.02, 2, 0).order, PROF_OP_UNCLEAR); /* at the threshold */
  assert_int_equal(compared(1.02, 2, 0.1).order, PROF_OP_SAME);
  assert_int_equal(compared(0.5, 60, 0).order, PROF_OP_UNCLEAR); /* noisy runs: no verdict, however far apart */
  assert_true(compared(0.5, 60, 0).doubts & PROF_OP_NOISY);
  const prof_op_comparison c = compared(0.8, 2, 0);
  assert_true(fabs(c.ratio - 0.8) < 0.002 && c.ratio_low < c.ratio && c.ratio < c.ratio_high &&
              c.ratio_high - c.ratio_low < 0.02);
}

/* What was cut short by its time is not handed out for what was asked for in full. */
static void a_time_limit_is_part_of_what_is_asked_for(void **state) {
  const prof_op op = {.size = sizeof op, .key = "slow", .run = nap};
  const prof_op_options one = {.size = sizeof one, .no_warmup = 1, .exec = 1, .repeat = 4, .repeat_all = 1, .time_limit_ns = 1};
  prof_op_result *result = NULL;
  double us[4] = {0};
  (void)state;
  assert_int_equal(prof_op_profile(&op, &one, &result), PROF_OK);
  assert_int_equal(info_of(result).sample_count, 1);
  prof_op_result_destroy(result);
  assert_int_equal(prof_op_latency(&op, 0, 1, 4, us, NULL), PROF_OK);
  for (int i = 0; i < 4; i++) assert_true(us[i] >= 2000);
}

/* ---- several ---- */

static struct {
  char order[256];
  size_t used;
} diary;

typedef struct teller {
  char name;
  int runs, fail_at;
} teller;

static void note(char what) {
  if (diary.used < sizeof diary.order - 1) diary.order[diary.used++] = what;
  diary.order[diary.used] = '\0';
}
static int tell_prepare(void *user) {
  (void)user;
  note('(');
  return 0;
}
static int tell_run(void *user) {
  teller *const t = user;
  note(t->name);
  return ++t->runs == t->fail_at;
}
static void tell_cleanup(void *user) { note((char)(((teller *)user)->name - 'A' + 'a')); }

static void operators_take_turns(void **state) {
  teller tellers[] = {{'A', 0, 0}, {'B', 0, 0}, {'C', 0, 0}};
  prof_op ops[3];
  prof_op_result *results[3] = {NULL};
  const prof_op_options options = {.size = sizeof options, .no_warmup = 1, .exec = 1, .repeat = 4, .repeat_all = 1};
  (void)state;
  for (int i = 0; i < 3; i++)
    ops[i] = (prof_op){.size = sizeof *ops,
                       .key = "teller",
                       .user = &tellers[i],
                       .prepare = tell_prepare,
                       .run = tell_run,
                       .cleanup = tell_cleanup};
  diary.used = 0;
  assert_int_equal(prof_op_profile_in_turn(ops, 3, &options, results), PROF_OK);
  assert_string_equal(diary.order, "(((ABCCBAABCCBAcba");
  for (int i = 0; i < 3; i++) {
    assert_int_equal(info_of(results[i]).sample_count, 4);
    prof_op_result_destroy(results[i]);
  }
  assert_int_equal(prof_op_cache_count(NULL), 0);

  tellers[1].fail_at = tellers[1].runs + 2;
  diary.used = 0;
  assert_int_equal(prof_op_profile_in_turn(ops, 3, &options, results), PROF_E_OPERATOR);
  assert_string_equal(diary.order, "(((ABCCBcba");
  for (int i = 0; i < 3; i++) assert_null(results[i]);
  assert_int_equal(prof_op_profile_in_turn(ops, 0, &options, results), PROF_E_INVALID);
  assert_int_equal(prof_op_profile_in_turn(ops, 1025, &options, results), PROF_E_INVALID);
  assert_int_equal(prof_op_profile_in_turn(NULL, 3, &options, results), PROF_E_INVALID);
  assert_int_equal(prof_op_profile_in_turn(ops, 3, &options, NULL), PROF_E_INVALID);
  /* one whose median is known goes on for the others, but no further than its own limit */
  const prof_op_options soon = {
      .size = sizeof soon, .no_warmup = 1, .exec = 1, .repeat = 25, .precision = 0.9999, .least_ns = 1};
  assert_int_equal(prof_op_profile_in_turn(ops, 3, &soon, results), PROF_OK);
  for (int i = 0; i < 3; i++) {
    assert_true(info_of(results[i]).sample_count >= 20 && info_of(results[i]).sample_count <= 25);
    prof_op_result_destroy(results[i]);
  }
  ops[2].run = NULL;
  diary.used = 0;
  assert_int_equal(prof_op_profile_in_turn(ops, 3, &options, results), PROF_E_INVALID);
  assert_int_equal(diary.used, 0); /* looked at before any is prepared */
}

static int count_threads(void) {
  int count = 0;
  DIR *const folder = opendir("/proc/self/task");
  assert_non_null(folder);
  for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) count += entry->d_name[0] != '.';
  closedir(folder);
  return count;
}

/* One that has been joined may be there for a moment. */
static void expect_threads(int wanted) {
  for (int i = 0; i < 1000 && count_threads() != wanted; i++) usleep(1000);
  assert_int_equal(count_threads(), wanted);
}

static void *leave(void *argument) { return argument; }

typedef struct sleeper {
  pid_t tid;
  int fail_at, runs;
} sleeper;

static int sleep_a_while(void *user) {
  sleeper *const s = user;
  s->tid = (pid_t)syscall(SYS_gettid);
  usleep(3000);
  return ++s->runs == s->fail_at ? 6 : 0;
}

static void destroy_all(prof_op_result **results, int count) {
  for (int i = 0; i < count; i++) prof_op_result_destroy(results[i]);
}

/* Sleeping needs no processor, however few there are; but on a busy machine who sleeps may wake late, now alone and now in the group: measured again then. */
static void expect_gain(const prof_op *ops, prof_op_side side, const prof_op_options *options, double low, double high,
                        prof_op_result **results) {
  enum { TRIES = 10 };
  prof_op_overlap overlap = {.size = sizeof overlap};
  for (int i = 0; i < TRIES; i++) {
    assert_int_equal(prof_op_profile_group(ops, 3, side, options, results, &overlap), PROF_OK);
    assert_true(overlap.alone_us >= 9000 && overlap.longest_us >= 3000 && overlap.group_us >= 3000 && overlap.begin_us >= 0);
    if (overlap.gained > low && overlap.gained < high) return;
    print_message("side %d gained %.2f: measured again\n", side, overlap.gained);
    if (i + 1 < TRIES) destroy_all(results, 4);
  }
  fail_msg("side %d gained %.2f in the last of %d tries; it should be from %.1f to %.1f", side, overlap.gained, TRIES, low,
           high);
}

static void a_group_gains_what_runs_at_once(void **state) {
  sleeper sleepers[3] = {{0, 0, 0}};
  prof_op ops[3];
  prof_op_result *results[4] = {NULL};
  prof_op_overlap overlap = {.size = sizeof overlap};
  const prof_op_options options = {.size = sizeof options, .warmup = 1, .exec = 1, .repeat = 12, .repeat_all = 1};
  static const char *const keys[] = {"one", "two", "three"};
  pthread_t first;
  (void)state;
  assert_int_equal(pthread_create(&first, NULL, leave, NULL), 0); /* with which a sanitizer's own comes */
  pthread_join(first, NULL);
  usleep(20000);
  const int threads_before = count_threads();
  for (int i = 0; i < 3; i++)
    ops[i] = (prof_op){.size = sizeof *ops, .key = keys[i], .user = &sleepers[i], .run = sleep_a_while};
  for (int side = PROF_OP_THREADS; side <= PROF_OP_STREAMS; side++) {
    expect_gain(ops, (prof_op_side)side, &options, side == PROF_OP_THREADS ? 0.5 : -0.5, side == PROF_OP_THREADS ? 1.5 : 0.3,
                results);
    assert_string_equal(prof_op_key(results[1]), "two");
    assert_string_equal(prof_op_key(results[3]), "one + two + three");
    for (int i = 0; i < 4; i++) assert_int_equal(info_of(results[i]).sample_count, 12);
    destroy_all(results, 4);
    expect_threads(threads_before);
  }
  for (int i = 0; i < 3; i++) {
    sleepers[i].fail_at = sleepers[i].runs + 5; /* alone or in the group, on whatever thread */
    assert_int_equal(prof_op_profile_group(ops, 3, PROF_OP_THREADS, &options, results, &overlap), PROF_E_OPERATOR);
    assert_non_null(strstr(prof_last_error(), "returned 6"));
    for (int j = 0; j < 4; j++) assert_null(results[j]);
    expect_threads(threads_before);
    sleepers[i].fail_at = 0;
  }
  assert_int_equal(prof_op_profile_group(ops, 0, PROF_OP_THREADS, &options, results, &overlap), PROF_E_INVALID);
  assert_int_equal(prof_op_profile_group(ops, 65, PROF_OP_THREADS, &options, results, &overlap), PROF_E_INVALID);
  assert_int_equal(prof_op_profile_group(ops, 3, (prof_op_side)2, &options, results, &overlap), PROF_E_INVALID);
  assert_int_equal(prof_op_profile_group(ops, 3, PROF_OP_THREADS, &options, results, NULL), PROF_E_INVALID);
  overlap.size = 1;
  assert_int_equal(prof_op_profile_group(ops, 3, PROF_OP_THREADS, &options, results, &overlap), PROF_E_INVALID);
}

static void the_first_member_runs_on_the_callers_thread(void **state) {
  sleeper sleepers[2] = {{0, 0, 0}};
  prof_op ops[2];
  prof_op_result *results[3] = {NULL};
  prof_op_overlap overlap = {.size = sizeof overlap};
  const prof_op_options options = {.size = sizeof options, .no_warmup = 1, .exec = 1, .repeat = 2, .repeat_all = 1};
  (void)state;
  for (int i = 0; i < 2; i++) ops[i] = (prof_op){.size = sizeof *ops, .key = "who", .user = &sleepers[i], .run = sleep_a_while};
  /* one round: each alone, then both */
  const prof_op_options odd = {.size = sizeof odd, .no_warmup = 1, .exec = 1, .repeat = 1, .repeat_all = 1};
  assert_int_equal(prof_op_profile_group(ops, 2, PROF_OP_THREADS, &odd, results, &overlap), PROF_OK);
  assert_int_equal(sleepers[0].tid, getpid());
  assert_int_not_equal(sleepers[1].tid, getpid());
  for (int i = 0; i < 3; i++) prof_op_result_destroy(results[i]);
  assert_int_equal(prof_op_profile_group(ops, 2, PROF_OP_STREAMS, &options, results, &overlap), PROF_OK);
  assert_int_equal(sleepers[1].tid, getpid());
  for (int i = 0; i < 3; i++) prof_op_result_destroy(results[i]);
}

typedef struct holder {
  pthread_barrier_t *all; /* or NULL */
  uint64_t bytes;
  int runs;
} holder;

/* Warmed up alone and in the group, sampled alone and in the group: in the group each holds its own while all do. */
static int hold(void *user) {
  holder *const h = user;
  prof_op_workspace_alloc(h->bytes);
  if (++h->runs % 2 == 0 && h->all) pthread_barrier_wait(h->all);
  prof_op_workspace_free(h->bytes);
  return 0;
}
static int hold_said(void *user) {
  prof_op_workspace_alloc(1 << 20); /* of one that says its workspace itself: not asked */
  prof_op_workspace_free(1 << 20);
  return nothing(&((holder *)user)->runs);
}
static int say_held(void *user, uint64_t *bytes_out) {
  *bytes_out = ((holder *)user)->bytes;
  return 0;
}

static void expect_workspaces(const prof_op *ops, size_t count, prof_op_side side, int is_known, uint64_t whole_bytes) {
  const prof_op_options options = {.size = sizeof options, .warmup = 1, .exec = 1, .repeat = 1, .repeat_all = 1};
  prof_op_overlap overlap = {.size = sizeof overlap};
  prof_op_result *results[65] = {NULL};
  assert_int_equal(prof_op_profile_group(ops, count, side, &options, results, &overlap), PROF_OK);
  for (size_t i = 0; i < count; i++)
    if (info_of(results[i]).has_workspace)
      assert_int_equal(info_of(results[i]).workspace_bytes, ((const holder *)ops[i].user)->bytes);
  assert_int_equal(info_of(results[count]).has_workspace, is_known);
  assert_int_equal(info_of(results[count]).workspace_bytes, whole_bytes);
  destroy_all(results, (int)count + 1);
}

static void a_groups_workspace_is_what_all_held_at_once(void **state) {
  enum { MEMBERS = 8 };
  holder holders[MEMBERS] = {{NULL, 0, 0}};
  prof_op ops[MEMBERS];
  (void)state;
  for (int i = 0; i < MEMBERS; i++) ops[i] = (prof_op){.size = sizeof *ops, .key = "holds", .user = &holders[i], .run = hold};
  for (unsigned count = 1; count <= MEMBERS; count++) {
    pthread_barrier_t all;
    uint64_t sum = 0;
    assert_int_equal(pthread_barrier_init(&all, NULL, count), 0);
    for (unsigned i = 0; i < count; i++) {
      const unsigned place = count % 2 ? i : count - 1 - i; /* the largest last, and first */
      holders[i] = (holder){&all, 50000ull << place, 0};
      sum += holders[i].bytes;
    }
    expect_workspaces(ops, count, PROF_OP_THREADS, 1, sum);
    pthread_barrier_destroy(&all);
  }
  for (int i = 0; i < 2; i++) holders[i] = (holder){NULL, i ? 100000 : 50000, 0};
  expect_workspaces(ops, 2, PROF_OP_STREAMS, 1, 100000); /* one after the other: given back before the next asks */

  ops[0].run = hold_said;
  ops[0].workspace = say_held;
  for (int side = PROF_OP_THREADS; side <= PROF_OP_STREAMS; side++) expect_workspaces(ops, 2, (prof_op_side)side, 1, 150000);
  ops[1].run = nothing;
  ops[1].user = &holders[1];
  for (int side = PROF_OP_THREADS; side <= PROF_OP_STREAMS; side++) expect_workspaces(ops, 2, (prof_op_side)side, 0, 0);
}

static int nap_twice(void *user) { return nap(user) || nap(user); }

static void those_in_turn_are_compared_by_rounds(void **state) {
  const prof_op ops[] = {{.size = sizeof *ops, .key = "nap", .run = nap},
                         {.size = sizeof *ops, .key = "two naps", .run = nap_twice}};
  const prof_op_options options = {.size = sizeof options, .warmup = 1, .exec = 1, .repeat = 20, .repeat_all = 1};
  prof_op_result *results[2] = {NULL};
  prof_op_comparison comparison = {.size = sizeof comparison};
  (void)state;
  assert_int_equal(prof_op_profile_in_turn(ops, 2, &options, results), PROF_OK);
  assert_int_equal(prof_op_compare(results[0], results[1], 0, &comparison), PROF_OK);
  assert_int_equal(comparison.is_paired, 1);
  assert_int_equal(comparison.order, PROF_OP_SLOWER);
  assert_true(comparison.ratio > 1.5 && comparison.ratio < 2.5);
  assert_int_equal(prof_op_compare(results[1], results[0], 0, &comparison), PROF_OK);
  assert_int_equal(comparison.order, PROF_OP_FASTER);
  for (int i = 0; i < 2; i++) prof_op_result_destroy(results[i]);
}

static void fewer_than_six_rounds_have_no_interval(void **state) {
  const prof_op ops[] = {{.size = sizeof *ops, .key = "nap", .run = nap},
                         {.size = sizeof *ops, .key = "two naps", .run = nap_twice}};
  (void)state;
  for (int rounds = 1; rounds <= 6; rounds++) {
    const prof_op_options options = {.size = sizeof options, .no_warmup = 1, .exec = 1, .repeat = rounds, .repeat_all = 1};
    prof_op_result *results[2] = {NULL};
    prof_op_comparison comparison = {.size = sizeof comparison};
    assert_int_equal(prof_op_profile_in_turn(ops, 2, &options, results), PROF_OK);
    assert_int_equal(prof_op_compare(results[0], results[1], 0, &comparison), PROF_OK);
    assert_true(comparison.is_paired && comparison.ratio > 0);
    if (rounds < 6) {
      assert_int_equal(comparison.order, PROF_OP_UNCLEAR);
      assert_true(comparison.doubts & PROF_OP_FEW_SAMPLES);
    }
    assert_int_equal(rounds < 6, comparison.ratio_low <= 0 && isinf(comparison.ratio_high));
    assert_true(comparison.ratio_low <= comparison.ratio && comparison.ratio <= comparison.ratio_high);
    destroy_all(results, 2);
  }
}

static void single_samples_have_no_interval(void **state) {
  static const double first[] = {10}, second[] = {20}, none[] = {0};
  prof_op_comparison comparison = {.size = sizeof comparison};
  (void)state;
  prof_op_result *const a = measured("first", first, 1), *const b = measured("second", second, 1),
                        *const c = measured("none", none, 1);
  assert_int_equal(prof_op_compare(a, b, 0, &comparison), PROF_OK);
  assert_int_equal(comparison.order, PROF_OP_UNCLEAR);
  assert_true(comparison.ratio > 1.999 && comparison.ratio < 2.001);
  assert_true(comparison.ratio_low <= 0 && isinf(comparison.ratio_high));
  assert_int_equal(prof_op_compare(c, b, 0, &comparison), PROF_OK); /* below the timer's step: nothing is known */
  assert_true(comparison.ratio <= 0 && comparison.ratio_low <= 0 && isinf(comparison.ratio_high));
  prof_op_result_destroy(a);
  prof_op_result_destroy(b);
  prof_op_result_destroy(c);
}

/* ---- kept results ---- */

static void refuse(const prof_op *op, const prof_op_options *options, int status, const char *text) {
  prof_op_result *result = (prof_op_result *)1;
  assert_int_equal(prof_op_profile(op, options, &result), status);
  assert_null(result);
  if (!strstr(prof_last_error(), text)) fail_msg("'%s' has no '%s'", prof_last_error(), text);
  assert_int_equal(prof_op_cache_count(NULL), 0); /* nothing is kept of it */
}

static void results_are_kept_by_key_device_and_options(void **state) {
  subject s = {0};
  prof_op op = op_of(&s, "kept");
  prof_op_options options = {.size = sizeof options, .exec = 1, .repeat = 5, .repeat_all = 1};
  prof_op_result *first = NULL, *again = NULL;
  const prof_device other = {PROF_DEVICE_CPU, 1}, host = PROF_HOST;
  (void)state;
  assert_int_equal(prof_op_cache_count(NULL), 0);
  assert_int_equal(prof_op_profile(&op, &options, &first), PROF_OK);
  assert_int_equal(s.runs, 15);
  assert_int_equal(prof_op_profile(&op, &options, &again), PROF_OK);
  assert_int_equal(s.runs, 15);
  assert_int_equal(info_of(first).was_kept, 0);
  assert_int_equal(info_of(again).was_kept, 1);
  assert_memory_equal(prof_op_samples(first, NULL), prof_op_samples(again, NULL), 5 * sizeof(double));
  prof_op_result_destroy(again);
  options.no_reuse = 1;
  assert_int_equal(prof_op_profile(&op, &options, &again), PROF_OK);
  assert_int_equal(s.runs, 30);
  assert_int_equal(prof_op_cache_count(NULL), 1); /* in the other's place */
  prof_op_result_destroy(again);
  options.no_reuse = 0;
  options.repeat = 6;
  assert_int_equal(prof_op_profile(&op, &options, &again), PROF_OK);
  assert_int_equal(prof_op_cache_count(&host), 2);
  prof_op_result_destroy(again);
  op.device = other;
  assert_int_equal(prof_op_profile(&op, &options, &again), PROF_OK);
  prof_op_result_destroy(again);
  assert_int_equal(prof_op_cache_count(&other), 1);
  assert_int_equal(prof_op_cache_count(NULL), 3);
  prof_op_cache_reset(&host);
  assert_int_equal(prof_op_cache_count(NULL), 1);
  assert_int_equal(info_of(first).sample_count, 5); /* the caller's stays */
  prof_op_result_destroy(first);
}

static void a_zero_device_is_the_host_for_kept_results_too(void **state) {
  static const double us[] = {1};
  const prof_device zero = {0}, host = PROF_HOST, other = {PROF_DEVICE_CPU, 1};
  (void)state;
  prof_op_result_destroy(measured("kept", us, 1));
  assert_int_equal(prof_op_cache_count(&host), 1);
  assert_int_equal(prof_op_cache_count(&zero), 1);
  assert_int_equal(prof_op_cache_count(&other), 0);
  prof_op_cache_reset(&other);
  assert_int_equal(prof_op_cache_count(NULL), 1);
  prof_op_cache_reset(&zero);
  assert_int_equal(prof_op_cache_count(NULL), 0);
}

/* Of two drivers, or timers, that are the same in their first bytes. */
static void names_that_results_are_kept_for_are_not_cut(void **state) {
  subject s = {0};
  prof_op op = op_of(&s, "kept");
  prof_op_timer timer;
  prof_op_options options = {.size = sizeof options, .exec = 1, .repeat = 5, .repeat_all = 1};
  char name[513];
  (void)state;
  memset(name, 'a', sizeof name);
  for (int last = 0; last < 2; last++) {
    prof_op_result *result = NULL;
    static const double one[] = {1};
    script times = {.us = one, .count = 1};
    snprintf(name + 510, 3, "%d", last);
    op.driver = name;
    timer = timer_of(&times);
    timer.name = name + 448; /* 63 */
    options.timer = &timer;
    assert_int_equal(prof_op_profile(&op, &options, &result), PROF_OK);
    assert_int_equal(info_of(result).was_kept, 0);
    prof_op_result_destroy(result);
    op.driver = NULL;
    timer.name = name + 448;
    times = (script){.us = times.us, .count = 1};
    assert_int_equal(prof_op_profile(&op, &options, &result), PROF_OK);
    assert_int_equal(info_of(result).was_kept, 0);
    prof_op_result_destroy(result);
  }
  prof_op_cache_reset(NULL);
  snprintf(name + 511, 2, "2");
  op.driver = name;
  timer.name = "script";
  refuse(&op, &options, PROF_E_INVALID, "op.driver has 512 bytes; at most 511");
  op.driver = NULL;
  timer.name = name + 448;
  refuse(&op, &options, PROF_E_INVALID, "timer.name has 64 bytes; at most 63");
}

static void no_more_than_a_thousand_are_kept(void **state) {
  static const double us[] = {1};
  char key[32];
  (void)state;
  for (int i = 0; i < 1100; i++) {
    snprintf(key, sizeof key, "operator %d", i);
    prof_op_result_destroy(measured(key, us, 1));
  }
  assert_int_equal(prof_op_cache_count(NULL), 1024);
}

static void a_child_goes_on_with_what_was_kept(void **state) {
  static const double us[] = {1};
  int status = 0;
  (void)state;
  prof_op_result_destroy(measured("before the fork", us, 1));
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    const size_t kept = prof_op_cache_count(NULL);
    prof_op_cache_reset(NULL);
    _exit(kept == 1 && prof_op_cache_count(NULL) == 0 ? 0 : 1);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_int_equal(prof_op_cache_count(NULL), 1);
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
  } lies[] = {{-1, "says -1 us"}, {(double)NAN, "nan us"}, {(double)INFINITY, "says inf us"}, {1e300, "says 1e+300 us"}};
  (void)state;
  for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
    subject s = {0};
    double us = lies[i].us;
    const prof_op op = op_of(&s, "timed");
    const prof_op_timer timer = {
        .size = sizeof timer, .name = "constant", .user = &us, .begin = constant_begin, .end = constant_end};
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
  const prof_op_timer timer = {
      .size = sizeof timer, .name = "constant", .user = &us, .begin = constant_begin, .end = constant_end};
  const prof_op_options options = {.size = sizeof options, .repeat = 30, .repeat_all = 1, .timer = &timer};
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

/* The status first, and the text then: who calls prof_last_error() in the same argument list may have it of before. */
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
  expect_size_said("prof_op_overlap", prof_op_profile_group(&op, 1, PROF_OP_THREADS, NULL, results, &overlap));
  expect_size_said("prof_op_comparison", prof_op_compare(result, result, 0, &comparison));
  expect_size_said("prof_op_info", prof_op_info_get(result, &info));
  expect_size_said("prof_pool_options", prof_pool_create(&no_pool_options, &pool));
  assert_null(pool);
  prof_op_result_destroy(result);
}

int main(void) {
#define ENTRY(test) cmocka_unit_test_setup(test, clean)
  const struct CMUnitTest tests[] = {
      ENTRY(latency_is_a_list_as_rafs),
      ENTRY(a_sleep_takes_what_it_takes),
      ENTRY(what_is_short_is_run_many_times),
      ENTRY(it_ends_when_the_median_is_known),
      ENTRY(the_time_limit_ends_it),
      ENTRY(the_time_limit_is_the_whole_calls),
      ENTRY(the_warm_up_is_what_ran_and_not_what_was_asked_for),
      ENTRY(cold_caches_cost_more),
      ENTRY(the_allocators_peak_is_the_workspace),
      ENTRY(without_a_warm_up_the_first_run_says_the_workspace),
      ENTRY(a_measurement_inside_of_one_has_its_own_workspace),
      ENTRY(doubts_are_those_of_the_samples),
      ENTRY(the_text_says_it),
      ENTRY(times_are_said_in_four_digits_and_a_unit),
      ENTRY(comparisons_say_no_more_than_is_sure),
      ENTRY(a_time_limit_is_part_of_what_is_asked_for),
      ENTRY(operators_take_turns),
      ENTRY(those_in_turn_are_compared_by_rounds),
      ENTRY(fewer_than_six_rounds_have_no_interval),
      ENTRY(single_samples_have_no_interval),
      ENTRY(a_group_gains_what_runs_at_once),
      ENTRY(the_first_member_runs_on_the_callers_thread),
      ENTRY(a_groups_workspace_is_what_all_held_at_once),
      ENTRY(results_are_kept_by_key_device_and_options),
      ENTRY(a_zero_device_is_the_host_for_kept_results_too),
      ENTRY(names_that_results_are_kept_for_are_not_cut),
      ENTRY(no_more_than_a_thousand_are_kept),
      ENTRY(a_child_goes_on_with_what_was_kept),
      ENTRY(callbacks_that_fail_end_it),
      ENTRY(timers_that_lie_end_it),
      ENTRY(a_time_that_cannot_be_is_said_as_it_was_given),
      ENTRY(a_timer_that_always_says_0_is_doubted),
      ENTRY(arguments_are_looked_at),
      ENTRY(a_size_of_0_is_refused_with_what_to_set_it_to),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
