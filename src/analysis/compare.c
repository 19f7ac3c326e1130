/* See compare.h. */
#include "compare.h"

#include <stdlib.h>

#include "../base/error.h"
#include "filter.h"
#include "statistics.h"

/* ---- replaced names ---- */

/* One operator took the place of another. Both have the same parent, the same number of calls for
   each call of the parent, and the same place among its children. A place is counted from the last
   child before it that both sides have. */

static const double calls_tolerance = 0.01;

/* A child of a parent, by the order of one side. */
typedef struct placed_child {
  uint32_t parent, order, path;
  bool is_device;
  uint32_t before, number; /* the last common child before it, and the count from there */
} placed_child;

static bool is_only_on(const prof_i_path *path, prof_i_side side) {
  return path->sums[side].calls_count && !path->sums[!side].calls_count;
}

static int placed_child_compare(const void *x, const void *y) {
  const placed_child *const a = x, *const b = y;
  if (a->parent != b->parent) return a->parent < b->parent ? -1 : 1;
  if (a->is_device != b->is_device) return a->is_device ? 1 : -1;
  return (a->order > b->order) - (a->order < b->order);
}

/* The same, by place. */
static int place_compare(const placed_child *a, const placed_child *b) {
  if (a->parent != b->parent) return a->parent < b->parent ? -1 : 1;
  if (a->is_device != b->is_device) return a->is_device ? 1 : -1;
  if (a->before != b->before) return a->before < b->before ? -1 : 1;
  return (a->number > b->number) - (a->number < b->number);
}

static int place_compare_any(const void *x, const void *y) { return place_compare(x, y); }

/* The children that this side alone has, by place. Returns their number. */
static uint32_t place_children(const prof_i_paths *paths, prof_i_side side,
                               placed_child *children) {
  uint32_t count = 0, kept = 0, before = 0, number = 0;
  for (uint32_t i = 1; i < paths->count; i++) {
    const prof_i_path *const path = &paths->items[i];
    if (!path->order[side]) continue;
    children[count++] = (placed_child){.parent = path->parent,
                                       .order = path->order[side],
                                       .path = i,
                                       .is_device = paths->rows[path->row].is_device};
  }
  if (count) qsort(children, count, sizeof *children, placed_child_compare);
  uint32_t parent = UINT32_MAX;
  bool is_device = false;
  for (uint32_t i = 0; i < count; i++) {
    placed_child child = children[i];
    if (child.parent != parent || child.is_device != is_device) before = number = 0;
    parent = child.parent;
    is_device = child.is_device;
    if (is_only_on(&paths->items[child.path], side)) {
      child.before = before;
      child.number = number++;
      children[kept++] = child;
    } else {
      before = child.path;
      number = 0;
    }
  }
  if (kept) qsort(children, kept, sizeof *children, place_compare_any);
  return kept;
}

static double calls_for_parent(const prof_i_paths *paths, uint32_t path, prof_i_side side,
                               uint32_t runs_count) {
  const uint64_t calls = paths->items[path].sums[side].calls_count,
                 outer = paths->items[paths->items[path].parent].sums[side].calls_count;
  return (double)calls / (double)(outer ? outer : runs_count);
}

static bool calls_agree(double a, double b) {
  const double apart = a > b ? a - b : b - a;
  return apart <= calls_tolerance * (a > b ? a : b);
}

/* Finds replacements. The array has, for each path that only the base has, the path of the new side
   that replaced it, or 0. The caller frees the array. NULL: no memory. */
static uint32_t *find_replaced(const prof_i_paths *paths, const uint32_t runs_count[PROF_I_SIDES]) {
  placed_child *const gone = calloc(paths->count + 1, sizeof *gone), *const added =
                                                                         calloc(paths->count + 1,
                                                                                sizeof *added);
  uint32_t *partners = calloc(paths->count + 1, sizeof *partners);
  if (!gone || !added || !partners) {
    free(partners);
    partners = NULL;
  } else {
    const uint32_t gone_count = place_children(paths, PROF_I_SIDE_BASE, gone),
                   added_count = place_children(paths, PROF_I_SIDE_NEW, added);
    for (uint32_t i = 0, j = 0; i < gone_count && j < added_count;) {
      const int order = place_compare(&gone[i], &added[j]);
      if (order == 0 &&
          calls_agree(
              calls_for_parent(paths, gone[i].path, PROF_I_SIDE_BASE, runs_count[PROF_I_SIDE_BASE]),
              calls_for_parent(paths, added[j].path, PROF_I_SIDE_NEW, runs_count[PROF_I_SIDE_NEW])))
        partners[gone[i].path] = added[j].path;
      i += order <= 0;
      j += order >= 0;
    }
  }
  free(gone);
  free(added);
  return partners;
}

