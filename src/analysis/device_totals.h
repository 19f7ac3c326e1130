/* What scopes cost their devices: added up while the launching thread is walked. The walk goes
   backwards, so a scope comes after what it holds, and before what holds it: what was launched in
   it and in nothing deeper is its own. Caller's memory; one thread at a time. */
#ifndef PROF_ANALYSIS_DEVICE_SUMS_H
#define PROF_ANALYSIS_DEVICE_SUMS_H

#include <stdbool.h>

#include "launch.h"

/* total: what was launched while the scope was open; self: by it and nothing deeper. Each ns of a
   stream counts once: of scopes in each other, the inner one's is not the outer one's, and what
   records tell of it is not the side's of the scope in which they were launched. */
typedef struct prof_i_device_time {
  uint64_t total_ns, self_ns, count;
  uint64_t each_ns; /* of each call, where an inner one of a recursion is in no total */
} prof_i_device_time;

/* Of a stream's time so much was told by records that were launched in scopes of that depth, or
   deeper, and that no side has had taken off. */
typedef struct prof_i_unattributed_time {
  uint64_t ns;
  uint32_t stream, depth;
} prof_i_unattributed_time;

typedef struct prof_i_device_totals {
  const prof_trace *trace;
  prof_i_launches launches; /* of the trace */
  uint32_t first, next;     /* of the thread's: from first on; those from next on have been met */
  uint32_t *collected;      /* those met and not taken, the earliest last */
  uint32_t collected_count;
  uint64_t *pending; /* by depth */
  uint32_t room;
  prof_i_unattributed_time *unattributed; /* the deepest last */
  uint32_t unattributed_count, unattributed_room;
} prof_i_device_totals;

/* Of that trace. are_alone: kernels and copies by themselves are no scope's, wherever they were
   launched. 0 or PROF_E_NO_MEMORY. */
int prof_i_device_totals_init(prof_i_device_totals *sums, const prof_trace *trace, bool are_alone);
void prof_i_device_totals_fini(prof_i_device_totals *sums);

/* The next thread. False: it launched nothing. */
bool prof_i_device_totals_begin(prof_i_device_totals *sums, uint32_t thread);

/* What a scope comes to; it is then part of what stands around it. False: no memory. */
bool prof_i_device_totals_end_scope(prof_i_device_totals *sums, const prof_i_span *span,
                                    prof_i_device_time *time_out);

/* A step is no scope: what waits in it is around it. */
void prof_i_device_totals_end_step(prof_i_device_totals *sums, const prof_i_span *span);

/* One more that no scope of its thread stood around, or whose thread is not in the capture; NULL:
   that was all. Once the threads are walked: at the end of each with `go`, then with UINT32_MAX. */
const prof_i_launch *prof_i_device_totals_unscoped(prof_i_device_totals *sums);

static inline void prof_i_device_time_add(prof_i_device_time *to, const prof_i_device_time *from) {
  to->total_ns += from->total_ns;
  to->self_ns += from->self_ns;
  to->count += from->count;
  to->each_ns += from->each_ns;
}

#endif
