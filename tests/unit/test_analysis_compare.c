/* A comparison of captures: the test and the interval held against every permutation, verdicts,
   and what is new, gone or replaced. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

#include "analysis/compare.h"
#include "build_capture.h"
#include "report/internal.h"
#include "small_capture.h"

enum { CHUNK = 4 * PROF_I_UNIT_BYTES, ROOM = 8 * PROF_I_UNIT_BYTES };

/* ---- random numbers that are the same everywhere ---- */

static uint64_t random_state;
static double random_share(void) { /* [0, 1) */
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return (double)(random_state >> 11) / 9007199254740992.0;
}

/* ---- statistics ---- */

/* How often a permutation has a rank sum at least as far from the expected one. By pairs, not by
   ranks: a value counts 1 for each lower one of the other sample, and 1/2 for an equal one. */
static double p_by_permutation(const double *all, uint32_t count, uint32_t first_count) {
  uint32_t far = 0, permutations = 0, given = 0;
  for (uint32_t round = 0; round < 2; round++) {
    for (uint32_t set = 0; set < 1u << count; set++) {
      if ((uint32_t)__builtin_popcount(set) != first_count) continue;
      if (round == 0 && set != (1u << first_count) - 1) continue;
      int halves = 0;
      for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < count; j++)
          if ((set >> i & 1) && !(set >> j & 1))
            halves += (all[i] > all[j]) * 2 + (all[i] == all[j]);
      const int expected = (int)(first_count * (count - first_count));
      const uint32_t distance = (uint32_t)abs(halves - expected);
      if (round == 0) given = distance;
      permutations += round;
      far += round && distance >= given;
    }
  }
  return (double)far / permutations;
}

static void p_is_that_of_all_permutations(void **state) {
  (void)state;
  random_state = 20;
  prof_i_rank_test test = {0};
  for (uint32_t turn = 0; turn < 60; turn++) {
    const uint32_t first = 4 + turn % 3, second = 4 + turn / 3 % 3;
    double all[12], p;
    /* every other turn has few values, so that some are equal */
    for (uint32_t i = 0; i < first + second; i++)
      all[i] = turn % 2 ? 1 + random_share() : 1 + (int)(random_share() * 5);
    assert_true(prof_i_rank_test_set(&test, first, second));
    assert_true(prof_i_rank_test_p(&test, all, all + first, &p));
    const double wanted = p_by_permutation(all, first + second, first);
    assert_true(p > wanted - 1e-12 && p < wanted + 1e-12);
  }
  prof_i_rank_test_fini(&test);
}

/* Levels and ranks of the tables in Hollander, Wolfe and Chicken. */
static void the_interval_has_the_published_ranks(void **state) {
  (void)state;
  static const struct {
    uint32_t first, second, rank;
    double level;
  } wanted[] = {{4, 4, 1, 2 / 70.0},   {5, 5, 3, 8 / 252.0}, {4, 5, 2, 4 / 126.0}, {3, 3, 0, 0},
                {6, 6, 6, 38 / 924.0}, {3, 5, 1, 2 / 56.0},  {1, 1, 0, 0}};
  prof_i_rank_test test = {0};
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    assert_true(prof_i_rank_test_set(&test, wanted[i].first, wanted[i].second));
    assert_int_equal(test.rank, wanted[i].rank);
    assert_true(test.level > wanted[i].level - 1e-12 && test.level < wanted[i].level + 1e-12);
  }
  const double base[] = {100, 100, 101, 102}, new[] = {110, 112, 113, 120};
  prof_i_ratio_interval ratio;
  assert_true(prof_i_rank_test_set(&test, 4, 4));
  assert_true(prof_i_rank_test_ratio(&test, base, new, &ratio));
  assert_true(ratio.low == 110 / 102.0 && ratio.high == 120 / 100.0);
  assert_true(ratio.middle > 1.11 && ratio.middle < 1.13);
  prof_i_rank_test_fini(&test);
}

/* ---- captures ---- */

enum { ROWS = 100, CALLS = 40, RUNS = 5 };

typedef struct program {
  double factor[ROWS]; /* of the durations of each row */
} program;

