/* For own_snapshot.c: what prof_trace_aggregate() does, of one name alone. */
#ifndef PROF_ANALYSIS_AGGREGATE_H
#define PROF_ANALYSIS_AGGREGATE_H

#include <prof/trace.h>

/* Of the ended scopes of that name and category (NULL: any) how long they took, each recursion by
   its outermost call, and how many there are. 0 or PROF_E_NO_MEMORY. */
int prof_i_aggregate_one(const prof_trace *trace, const char *name, const char *category,
                         uint64_t *total_ns_out, uint64_t *count_out);

#endif
