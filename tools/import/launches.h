/* What launched what: calls on the host by their correlation number. */
#ifndef PROF_IMPORT_LAUNCHES_H
#define PROF_IMPORT_LAUNCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct import_launch {
  int64_t correlation;
  int64_t pid;     /* of its process */
  uint64_t start;  /* ticks */
  uint32_t serial; /* of the thread */
  uint32_t order;
} import_launch;

typedef struct import_launches {
  import_launch *all;
  size_t count, room;
} import_launches;

void import_launches_add(import_launches *launches, int64_t correlation, int64_t pid,
                         uint64_t start, uint32_t serial);
/* Once all have come. */
void import_launches_sort(import_launches *launches);
/* Of a number that comes twice in a process the first that was told. NULL: there is none. */
const import_launch *import_launches_find(const import_launches *launches, int64_t correlation,
                                          int64_t pid);

#endif