/* A run of a program: each row has its own speed in this run, and each call differs, too. */
static void add_run(prof_i_comparison *comparison, prof_i_side side, const program *of) {
  capture c;
  char name[16];
  prof_trace *trace = NULL;
  capture_begin(&c, ROOM);
  prof_i_head *const meta = capture_meta(&c);
  for (uint32_t row = 1; row <= ROWS; row++) {
    snprintf(name, sizeof name, "row %u", row);
    capture_site(meta, row, name, "operator", 1);
  }
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  uint64_t at = CAPTURE_START + 100;
  for (uint32_t row = 1; row <= ROWS; row++) {
    const double speed = 1 + 0.06 * (random_share() - 0.5);
    for (uint32_t call = 0; call < CALLS; call++) {
      const uint64_t duration =
          (uint64_t)(10000 * of->factor[row - 1] * speed * (1 + 0.5 * random_share()));
      capture_plain(chunk, at, duration, row);
      at += duration + 10;
    }
  }
  assert_int_equal(prof_trace_open_bytes(c.bytes, c.count, &trace), PROF_OK);
  assert_int_equal(prof_i_comparison_add(comparison, side, trace), PROF_OK);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void compare_programs(prof_i_comparison *comparison, const program *base, const program *new,
                             uint32_t runs) {
  const prof_i_compare_options options = {.runs_count = {runs, runs}, .threshold = 0.02};
  prof_i_comparison_init(comparison, &options);
  for (uint32_t run = 0; run < runs; run++) {
    add_run(comparison, PROF_I_SIDE_BASE, base);
    add_run(comparison, PROF_I_SIDE_NEW, new);
  }
  assert_int_equal(prof_i_comparison_finish(comparison), PROF_OK);
}

static const prof_i_compare_line *line_of(const prof_i_comparison *c, const char *name) {
  for (uint32_t i = 0; i < c->line_count; i++)
    if (strcmp(c->paths.rows[c->lines[i].row].name, name) == 0) return &c->lines[i];
  return NULL;
}

static void make_even(program *p) {
  for (uint32_t i = 0; i < ROWS; i++) p->factor[i] = 1;
}

static void one_program_gets_few_verdicts(void **state) {
  (void)state;
  program same;
  prof_i_comparison c;
  uint32_t verdicts = 0, tested = 0;
  make_even(&same);
  for (uint32_t seed = 1; seed <= 4; seed++) {
    random_state = seed * 1000003;
    compare_programs(&c, &same, &same, RUNS);
    assert_int_equal(c.line_count, ROWS);
    tested += c.tested_count;
    for (uint32_t i = 0; i < c.line_count; i++)
      verdicts += c.lines[i].verdict > PROF_I_VERDICT_UNDECIDED;
    assert_true(c.chance_count > 3.1 && c.chance_count < 3.2); /* 100 * 8 / 252 */
    prof_i_comparison_fini(&c);
  }
  assert_int_equal(tested, 4 * ROWS);
  assert_true(verdicts * 20 <= tested);
}

static void a_slower_row_and_a_faster_row_are_found(void **state) {
  (void)state;
  program base, new;
  prof_i_comparison c;
  make_even(&base);
  make_even(&new);
  new.factor[6] = 1.25;
  new.factor[7] = 0.8;
  random_state = 77;
  compare_programs(&c, &base, &new, RUNS);
  const prof_i_compare_line *const slower = line_of(&c, "row 7"), *const faster =
                                                                      line_of(&c, "row 8");
  assert_int_equal(slower->verdict, PROF_I_VERDICT_SLOWER);
  assert_int_equal(faster->verdict, PROF_I_VERDICT_FASTER);
  assert_true(slower->ratio.low > 1.1 && slower->ratio.high < 1.4 && slower->p < 0.05);
  assert_int_equal(slower->values[0].calls, CALLS);
  assert_true(prof_i_comparison_beyond(&c, 0.05) >= 1);
  assert_int_equal(prof_i_comparison_beyond(&c, 0.5), 0);
  char *text = NULL;
  const prof_i_diff_options options = {.width = 160, .rows_limit = 3};
  assert_int_equal(prof_i_diff_text(&c, &options, &text), PROF_OK);
  assert_non_null(strstr(text, "Chance alone would flag at most 3.2 of 100 rows."));
  assert_non_null(strstr(text, "% slower (+"));
  assert_non_null(strstr(text, "% faster (-"));
  assert_non_null(strstr(text, "97 more with less change"));
  free(text);
  prof_i_comparison_fini(&c);
}

static void one_run_gets_no_verdict_but_the_share_of_slower_calls(void **state) {
  (void)state;
  program base, new;
  prof_i_comparison c;
  char *text = NULL;
  make_even(&base);
  make_even(&new);
  new.factor[2] = 3;
  random_state = 5;
  compare_programs(&c, &base, &new, 1);
  for (uint32_t i = 0; i < c.line_count; i++) {
    assert_int_equal(c.lines[i].verdict, PROF_I_VERDICT_NONE);
    assert_false(c.lines[i].has_p);
  }
  assert_true(line_of(&c, "row 3")->slower_share == 1);
  assert_int_equal(prof_i_comparison_beyond(&c, 0.05), 0);
  const prof_i_diff_options options = {.width = 80, .rows_limit = UINT32_MAX};
  assert_int_equal(prof_i_diff_text(&c, &options, &text), PROF_OK);
  assert_non_null(strstr(text, "No verdict: that needs 4 captures of each side."));
  assert_non_null(strstr(text, "100% of calls slower"));
  free(text);
  prof_i_comparison_fini(&c);
}

/* step { conv [hostile] { kernel }, norm }: the kernel is another one on the new side, and a row is
   added behind norm. */
static void add_step(prof_i_comparison *comparison, prof_i_side side) {
  capture c;
  prof_trace *trace = NULL;
  const bool is_new = side == PROF_I_SIDE_NEW;
  capture_begin(&c, ROOM);
  prof_i_head *const meta = capture_meta(&c);
  capture_site(meta, 1, "step", "operator", 1);
  capture_site(meta, 2, "con\"v,\n\x1b[2J\xff<b>", "operator", 1);
  capture_site(meta, 3, is_new ? "aten::thnn_conv2d" : "aten::cudnn_convolution", "operator", 1);
  capture_site(meta, 4, "norm", "operator", 1);
  capture_site(meta, 5, is_new ? "added" : "dropped", "operator", 1);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  for (uint64_t i = 0; i < 10; i++) {
    const uint64_t at = CAPTURE_START + 1000 + i * 10000;
    capture_plain(chunk, at + 200, (300 + 10 * i) * (is_new ? 2 : 1), 3);
    capture_plain(chunk, at + 100, 1000, 2);
    capture_plain(chunk, at + 2000, is_new ? 520 - 10 * i : 500, 4);
    if (!is_new) capture_plain(chunk, at + 3000, 100 + 10 * i, 5);
    if (is_new && i < 5) capture_plain(chunk, at + 3000, 200 + 20 * i, 5);
    capture_plain(chunk, at, 5000, 1);
  }
  assert_int_equal(prof_trace_open_bytes(c.bytes, c.count, &trace), PROF_OK);
  assert_int_equal(prof_i_comparison_add(comparison, side, trace), PROF_OK);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void compare_steps(prof_i_comparison *c, bool is_by_path) {
  const prof_i_compare_options options = {
      .runs_count = {1, 1}, .threshold = 0.02, .is_by_path = is_by_path};
  prof_i_comparison_init(c, &options);
  add_step(c, PROF_I_SIDE_BASE);
  add_step(c, PROF_I_SIDE_NEW);
  assert_int_equal(prof_i_comparison_finish(c), PROF_OK);
}

static void rows_are_new_gone_or_replaced(void **state) {
  (void)state;
  prof_i_comparison c;
  for (int is_by_path = 0; is_by_path < 2; is_by_path++) {
    compare_steps(&c, is_by_path);
    assert_int_equal(c.line_count, 6);
    const prof_i_compare_line *const replaced = line_of(&c, "aten::cudnn_convolution");
    assert_int_equal(replaced->state, PROF_I_COMPARE_REPLACED);
    assert_string_equal(c.paths.rows[replaced->new_row].name, "aten::thnn_conv2d");
    assert_true(replaced->ratio.middle == 2);
    assert_null(line_of(&c, "aten::thnn_conv2d"));
    /* another number of calls: not replaced */
    assert_int_equal(line_of(&c, "dropped")->state, PROF_I_COMPARE_GONE);
    assert_int_equal(line_of(&c, "added")->state, PROF_I_COMPARE_NEW);
    assert_int_equal(line_of(&c, "norm")->state, PROF_I_COMPARE_BOTH);
    prof_i_comparison_fini(&c);
  }
}

/* A line of a text, with one blank between its words. */
static bool has_line(const char *text, const char *wanted) {
  char line[256];
  size_t used = 0;
  for (const char *at = text; *at; at++) {
    if (*at != '\n') {
      if (*at != ' ' || (used && line[used - 1] != ' ')) line[used++] = *at;
      assert_true(used < sizeof line);
      continue;
    }
    while (used && line[used - 1] == ' ') used--;
    line[used] = '\0';
    if (strcmp(line, wanted) == 0) return true;
    used = 0;
  }
  return false;
}

#define assert_line(text, wanted)                                                  \
  do {                                                                             \
    if (!has_line(text, wanted)) fail_msg("no line \"%s\" in:\n%s", wanted, text); \
  } while (0)

/* Calls, both medians, mean, p99 and total of the new side, or of what is gone. */
static void a_line_has_the_values_of_its_sides(void **state) {
  (void)state;
  prof_i_comparison c;
  char *text = NULL;
  compare_steps(&c, false);
  prof_i_diff_options options = {.width = 160, .rows_limit = UINT32_MAX};
  assert_int_equal(prof_i_diff_text(&c, &options, &text), PROF_OK);
  assert_line(text, "Name Calls Base median Median Mean p99 Total Change of median");
  assert_line(text,
              "aten::cudnn_convolution -> aten::thnn_conv2d (replaced) 10 0.340us 0.680us "
              "0.690us 0.780us 6.900us +100.0%, 100% of calls slower");
  assert_line(text, "dropped 10 0.140us - 0.145us 0.190us 1.450us gone");
  assert_line(text, "added 5 - 0.240us 0.240us 0.280us 1.200us new");
  assert_line(text, "step 10 5.000us 5.000us 5.000us 5.000us 50.000us +0.0%, 0% of calls slower");
  assert_line(text, "norm 10 0.500us 0.470us 0.475us 0.520us 4.750us -6.0%, 20% of calls slower");
  free(text);
  options.width = 80;
  assert_int_equal(prof_i_diff_text(&c, &options, &text), PROF_OK);
  assert_line(text, "dropped 10 0.140us - gone");
  assert_line(text, "added 5 - 0.240us new");
  assert_line(text, "Mean, p99 and Total have no room; --width 120 shows them.");
  free(text);
  options = (prof_i_diff_options){.width = 160, .rows_limit = 2};
  assert_int_equal(prof_i_diff_text(&c, &options, &text), PROF_OK);
  assert_line(text, "4 more with less change; --rows all shows them.");
  assert_null(strstr(text, "norm"));
  free(text);
  prof_i_comparison_fini(&c);
}

/* A run of calls of one scope, of these durations in turn. */
static void add_calls(prof_i_comparison *comparison, prof_i_side side, uint32_t count,
                      const uint64_t *durations, uint32_t duration_count) {
  capture c;
  prof_trace *trace = NULL;
  capture_begin(&c, ROOM);
  capture_site(capture_meta(&c), 1, "x", "operator", 1);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  for (uint32_t i = 0; i < count; i++)
    capture_plain(chunk, CAPTURE_START + i * UINT64_C(10000), durations[i % duration_count], 1);
  assert_int_equal(prof_trace_open_bytes(c.bytes, c.count, &trace), PROF_OK);
  assert_int_equal(prof_i_comparison_add(comparison, side, trace), PROF_OK);
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* Medians of the base's runs are 1000 to 1030 ns, of the new ones 1100 to 1130 ns, or the other way
   round. New runs have 5 and 6 calls in turn, those of the base 10. */
static void check_verdict(double threshold, bool is_turned, const char *wanted) {
  prof_i_comparison c;
  char *text = NULL;
  const prof_i_compare_options options = {.runs_count = {4, 4}, .threshold = threshold};
  prof_i_comparison_init(&c, &options);
  for (uint64_t run = 0; run < 4; run++) {
    const uint64_t fast = 1000 + 10 * run, slow = 1100 + 10 * run;
    add_calls(&c, PROF_I_SIDE_BASE, 10, is_turned ? &slow : &fast, 1);
    add_calls(&c, PROF_I_SIDE_NEW, 5 + (uint32_t)run % 2, is_turned ? &fast : &slow, 1);
  }
  assert_int_equal(prof_i_comparison_finish(&c), PROF_OK);
  const prof_i_diff_options form = {.width = 160, .rows_limit = UINT32_MAX};
  assert_int_equal(prof_i_diff_text(&c, &form, &text), PROF_OK);
  assert_line(text, wanted);
  const bool is_slower = strstr(wanted, " slower ") != NULL;
  assert_int_equal(prof_i_comparison_beyond(&c, 0.06), is_slower);
  assert_int_equal(prof_i_comparison_beyond(&c, 0.08), 0); /* its interval begins at 6.8 % */
  free(text);
  prof_i_comparison_fini(&c);
}

/* The interval is from the least to the greatest of the 16 ratios. */
static void a_verdict_needs_its_interval_outside_of_the_threshold(void **state) {
  (void)state;
  check_verdict(0.06, false,
                "x 10 -> 5.5 1.015us 1.115us 1.115us 1.115us 6.135us "
                "+9.9% slower (+6.8% to +13.0%)");
  check_verdict(0.07, false,
                "x 10 -> 5.5 1.015us 1.115us 1.115us 1.115us 6.135us +9.9% (+6.8% to +13.0%)");
  check_verdict(0.06, true,
                "x 10 -> 5.5 1.115us 1.015us 1.015us 1.015us 5.585us "
                "-9.0% faster (-11.5% to -6.4%)");
  check_verdict(0.07, true,
                "x 10 -> 5.5 1.115us 1.015us 1.015us 1.015us 5.585us -9.0% (-11.5% to -6.4%)");
}

static void check_one_run(uint32_t calls, const uint64_t base[3], const uint64_t new[3],
                          const char *wanted) {
  prof_i_comparison c;
  char *text = NULL;
  const prof_i_compare_options options = {.runs_count = {1, 1}, .threshold = 0.02};
  prof_i_comparison_init(&c, &options);
  add_calls(&c, PROF_I_SIDE_BASE, calls, base, 3);
  add_calls(&c, PROF_I_SIDE_NEW, calls, new, 3);
  assert_int_equal(prof_i_comparison_finish(&c), PROF_OK);
  const prof_i_diff_options form = {.width = 160, .rows_limit = UINT32_MAX};
  assert_int_equal(prof_i_diff_text(&c, &form, &text), PROF_OK);
  if (!strstr(text, wanted)) fail_msg("no \"%s\" in:\n%s", wanted, text);
  free(text);
  prof_i_comparison_fini(&c);
}

static void shares_are_rounded_and_a_median_of_0_has_none(void **state) {
  (void)state;
  const uint64_t base[] = {2999, 3000, 3001}, new[] = {100, 3200, 3200}, none[] = {0, 0, 0};
  check_one_run(3, base, new, "  +6.7%, 67% of calls slower\n");
  check_one_run(3, base, base, "  +0.0%, 33% of calls slower\n");
  check_one_run(3, none, new, "  base median is 0, no verdict\n");
}

/* So many durations are kept in buckets of 1 %. Calls in the bucket of the median are no slower. */
static void many_calls_as_long_as_the_median_are_not_slower(void **state) {
  (void)state;
  const uint64_t base[] = {900, 1000, 1100}, new[] = {1000, 1000, 1100};
  check_one_run(600, base, new, "  +0.0%, 33% of calls slower\n");
}

static void a_tree_has_parents_before_children(void **state) {
  (void)state;
  prof_i_comparison c;
  char *text = NULL;
  compare_steps(&c, true);
  const prof_i_diff_options options = {.width = 0, .rows_limit = 1};
  assert_int_equal(prof_i_diff_text(&c, &options, &text), PROF_OK);
  /* the one line with the largest change, and its parents */
  const char *const step = strstr(text, "\nstep "), *const conv = strstr(text, "\n  con"),
                    *const kernel = strstr(
                        text, "\n    aten::cudnn_convolution -> aten::thnn_conv2d (replaced) ");
  assert_true(step && conv && kernel && step < conv && conv < kernel);
  assert_null(strstr(text, "norm"));
  assert_null(strchr(text, '\x1b'));
  free(text);
  prof_i_comparison_fini(&c);
}

static void data_escape_hostile_names(void **state) {
  (void)state;
  prof_i_comparison c;
  char *text = NULL;
  compare_steps(&c, true);
  assert_int_equal(prof_i_diff_json(&c, &text), PROF_OK);
  assert_non_null(strstr(text, "\"con\\\"v,\\n\\u001b[2J\xef\xbf\xbd"));
  assert_non_null(strstr(text,
                         "\"new_name\":\"aten::thnn_conv2d\",\"new_category\":\"operator\","
                         "\"path\":[\"step\","));
  free(text);
  assert_int_equal(prof_i_diff_csv(&c, &text), PROF_OK);
  assert_non_null(
      strstr(text, "\"con\"\"v,\n\x1b[2J\xef\xbf\xbd<b>\",\"\",\"operator\",\"\",host,"));
  free(text);
  prof_i_comparison_fini(&c);
}

/* A capture with scopes that cross, skip, stay open, and end on other threads. */
static void rows_equal_those_of_a_table(void **state) {
  (void)state;
  capture c;
  prof_trace *trace = NULL;
  prof_i_comparison comparison;
  prof_rows *rows = NULL;
  const prof_i_compare_options options = {.runs_count = {1, 1}, .threshold = 0.02};
  small_capture(&c);
  assert_int_equal(prof_trace_open_bytes(c.bytes, c.count, &trace), PROF_OK);
  prof_i_comparison_init(&comparison, &options);
  for (int side = 0; side < PROF_I_SIDES; side++)
    assert_int_equal(prof_i_comparison_add(&comparison, (prof_i_side)side, trace), PROF_OK);
  assert_int_equal(prof_i_comparison_finish(&comparison), PROF_OK);
  assert_int_equal(prof_trace_aggregate(trace, NULL, &rows), PROF_OK);
  uint32_t compared = 0;
  for (uint64_t i = 0; i < rows->row_count; i++) {
    const prof_row *const row = &rows->rows[i];
    if (!row->calls_count) continue;
    const prof_i_compare_line *const line = line_of(&comparison, row->name);
    assert_non_null(line);
    for (int side = 0; side < PROF_I_SIDES; side++) {
      assert_true(line->values[side].calls == (double)row->calls_count);
      assert_true(line->values[side].total_ns == (double)row->total_ns);
      assert_true(line->values[side].median_ns == (double)row->median_ns);
      assert_true(line->values[side].p99_ns == (double)row->p99_ns);
    }
    compared++;
  }
  assert_int_equal(compared, comparison.line_count);
  assert_true(compared >= 3);
  prof_rows_destroy(rows);
  prof_i_comparison_fini(&comparison);
  prof_trace_destroy(trace);
  capture_end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(p_is_that_of_all_permutations),
      cmocka_unit_test(the_interval_has_the_published_ranks),
      cmocka_unit_test(one_program_gets_few_verdicts),
      cmocka_unit_test(a_slower_row_and_a_faster_row_are_found),
      cmocka_unit_test(one_run_gets_no_verdict_but_the_share_of_slower_calls),
      cmocka_unit_test(rows_are_new_gone_or_replaced),
      cmocka_unit_test(a_line_has_the_values_of_its_sides),
      cmocka_unit_test(a_verdict_needs_its_interval_outside_of_the_threshold),
      cmocka_unit_test(shares_are_rounded_and_a_median_of_0_has_none),
      cmocka_unit_test(many_calls_as_long_as_the_median_are_not_slower),
      cmocka_unit_test(a_tree_has_parents_before_children),
      cmocka_unit_test(rows_equal_those_of_a_table),
      cmocka_unit_test(data_escape_hostile_names),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