enum { UNIT_ROOM_FIRST = 64 };

typedef struct run_values {
  uint64_t calls_count, total_ns, median_ns, p99_ns;
  double mean_ns;
} run_values;

/* What a line compares: a row or a path. */
typedef struct prof_i_compare_unit {
  prof_i_duration_stats run;                  /* of the capture that is being added */
  prof_i_duration_stats pooled[PROF_I_SIDES]; /* of all captures of a side; without verdicts only */
  run_values *values[PROF_I_SIDES];           /* of each capture; NULL: the side has none */
} compare_unit;

typedef struct adding {
  prof_i_comparison *comparison;
  prof_i_side side;
  bool has_pool;
} adding;

void prof_i_comparison_init(prof_i_comparison *comparison, const prof_i_compare_options *options) {
  *comparison = (prof_i_comparison){.options = *options};
}

/* ---- captures ---- */

static bool make_units(prof_i_comparison *c, uint32_t count) {
  if (count > c->unit_room) {
    uint32_t room = c->unit_room ? c->unit_room : UNIT_ROOM_FIRST;
    while (room < count) room *= 2;
    compare_unit *const larger = realloc(c->units, room * sizeof *larger);
    if (!larger) return false;
    c->units = larger;
    c->unit_room = room;
  }
  for (; c->unit_count < count; c->unit_count++) {
    compare_unit *const unit = &c->units[c->unit_count];
    *unit = (compare_unit){0};
    prof_i_duration_stats_init(&unit->run);
    for (uint32_t side = 0; side < PROF_I_SIDES; side++)
      prof_i_duration_stats_init(&unit->pooled[side]);
  }
  return true;
}

/* Whether calls of several runs are pooled. Of one run they are moved (finish_run()). */
static bool has_pool(const prof_i_comparison *c, prof_i_side side) {
  return !prof_i_comparison_has_verdicts(c) && c->options.runs_count[side] > 1;
}

/* A row's total counts only the outermost call of a recursion. */
static bool add_call(void *user, uint32_t path, uint64_t duration_ns, uint64_t self_ns,
                     bool is_outermost) {
  const adding *const to = user;
  prof_i_comparison *const c = to->comparison;
  const uint32_t index = c->options.is_by_path ? path : c->paths.items[path].row;
  if (index >= c->unit_count && !make_units(c, index + 1)) return false;
  compare_unit *const unit = &c->units[index];
  if (!prof_i_duration_stats_add(&unit->run, duration_ns, self_ns)) return false;
  const bool has_all = c->options.is_by_path && !c->paths.items[path].is_deeper;
  if (has_all || is_outermost) unit->run.outer_ns += duration_ns;
  return !to->has_pool || prof_i_duration_stats_add(&unit->pooled[to->side], duration_ns, self_ns);
}

static bool finish_run(prof_i_comparison *c, compare_unit *unit, prof_i_side side) {
  const uint64_t calls = unit->run.calls;
  if (calls == 0) return true;
  if (!unit->values[side])
    unit->values[side] = calloc(c->options.runs_count[side], sizeof *unit->values[side]);
  if (!unit->values[side]) return false;
  unit->values[side][c->added[side]] =
      (run_values){.calls_count = calls,
                   .total_ns = unit->run.outer_ns,
                   .median_ns = prof_i_duration_stats_quantile(&unit->run, 0.5),
                   .p99_ns = prof_i_duration_stats_quantile(&unit->run, 0.99),
                   .mean_ns = (double)unit->run.total_ns / (double)calls};
  if (!prof_i_comparison_has_verdicts(c) && !has_pool(c, side)) {
    unit->pooled[side] = unit->run;
    prof_i_duration_stats_init(&unit->run);
  } else {
    prof_i_duration_stats_fini(&unit->run);
  }
  return true;
}

