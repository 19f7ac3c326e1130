/* What exporters need of pools beside their events: who they are, and what was allocated when (only some events say it). */
#ifndef PROF_TRACE_ALLOCATED_H
#define PROF_TRACE_ALLOCATED_H

#include <stdbool.h>

#include "walk.h"

typedef struct prof_i_pool_view {
  uint32_t number, kind; /* kind: prof_memory_source */
  prof_device device;
  prof_i_text name;
  int64_t allocated_before; /* the start */
} prof_i_pool_view;

/* False: no such pool. */
bool prof_i_trace_pool(const prof_trace *trace, uint32_t number, prof_i_pool_view *view_out);

typedef struct prof_i_allocated_point {
  uint64_t ns;
  int64_t bytes;
  uint32_t pool; /* number */
} prof_i_allocated_point;

/* By pool, then by time. */
typedef struct prof_i_allocated {
  prof_i_allocated_point *points;
  uint32_t count, room;
} prof_i_allocated;

/* One walk over all threads; none where the trace has no pools. 0 or PROF_E_NO_MEMORY. */
int prof_i_allocated_init(prof_i_allocated *allocated, const prof_trace *trace);
void prof_i_allocated_fini(prof_i_allocated *allocated);

int64_t prof_i_allocated_at(const prof_i_allocated *allocated, const prof_i_pool_view *pool, uint64_t ns);

#endif
