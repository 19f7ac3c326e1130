/* A side that is moved from another comparison: all is as if its captures were added. */
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

static uint64_t random_state;      /* the same numbers everywhere */
static double random_share(void) { /* [0, 1) */
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return (double)(random_state >> 11) / 9007199254740992.0;
}

/* ---- captures ---- */

/* A scope with scopes inside, some of its own name. */
static void put_scope(prof_i_head *chunk, uint64_t *at, uint32_t depth) {
  const uint32_t site = 1 + (uint32_t)(random_share() * 8);
  const uint64_t start = *at += 1 + (uint64_t)(random_share() * 50);
  for (uint32_t i = 0; depth < 6 && i < (uint32_t)(random_share() * 4); i++)
    put_scope(chunk, at, depth + 1);
  *at += 1 + (uint64_t)(random_share() * 50);
  capture_plain(chunk, start, *at - start, site);
}

static void add_nested(prof_i_comparison *comparison, prof_i_side side) {
  capture c;
  char name[16];
  prof_trace *trace = NULL;
  capture_begin(&c, ROOM);
  prof_i_head *const meta = capture_meta(&c);
  for (uint32_t site = 1; site <= 8; site++) {
    snprintf(name, sizeof name, "name %u", (uint32_t)(random_share() * 10));
    capture_site(meta, site, name, site % 2 ? "operator" : "", 1);
  }
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  uint64_t at = CAPTURE_START + 100;
  for (uint32_t i = 0; i < 60; i++) put_scope(chunk, &at, 0);
  assert_int_equal(prof_trace_open_bytes(c.bytes, c.count, &trace), PROF_OK);
  assert_int_equal(prof_i_comparison_add(comparison, side, trace), PROF_OK);
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* Scopes that cross, skip, stay open, and end on other threads. */
static void add_small(prof_i_comparison *comparison, prof_i_side side) {
  capture c;
  prof_trace *trace = NULL;
  small_capture(&c);
  assert_int_equal(prof_trace_open_bytes(c.bytes, c.count, &trace), PROF_OK);
  assert_int_equal(prof_i_comparison_add(comparison, side, trace), PROF_OK);
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* ---- comparisons ---- */

typedef void (*add_capture)(prof_i_comparison *comparison, prof_i_side side);

/* Both sides, the new one in a comparison of its own if is_merged. */
static void compare_sides(prof_i_comparison *c, const prof_i_compare_options *options,
                          const add_capture add[PROF_I_SIDES], bool is_merged) {
  prof_i_comparison other;
  random_state = 7;
  prof_i_comparison_init(c, options);
  prof_i_comparison_init(&other, options);
  c->paths.depth_max = other.paths.depth_max = options->is_by_path ? 4 : 0;
  for (uint32_t run = 0; run < options->runs_count[0]; run++) add[0](c, PROF_I_SIDE_BASE);
  for (uint32_t run = 0; run < options->runs_count[1]; run++)
    add[1](is_merged ? &other : c, PROF_I_SIDE_NEW);
  if (is_merged) assert_int_equal(prof_i_comparison_merge(c, &other, PROF_I_SIDE_NEW), PROF_OK);
  prof_i_comparison_fini(&other);
  assert_int_equal(prof_i_comparison_finish(c), PROF_OK);
}

static void check_equal_paths(const prof_i_paths *a, const prof_i_paths *b) {
  assert_int_equal(a->count, b->count);
  assert_int_equal(a->row_count, b->row_count);
  for (uint32_t i = 0; i < a->row_count; i++) assert_string_equal(a->rows[i].name, b->rows[i].name);
  for (uint32_t i = 0; i < a->count; i++) {
    const prof_i_path *const of_a = &a->items[i], *const of_b = &b->items[i];
    assert_memory_equal(of_a->sums, of_b->sums, sizeof of_a->sums);
    assert_memory_equal(of_a->order, of_b->order, sizeof of_a->order);
    assert_int_equal(of_a->parent, of_b->parent);
    assert_int_equal(of_a->row, of_b->row);
    assert_int_equal(of_a->is_inner, of_b->is_inner);
    assert_int_equal(of_a->is_deeper, of_b->is_deeper);
  }
  assert_memory_equal(a->host_self_ns, b->host_self_ns, sizeof a->host_self_ns);
}

static void check_equal(const prof_i_comparison *a, const prof_i_comparison *b) {
  char *texts[2] = {NULL, NULL};
  const prof_i_diff_options form = {.rows_limit = UINT32_MAX};
  check_equal_paths(&a->paths, &b->paths);
  assert_memory_equal(a->added, b->added, sizeof a->added);
  assert_int_equal(a->line_count, b->line_count);
  for (int way = 0; way < 3; way++) {
    for (int i = 0; i < 2; i++) {
      const prof_i_comparison *const c = i ? b : a;
      assert_int_equal(way == 0   ? prof_i_diff_text(c, &form, &texts[i])
                       : way == 1 ? prof_i_diff_json(c, &texts[i])
                                  : prof_i_diff_csv(c, &texts[i]),
                       PROF_OK);
    }
    assert_string_equal(texts[0], texts[1]);
    free(texts[0]);
    free(texts[1]);
  }
}

/* One run of a side is moved, some are pooled, and many give verdicts. */
static void a_merged_side_is_as_if_it_was_added(void **state) {
  (void)state;
  static const add_capture pairs[][PROF_I_SIDES] = {{add_nested, add_nested},
                                                    {add_nested, add_small},
                                                    {add_small, add_nested},
                                                    {add_small, add_small}};
  static const uint32_t runs[][PROF_I_SIDES] = {{1, 1}, {3, 1}, {1, 3}, {4, 5}};
  for (size_t pair = 0; pair < sizeof pairs / sizeof *pairs; pair++)
    for (size_t i = 0; i < 2 * sizeof runs / sizeof *runs; i++) {
      const prof_i_compare_options options = {.runs_count = {runs[i / 2][0], runs[i / 2][1]},
                                              .threshold = 0.02,
                                              .is_by_path = i % 2 == 1};
      prof_i_comparison whole, merged;
      compare_sides(&whole, &options, pairs[pair], false);
      compare_sides(&merged, &options, pairs[pair], true);
      check_equal(&whole, &merged);
      prof_i_comparison_fini(&whole);
      prof_i_comparison_fini(&merged);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_merged_side_is_as_if_it_was_added),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