int prof_i_comparison_add(prof_i_comparison *comparison, prof_i_side side,
                          const prof_trace *trace) {
  if (comparison->added[side] + comparison->left_out[side] >= comparison->options.runs_count[side])
    return prof_i_fail(PROF_E_INVALID, "a comparison of %u captures got another one",
                       comparison->options.runs_count[side]);
  if (!prof_i_filter_takes_trace(comparison->paths.filter, trace)) {
    comparison->left_out[side]++;
    return PROF_OK;
  }
  adding to = {comparison, side, has_pool(comparison, side)};
  const int status = prof_i_paths_add(&comparison->paths, trace, side, add_call, &to);
  if (status != PROF_OK) return status;
  for (uint32_t i = 0; i < comparison->unit_count; i++)
    if (!finish_run(comparison, &comparison->units[i], side))
      return prof_i_fail(PROF_E_NO_MEMORY, "no memory for the values of %u rows",
                         comparison->unit_count);
  comparison->added[side]++;
  return PROF_OK;
}

/* ---- two comparisons ---- */

static void move_unit(compare_unit *to, compare_unit *from, prof_i_side side) {
  to->values[side] = from->values[side];
  to->pooled[side] = from->pooled[side];
  from->values[side] = NULL;
  prof_i_duration_stats_init(&from->pooled[side]);
}

int prof_i_comparison_merge(prof_i_comparison *comparison, prof_i_comparison *from,
                            prof_i_side side) {
  prof_i_comparison *const c = comparison;
  const bool is_by_path = c->options.is_by_path;
  uint32_t *const rows = calloc(from->paths.row_count + 1, sizeof *rows), *const paths = calloc(
                                                                              from->paths.count + 1,
                                                                              sizeof *paths);
  const bool is_merged = rows && paths &&
                         prof_i_paths_merge(&c->paths, &from->paths, side, rows, paths) &&
                         make_units(c, is_by_path ? c->paths.count : c->paths.row_count);
  for (uint32_t i = 0; is_merged && i < from->unit_count; i++)
    move_unit(&c->units[is_by_path ? paths[i] : rows[i]], &from->units[i], side);
  c->added[side] = from->added[side];
  free(rows);
  free(paths);
  return is_merged ? PROF_OK
                   : prof_i_fail(PROF_E_NO_MEMORY, "no memory to merge %u rows and %u paths",
                                 from->paths.row_count, from->paths.count);
}

/* ---- lines ---- */

/* The values of a side, and the medians of its runs. */
static prof_i_compare_values side_values(const prof_i_comparison *c, const compare_unit *unit,
                                         prof_i_side side, double medians[PROF_I_SAMPLE_MAX]) {
  prof_i_compare_values to = {0};
  double means[PROF_I_SAMPLE_MAX], tails[PROF_I_SAMPLE_MAX], sorted[PROF_I_SAMPLE_MAX];
  const uint32_t runs = c->options.runs_count[side];
  if (!unit || !unit->values[side]) return to;
  for (uint32_t i = 0; i < runs; i++) {
    const run_values *const run = &unit->values[side][i];
    to.calls += (double)run->calls_count / runs;
    to.total_ns += (double)run->total_ns / runs;
    if (!run->calls_count) continue;
    sorted[to.runs_count] = medians[to.runs_count] = (double)run->median_ns;
    means[to.runs_count] = run->mean_ns;
    tails[to.runs_count++] = (double)run->p99_ns;
  }
  to.median_ns = prof_i_median(sorted, to.runs_count);
  to.mean_ns = prof_i_median(means, to.runs_count);
  to.p99_ns = prof_i_median(tails, to.runs_count);
  return to;
}

/* Calls that took longer than this. Beyond 512 calls those within 1 % of it do not count. */
static uint64_t count_longer(const prof_i_duration_stats *stats, uint64_t than_ns) {
  uint64_t count = 0;
  if (stats->calls == 1) return stats->max_ns > than_ns;
  for (uint64_t i = 0; !stats->buckets && i < stats->calls; i++)
    count += stats->more.exact[i] > than_ns;
  const uint32_t from = prof_i_duration_stats_bucket(than_ns) + 1;
  for (uint32_t i = from; stats->buckets && i < PROF_I_DURATION_BUCKETS; i++)
    count += stats->buckets[i] + (stats->more.carries ? (uint64_t)stats->more.carries[i] << 16 : 0);
  return count;
}

