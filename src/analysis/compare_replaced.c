/* Finds replaced paths: an operator that another one took the place of. Both have the same parent,
   the same number of calls for each call of the parent, and the same place among its children. A
   place is counted from the last child before it that both sides have. See compare.h. */
#include <stdlib.h>

#include "compare.h"

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

uint32_t *prof_i_find_replaced(const prof_i_paths *paths, const uint32_t runs_count[PROF_I_SIDES]) {
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
