/* See launches.h. */
#include "launches.h"

#include <stdlib.h>

#include "import.h"

void import_launches_add(import_launches *launches, int64_t correlation, uint64_t start, uint32_t serial) {
  launches->all = import_room(launches->all, &launches->room, launches->count + 1, sizeof *launches->all);
  launches->all[launches->count] = (import_launch){correlation, start, serial, (uint32_t)launches->count};
  launches->count++;
}

static int in_order(const void *a, const void *b) {
  const import_launch *const x = a, *const y = b;
  if (x->correlation != y->correlation) return x->correlation < y->correlation ? -1 : 1;
  return (x->order > y->order) - (x->order < y->order);
}

void import_launches_sort(import_launches *launches) {
  if (launches->count) qsort(launches->all, launches->count, sizeof *launches->all, in_order);
}

const import_launch *import_launches_find(const import_launches *launches, int64_t correlation) {
  size_t low = 0, high = launches->count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (launches->all[middle].correlation < correlation) low = middle + 1;
    else high = middle;
  }
  return low < launches->count && launches->all[low].correlation == correlation ? &launches->all[low] : NULL;
}
