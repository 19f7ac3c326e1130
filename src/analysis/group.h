/* One group of scopes while it is added up. It becomes a row. Filled by aggregate_thread.c and
   aggregate_plain.c, read by rows.c. */
#ifndef PROF_ANALYSIS_GROUP_H
#define PROF_ANALYSIS_GROUP_H

#include "../reader/walk.h"
#include "launch.h"
#include "memory_totals.h"
#include "statistics.h"

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

/* rows.c: the groups as rows, sorted and cut as the options say. Sorts the array of groups. 0 or
   PROF_E_NO_MEMORY. has_durations: the rows keep them, for prof_i_rows_durations(). */
int prof_i_rows_make(const prof_trace *const *traces, size_t trace_count,
                     const prof_aggregate_options *options, prof_i_group **groups, uint64_t count,
                     const prof_i_unscoped_memory *outside, const prof_i_processes *processes,
                     bool has_durations, prof_rows **rows_out);

#endif
