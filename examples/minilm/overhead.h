/* What recording costs this runtime, found in two ways that can contradict each other.
     The estimate:    Records in a unit of work (scopes, pieces of memory, queried samples) x the
                      measured cost of such a one / the unit's time without recording.
     The experiment:  The same unit at levels 0, 1 and 2 in turn, and the mean of the paired
                      differences with its 95 % confidence interval (Student's t).
   Times are CPU time of the calling thread, so other programs on the machine do not count. Nothing
   else may record meanwhile: the capture is cleared. SPDX-License-Identifier: MIT */
#ifndef MINILM_OVERHEAD_H
#define MINILM_OVERHEAD_H

#include "batch.h"
#include "model.h"
#include "pool.h"

enum { OVERHEAD_LEVELS = 2 };

typedef struct overhead_level {
  uint64_t record_count; /* in one unit of work */
  double record_ns;      /* mean cost of one, of the kinds that the unit has */
  double estimate;       /* of the unit's time; these three as fractions: 0.01 is 1 % */
  double difference;     /* mean of the measured ones */
  double half_width;     /* of its interval */
} overhead_level;

typedef struct overhead {
  int64_t text_count; /* of the unit */
  double unit_ns;     /* mean, at level 0 */
  /* prof's own figure for a scope with neither name nor arguments; 0: not measured */
  double plain_ns;
  int round_count;
  overhead_level levels[OVERHEAD_LEVELS]; /* [0] is level 1 */
} overhead;

/* Goes on until both intervals are within +-0.5 %, or so many seconds have passed. */
int overhead_measure(const model *m, pool *memory, const batches *all, double budget_s,
                     overhead *result_out, failure *why);

void overhead_print(const overhead *o);

#endif