static double find_slower_share(compare_unit *base, const compare_unit *new) {
  const prof_i_duration_stats *const calls = &new->pooled[PROF_I_SIDE_NEW];
  if (!calls->calls || !base->pooled[PROF_I_SIDE_BASE].calls) return -1;
  const uint64_t median = prof_i_duration_stats_quantile(&base->pooled[PROF_I_SIDE_BASE], 0.5);
  return (double)count_longer(calls, median) / (double)calls->calls;
}

static bool are_positive(const double *values, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (values[i] <= 0) return false;
  return true;
}

/* The test and the verdict. False: no memory. */
static bool judge_line(prof_i_comparison *c, prof_i_compare_line *line,
                       double medians[PROF_I_SIDES][PROF_I_SAMPLE_MAX]) {
  const uint32_t counts[] = {line->values[0].runs_count, line->values[1].runs_count};
  if (counts[0] < PROF_I_VERDICT_RUNS_MIN || counts[1] < PROF_I_VERDICT_RUNS_MIN ||
      !are_positive(medians[0], counts[0]))
    return true;
  if (!prof_i_rank_test_set(&c->test, counts[0], counts[1]) ||
      !prof_i_rank_test_p(&c->test, medians[0], medians[1], &line->p) ||
      !prof_i_rank_test_ratio(&c->test, medians[0], medians[1], &line->ratio))
    return false;
  line->has_p = true;
  c->tested_count++;
  c->chance_count += c->test.level;
  if (c->tested_count == 1 || c->test.coverage < c->coverage) c->coverage = c->test.coverage;
  line->verdict = PROF_I_VERDICT_UNDECIDED;
  if (line->p < 0.05 && line->ratio.low > 1 + c->options.threshold)
    line->verdict = PROF_I_VERDICT_SLOWER;
  else if (line->p < 0.05 && line->ratio.high < 1 - c->options.threshold)
    line->verdict = PROF_I_VERDICT_FASTER;
  return true;
}

static bool fill_line(prof_i_comparison *c, prof_i_compare_line *line, compare_unit *base,
                      const compare_unit *new) {
  double medians[PROF_I_SIDES][PROF_I_SAMPLE_MAX];
  line->values[0] = side_values(c, base, PROF_I_SIDE_BASE, medians[0]);
  line->values[1] = side_values(c, new, PROF_I_SIDE_NEW, medians[1]);
  line->slower_share = -1;
  if (line->state == PROF_I_COMPARE_NEW || line->state == PROF_I_COMPARE_GONE) return true;
  line->has_change = line->values[0].median_ns > 0;
  if (line->has_change) {
    const double ratio = line->values[1].median_ns / line->values[0].median_ns;
    line->ratio = (prof_i_ratio_interval){ratio, ratio, ratio};
  }
  if (prof_i_comparison_has_verdicts(c)) return judge_line(c, line, medians);
  line->slower_share = find_slower_share(base, new);
  return true;
}

/* By falling change of the total, then by total, then by number. */
static int line_compare(const void *x, const void *y) {
  const prof_i_compare_line *const a = x, *const b = y;
  const double of_a = __builtin_fabs(a->values[1].total_ns - a->values[0].total_ns),
               of_b = __builtin_fabs(b->values[1].total_ns - b->values[0].total_ns);
  if (of_a != of_b) return of_a < of_b ? 1 : -1;
  if (a->values[1].total_ns != b->values[1].total_ns)
    return a->values[1].total_ns < b->values[1].total_ns ? 1 : -1;
  if (a->row != b->row) return a->row < b->row ? -1 : 1;
  return (a->path > b->path) - (a->path < b->path);
}

static bool unit_has(const prof_i_comparison *c, uint32_t index, prof_i_side side) {
  return index < c->unit_count && c->units[index].values[side];
}

