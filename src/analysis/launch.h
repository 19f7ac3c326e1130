/* Work of devices, by launching thread and launch time: a walk of the thread meets it where it was
   launched, and adds up the device time of scopes. The memory is the caller's. One thread at a
   time. */
#ifndef PROF_ANALYSIS_LAUNCH_H
#define PROF_ANALYSIS_LAUNCH_H

#include <stdbool.h>

#include "../reader/internal.h"

/* A scope of a stream. */
typedef struct prof_i_launch {
  uint64_t at_ns;                          /* when it was launched */
  uint64_t start_ns, duration_ns, self_ns; /* self: without GPU scopes inside */
  const uint64_t *record;
  uint32_t site;
  uint32_t thread; /* that launched it; UINT32_MAX: not in the capture */
  uint32_t stream; /* the thread of the capture that is its stream */
  uint32_t lane;   /* of the stream */
  /* prof_backend_kind of a record, launched anywhere in a scope. 0: a GPU scope, whose host scope
     begins at at_ns */
  uint32_t kind;
  /* marks where a record without a thread was launched: its time is in that GPU scope */
  bool is_shadow;
} prof_i_launch;

typedef struct prof_i_launches {
  prof_i_launch *items; /* by thread, at_ns, start_ns, address of the record */
  uint32_t count, room;
  bool *has_gpu_scopes; /* by thread of the capture: scopes were put on that stream */
} prof_i_launches;

/* Finds all of a trace. are_alone: launches with a kind get no thread, and a shadow in the thread
   that launched them. 0 or PROF_E_NO_MEMORY. */
int prof_i_launches_find(const prof_trace *trace, prof_i_launches *launches_out, bool are_alone);
void prof_i_launches_fini(prof_i_launches *launches);

/* The launches of a thread: items from *first_out on. Returns their count. */
uint32_t prof_i_launches_of_thread(const prof_i_launches *launches, uint32_t thread,
                                   uint32_t *first_out);

/* ---- device time of scopes ---- */

/* It is added up during a walk of the launching thread. The walk emits inner scopes before outer
   ones. So a scope's own launches are those that no inner scope has taken. */

/* total: launched while the scope was open. self: launched by it and by no inner scope. Each ns of
   a stream counts once. The time of an inner GPU scope is not the outer one's. The time of a record
   is not that of the GPU scope in which it was launched. */
typedef struct prof_i_device_time {
  uint64_t total_ns, self_ns, count;
  uint64_t each_ns; /* of every call; total_ns lacks the inner calls of a recursion */
} prof_i_device_time;

/* Time of a stream's records that were launched at this depth or deeper, and that was not yet taken
   off a GPU scope. */
typedef struct prof_i_unattributed_time {
  uint64_t ns;
  uint32_t stream, depth;
} prof_i_unattributed_time;

typedef struct prof_i_device_totals {
  const prof_trace *trace;
  prof_i_launches launches; /* of the trace */
  uint32_t first, next;     /* of the thread: from first on; from next on they have been met */
  uint32_t *collected;      /* met, and not taken by a scope; the earliest last */
  uint32_t collected_count;
  uint64_t *pending; /* by depth */
  uint32_t room;
  prof_i_unattributed_time *unattributed; /* the deepest last */
  uint32_t unattributed_count, unattributed_room;
} prof_i_device_totals;

/* are_alone: kernels and copies belong to no scope. 0 or PROF_E_NO_MEMORY. */
int prof_i_device_totals_init(prof_i_device_totals *sums, const prof_trace *trace, bool are_alone);
void prof_i_device_totals_fini(prof_i_device_totals *sums);

/* The next thread. False: it launched nothing. */
bool prof_i_device_totals_begin(prof_i_device_totals *sums, uint32_t thread);

/* The device time of a scope that ended. It becomes part of the scope around it. False: no
   memory. */
bool prof_i_device_totals_end_scope(prof_i_device_totals *sums, const prof_i_span *span,
                                    prof_i_device_time *time_out);

/* A step is not a scope: what it collected belongs to the scope around it. */
void prof_i_device_totals_end_step(prof_i_device_totals *sums, const prof_i_span *span);

/* The next launch that no scope of its thread encloses. NULL: no more. Called at the end of each
   thread, and after begin(UINT32_MAX), for launches whose thread is not in the capture. */
const prof_i_launch *prof_i_device_totals_unscoped(prof_i_device_totals *sums);

static inline void prof_i_device_time_add(prof_i_device_time *to, const prof_i_device_time *from) {
  to->total_ns += from->total_ns;
  to->self_ns += from->self_ns;
  to->count += from->count;
  to->each_ns += from->each_ns;
}

#endif
