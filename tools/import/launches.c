/* See state.h. */
#include "state.h"

#include <stdlib.h>

#include "import.h"

void import_launches_add(import_launches *launches, int64_t correlation, int64_t pid,
                         uint64_t start, uint32_t serial) {
  launches->all =
      import_make_room(launches->all, &launches->room, launches->count + 1, sizeof *launches->all);
  launches->all[launches->count] =
      (import_launch){correlation, pid, start, serial, (uint32_t)launches->count};
  launches->count++;
}

/* By number, then by process. */
static int launch_compare(const import_launch *launch, int64_t correlation, int64_t pid) {
  if (launch->correlation != correlation) return launch->correlation < correlation ? -1 : 1;
  return (launch->pid > pid) - (launch->pid < pid);
}

static int launch_compare_for_sort(const void *a, const void *b) {
  const import_launch *const x = a, *const y = b;
  const int order = launch_compare(x, y->correlation, y->pid);
  return order ? order : (x->order > y->order) - (x->order < y->order);
}

void import_launches_sort(import_launches *launches) {
  if (launches->count)
    qsort(launches->all, launches->count, sizeof *launches->all, launch_compare_for_sort);
}

const import_launch *import_launches_find(const import_launches *launches, int64_t correlation,
                                          int64_t pid) {
  size_t low = 0, high = launches->count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (launch_compare(&launches->all[middle], correlation, pid) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == launches->count || launch_compare(&launches->all[low], correlation, pid) != 0)
    return NULL;
  return &launches->all[low];
}