/* Partners of units: those of paths, or of rows that are on one side alone. NULL: no memory. */
static uint32_t *find_partners(const prof_i_comparison *c) {
  uint32_t *const paths = find_replaced(&c->paths, c->options.runs_count);
  if (c->options.is_by_path || !paths) return paths;
  /* row 0 may be a partner, so these are plus 1 */
  uint32_t *const rows = calloc(c->paths.row_count + 1, sizeof *rows);
  bool *const is_taken = calloc(c->paths.row_count + 1, sizeof *is_taken);
  for (uint32_t i = 1; rows && is_taken && i < c->paths.count; i++) {
    if (!paths[i]) continue;
    const uint32_t gone = c->paths.items[i].row, added = c->paths.items[paths[i]].row;
    if (rows[gone] || is_taken[added] || unit_has(c, gone, PROF_I_SIDE_NEW) ||
        unit_has(c, added, PROF_I_SIDE_BASE))
      continue;
    rows[gone] = added + 1;
    is_taken[added] = true;
  }
  free(paths);
  if (is_taken) {
    free(is_taken);
    return rows;
  }
  free(rows);
  return NULL;
}

static bool add_line(prof_i_comparison *c, uint32_t index, uint32_t new_index,
                     prof_i_compare_state state) {
  prof_i_compare_line *const line = &c->lines[c->line_count++];
  const bool is_path = c->options.is_by_path;
  *line = (prof_i_compare_line){.row = is_path ? c->paths.items[index].row : index,
                                .new_row = is_path ? c->paths.items[new_index].row : new_index,
                                .path = is_path ? index : 0,
                                .new_path = is_path ? new_index : 0,
                                .state = state};
  return fill_line(c, line, &c->units[index], &c->units[new_index]);
}

static bool make_lines(prof_i_comparison *c, const uint32_t *partners, bool *is_partner) {
  const uint32_t plus = c->options.is_by_path ? 0 : 1;
  for (uint32_t i = 0; i < c->unit_count; i++)
    if (partners[i]) is_partner[partners[i] - plus] = true;
  for (uint32_t i = 0; i < c->unit_count; i++) {
    const bool has_base = unit_has(c, i, PROF_I_SIDE_BASE),
               has_new = unit_has(c, i, PROF_I_SIDE_NEW);
    if ((!has_base && !has_new) || is_partner[i]) continue;
    const uint32_t other = partners[i] ? partners[i] - plus : i;
    const prof_i_compare_state state = partners[i] ? PROF_I_COMPARE_REPLACED
                                       : !has_new  ? PROF_I_COMPARE_GONE
                                       : !has_base ? PROF_I_COMPARE_NEW
                                                   : PROF_I_COMPARE_BOTH;
    if (!add_line(c, i, other, state)) return false;
  }
  return true;
}

int prof_i_comparison_finish(prof_i_comparison *comparison) {
  prof_i_comparison *const c = comparison;
  const uint32_t all = c->options.is_by_path ? c->paths.count : c->paths.row_count;
  for (uint32_t side = 0; side < PROF_I_SIDES; side++) {
    c->options.runs_count[side] -= c->left_out[side];
    c->left_out[side] = 0;
  }
  bool is_made = make_units(c, all);
  uint32_t *const partners = is_made ? find_partners(c) : NULL;
  bool *const is_partner = calloc(all + 1, sizeof *is_partner);
  c->lines = calloc(all + 1, sizeof *c->lines);
  is_made = partners && is_partner && c->lines && make_lines(c, partners, is_partner);
  free(partners);
  free(is_partner);
  if (!is_made) return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a comparison of %u rows", all);
  if (c->line_count) qsort(c->lines, c->line_count, sizeof *c->lines, line_compare);
  return PROF_OK;
}

void prof_i_comparison_fini(prof_i_comparison *comparison) {
  for (uint32_t i = 0; i < comparison->unit_count; i++) {
    compare_unit *const unit = &comparison->units[i];
    prof_i_duration_stats_fini(&unit->run);
    for (uint32_t side = 0; side < PROF_I_SIDES; side++) {
      prof_i_duration_stats_fini(&unit->pooled[side]);
      free(unit->values[side]);
    }
  }
  free(comparison->units);
  free(comparison->lines);
  prof_i_paths_fini(&comparison->paths);
  prof_i_rank_test_fini(&comparison->test);
  *comparison = (prof_i_comparison){0};
}

uint32_t prof_i_comparison_beyond(const prof_i_comparison *comparison, double limit) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < comparison->line_count; i++) {
    const prof_i_compare_line *const line = &comparison->lines[i];
    count += line->verdict == PROF_I_VERDICT_SLOWER && line->ratio.low > 1 + limit;
  }
  return count;
}
