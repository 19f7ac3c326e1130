/* Memory of scopes that overlap others of their thread without nesting: those of side lanes.
   memory_totals.h has only lane 0. The total of a scope is what is allocated and freed during it.
   Own memory is that of the scope that began last, as with self times. The memory is the caller's.
   One thread at a time. */
#ifndef PROF_ANALYSIS_CROSSING_MEMORY_H
#define PROF_ANALYSIS_CROSSING_MEMORY_H

#include "../format/parse.h"
#include "../reader/capture.h"
#include "group.h"
#include "memory_totals.h"

/* An allocation or a free. `before`: the sum of all earlier ones. */
typedef struct prof_i_charge {
  uint64_t at_ns, holder_start_ns;
  prof_i_group *group; /* of the innermost scope of lane 0 around it; NULL: it has no row */
  bool is_held;        /* a scope of lane 0 is around it */
  prof_i_scope_bytes own, before;
} prof_i_charge;

typedef struct prof_i_crossing_scope {
  uint64_t start_ns, end_ns;
  prof_i_group *group;
} prof_i_crossing_scope;

typedef struct prof_i_crossing_memory {
  bool is_on; /* the thread has such scopes */
  prof_i_charge *charges;
  prof_i_crossing_scope *scopes;
  uint32_t charge_count, charge_room, scope_count, scope_room;
} prof_i_crossing_memory;

/* Begins a thread, and finds out whether it has such scopes. Returns the status of the walk. */
int prof_i_crossing_memory_begin(prof_i_crossing_memory *crossing, const prof_trace *trace,
                                 uint32_t thread);

/* False: no memory. */
bool prof_i_crossing_memory_charge(prof_i_crossing_memory *crossing, const prof_i_charge *charge);
bool prof_i_crossing_memory_scope(prof_i_crossing_memory *crossing, const prof_i_span *span,
                                  prof_i_group *group);

/* The call of group `from` that began at start_ns is part of a call of group `to`, or of NULL. */
void prof_i_crossing_memory_merge(prof_i_crossing_memory *crossing, const prof_i_group *from,
                                  uint64_t start_ns, prof_i_group *to);

/* Ends a thread: corrects the groups, and adds charges that no scope encloses. */
void prof_i_crossing_memory_settle(prof_i_crossing_memory *crossing,
                                   prof_i_unscoped_memory *outside);

void prof_i_crossing_memory_fini(prof_i_crossing_memory *crossing);

/* A scope of a side lane that shares its thread's time: one that ended on the thread it began
   on. */
static inline bool prof_i_is_crossing(const prof_i_span *span) {
  return span->lane > 0 && span->kind == PROF_EVENT_SCOPE &&
         !(span->record && (prof_i_is_async(span->record) || prof_i_is_skipped(span->record)));
}

#endif
