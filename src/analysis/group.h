/* One group of scopes while it is added up, with its memory. It becomes a row. Filled by
   aggregate_thread.c and aggregate_plain.c, read by rows.c. crossing_memory.c adds the memory of
   scopes that overlap. */
#ifndef PROF_ANALYSIS_GROUP_H
#define PROF_ANALYSIS_GROUP_H

#include <stdbool.h>

#include "../format/parse.h"
#include "../reader/capture.h"
#include "launch.h"
#include "statistics.h"

/* ---- memory of scopes ---- */

/* Bytes that scopes allocate, less those that they free, counted as in torch.profiler. They are
   added up during a walk. The walk emits an event before the scope around it, and inner scopes
   before outer ones. So sums are kept by depth until the enclosing scope ends. aggregate_thread.c
   adds up. */

/* Bytes; device: of all devices but the host. */
typedef struct prof_i_scope_bytes {
  int64_t host, self_host, device, self_device;
} prof_i_scope_bytes;

/* Allocations and frees that no scope encloses. */
typedef struct prof_i_unscoped_memory {
  uint64_t count, first_ns; /* first_ns: of the earliest one */
  int64_t host, device;
} prof_i_unscoped_memory;

/* What is at one depth: its own bytes (self) and all of them; the count and the time of its own. */
typedef struct prof_i_pending_memory {
  prof_i_scope_bytes scope_bytes;
  uint64_t count, first_ns;
} prof_i_pending_memory;

typedef struct prof_i_memory_totals {
  prof_i_pending_memory *pending; /* by depth */
  uint32_t room;
} prof_i_memory_totals;

void prof_i_memory_totals_fini(prof_i_memory_totals *sums);

/* A damaged capture may have any values. Sums wrap around, without undefined behaviour. */
static inline int64_t prof_i_bytes_add_wrapping(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a + (uint64_t)b);
}

static inline void prof_i_scope_bytes_add(prof_i_scope_bytes *to, const prof_i_scope_bytes *from) {
  to->host = prof_i_bytes_add_wrapping(to->host, from->host);
  to->self_host = prof_i_bytes_add_wrapping(to->self_host, from->self_host);
  to->device = prof_i_bytes_add_wrapping(to->device, from->device);
  to->self_device = prof_i_bytes_add_wrapping(to->self_device, from->self_device);
}

/* ---- groups ---- */

/* file without bytes: unknown. */
typedef struct prof_i_source_location {
  prof_i_text file;
  uint32_t line;
} prof_i_source_location;

/* The key of a group. Parts that the options do not name are empty. Texts are in the capture, the
   shape belongs to the group, and a stack to the first group that has it. A shape is words of
   prof_i_shape_words(): only rows get its text, because that takes longer than all else. */
typedef struct prof_i_group_key {
  /* shape: with PROF_I_GROUP_ARG, the argument's value as text. A separate member would make each
     group larger */
  prof_i_text name, category, shape, stack;
  prof_device device;
  uint32_t thread;
  uint32_t process; /* index in prof_i_processes. UINT32_MAX: not named */
  /* Of functions that the compiler or the interpreter named. With --by line, of all call sites. */
  prof_i_source_location location;
} prof_i_group_key;

/* The processes of the threads, trace after trace. */
typedef struct prof_i_processes {
  prof_i_process_record *all;
  uint32_t count, room;
  uint32_t of_trace; /* the first of the current trace */
} prof_i_processes;

/* Source locations of a group. */
typedef struct prof_i_group_locations {
  prof_i_source_location first; /* of the lowest site */
  uint32_t site;                /* of `first`. 0: none */
  /* the last one added; small, because groups are many */
  uint32_t last_site : 31, has_more : 1;
} prof_i_group_locations;

typedef struct prof_i_group {
  prof_i_duration_stats stats; /* of ended scopes */
  prof_i_group_key key;
  uint64_t child_count; /* scopes directly inside of its calls */
  uint64_t inner_count; /* scopes inside of the calls that outer_ns has */
  uint64_t priced_child_count, priced_inner_count; /* of them, those in the next two */
  double self_cost_ns, total_cost_ns;              /* their cost, by the scope cost of each trace */
  uint64_t overlap_ns, overlap_device_ns;          /* of calls that overlap, or are asynchronous */
  uint64_t open_count, open_ns; /* scopes that have not ended, and the longest time so far */
  prof_i_scope_bytes memory;
  prof_i_device_time on_device;
  uint64_t first_ns; /* its earliest begin, if it is needed */
  uint64_t async_count;
  uint64_t outer_count; /* ended calls in no other of this group: for PROF_GROUP_FLOPS */
  prof_i_text category; /* of its earliest call, if the key has no category; else empty */
  prof_i_group_locations locations;
  /* Scopes that a jump left are in no other number. Small, because groups are many. */
  uint64_t skipped_count : 40, level : 8;
  uint64_t record_scope : 8;  /* at::RecordScope of its earliest call, if that is an operator */
  uint64_t has_own_stack : 1; /* the group frees its stack */
} prof_i_group;

static inline uint64_t prof_i_group_total(const prof_i_group *group) {
  return group->stats.outer_ns + group->overlap_ns;
}
static inline uint64_t prof_i_group_device_total(const prof_i_group *group) {
  return group->on_device.total_ns + group->overlap_device_ns;
}

/* aggregate_group.c: where a group keeps the durations of work of devices that no scope launched.
   NULL there: none. Only if durations are kept: groups are many, and have no room for it else. */
prof_i_duration_stats **prof_i_group_unscoped(prof_i_group *group);

/* ---- crossing_memory.c ---- */

/* Memory of scopes that overlap others of their thread without nesting: those of side lanes.
   prof_i_memory_totals has only lane 0. The total of a scope is what is allocated and freed during
   it. Own memory is that of the scope that began last, as with self times. The memory is the
   caller's. One thread at a time. */

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

/* ---- rows.c ---- */

/* The groups as rows, sorted and cut as the options say. Sorts the array of groups. 0 or
   PROF_E_NO_MEMORY. has_durations: the rows keep them, for prof_i_rows_durations(). */
int prof_i_rows_make(const prof_trace *const *traces, size_t trace_count,
                     const prof_aggregate_options *options, prof_i_group **groups, uint64_t count,
                     const prof_i_unscoped_memory *outside, const prof_i_processes *processes,
                     bool has_durations, prof_rows **rows_out);

#endif
