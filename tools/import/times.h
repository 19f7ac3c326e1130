/* Times as the trace has them, and which of them are possible: known when all have come. Until
   then a time is its ns with the sign turned, so that times compare as numbers do. */
#ifndef PROF_IMPORT_TIMES_H
#define PROF_IMPORT_TIMES_H

#include <stdbool.h>
#include <stdint.h>

#include "event.h"

enum { IMPORT_TIME_BINS = 256, IMPORT_OUTLIER_BYTES = 64 };

/* What began in a stretch of 2^56 ns, 2.3 years. */
typedef struct import_time_bin {
  uint64_t count, first;
  char name[IMPORT_OUTLIER_BYTES]; /* of the first */
} import_time_bin;

typedef struct import_times {
  import_time_bin time_bins[IMPORT_TIME_BINS];
  uint64_t low, high; /* the times that are taken */
  uint64_t shift;     /* to ticks */
} import_times;

/* False: it is no time. */
bool import_times_read(import_times *times, const import_event *event, uint64_t *time_out);

/* Chooses the nine years in which most events began. */
void import_times_choose_range(import_times *times);

static inline bool import_times_has(const import_times *times, uint64_t time) {
  return time >= times->low && time <= times->high;
}
/* The longest duration of what begins then: behind that no number is left for the end. */
static inline uint64_t import_times_left(uint64_t time) { return UINT64_MAX - time; }
static inline uint64_t import_times_ticks(const import_times *times, uint64_t time) {
  return time - times->shift;
}
static inline int64_t import_times_ns(uint64_t time) { return (int64_t)(time ^ UINT64_C(1) << 63); }

/* The first event that is not taken for its time; empty: all are. */
const char *import_times_outlier(const import_times *times);

#endif
