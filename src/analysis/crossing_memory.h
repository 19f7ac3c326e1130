/* Memory of scopes of one thread that overlap others without nesting (lanes beside the thread's
   own). memory_totals.h knows lane 0 alone. A scope has in total what is allocated and freed in its
   time. What a moment has is the own memory of the scope that began last, as with self times.
   Caller's memory; one thread at a time. */
#ifndef PROF_ANALYSIS_CROSSING_MEMORY_H
#define PROF_ANALYSIS_CROSSING_MEMORY_H

#include "../format/parse.h"
#include "../reader/capture.h"
#include "group.h"
#include "memory_totals.h"

/* An allocation or a free. `before`: all of those before it, in total. */
typedef struct prof_i_charge {
  uint64_t at_ns, holder_start_ns;
  prof_i_group *group; /* of the innermost scope of lane 0 around it; NULL: it has no row */
  bool is_held;        /* there is one */
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

/* Begins a thread: looks whether it has such scopes. Returns the status. */
int prof_i_crossing_memory_go(prof_i_crossing_memory *crossing, const prof_trace *trace,
                              uint32_t thread);

/* False: no memory. */
bool prof_i_crossing_memory_charge(prof_i_crossing_memory *crossing, const prof_i_charge *charge);
bool prof_i_crossing_memory_scope(prof_i_crossing_memory *crossing, const prof_i_span *span,
                                  prof_i_group *group);

/* At the end of the thread: corrects the groups, and adds what no scope holds. */
void prof_i_crossing_memory_settle(prof_i_crossing_memory *crossing,
                                   prof_i_unscoped_memory *outside);

void prof_i_crossing_memory_fini(prof_i_crossing_memory *crossing);

/* A scope beside lane 0 that has moments of its thread: one that ended where it began. */
static inline bool prof_i_is_crossing(const prof_i_span *span) {
  return span->lane > 0 && span->kind == PROF_EVENT_SCOPE &&
         !(span->record && (prof_i_is_async(span->record) || prof_i_is_skipped(span->record)));
}

#endif
