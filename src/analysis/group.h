/* One group of scopes while it is added up: what becomes a row. Filled by aggregate.c, read by
   rows.c. */
#ifndef PROF_ANALYSIS_GROUP_H
#define PROF_ANALYSIS_GROUP_H

#include "../reader/walk.h"
#include "device_totals.h"
#include "duration_stats.h"
#include "memory_totals.h"

/* A place in the source. No bytes: none. */
typedef struct prof_i_source_location {
  prof_i_text file;
  uint32_t line;
} prof_i_source_location;

/* What tells one group from another. What takes no part is empty. Texts are the capture's,
   shapes are the row's own, and a stack is the first one's that has its text. A shape is words
   of shape.h's: its text is made of rows alone, for an operator's takes longer than all else
   about it. */
typedef struct prof_i_group_key {
  prof_i_text name, category, shape, stack;
  prof_device device;
  uint32_t thread;
  uint32_t process;                /* its place in prof_i_processes. UINT32_MAX: it takes no part */
  prof_i_source_location location; /* of a function that the compiler or the interpreter named */
} prof_i_group_key;

/* Those that threads of the traces are of, each trace's behind those before it. */
typedef struct prof_i_processes {
  prof_i_process_record *all;
  uint32_t count, room;
  uint32_t of_trace; /* the first of the trace at hand */
} prof_i_processes;

/* Where calls of a group were begun. */
typedef struct prof_i_group_locations {
  prof_i_source_location first; /* of the lowest site */
  uint32_t site;                /* of `first`. 0: none */
  /* the one looked at last; groups are many, so it is small */
  uint32_t last_site : 31, has_more : 1;
} prof_i_group_locations;

typedef struct prof_i_group {
  prof_i_duration_stats stats; /* of ended scopes */
  prof_i_group_key key;
  uint64_t child_count, inner_count; /* scopes directly inside of its calls; of what outer_ns has */
  uint64_t priced_child_count, priced_inner_count; /* of them, those in the two below */
  double self_cost_ns, total_cost_ns;              /* what they cost, each at its trace's cost */
  uint64_t overlap_ns,
      overlap_device_ns;        /* of calls that overlap with others, or are asynchronous */
  uint64_t open_count, open_ns; /* scopes that have not ended, and the longest time so far */
  prof_i_scope_bytes memory;
  prof_i_device_time on_device;
  uint64_t first_ns; /* its earliest begin, where somebody asks */
  uint64_t async_count;
  uint64_t outer_count; /* of ended ones, those in no other of this group: of PROF_GROUP_FLOPS */
  prof_i_text category; /* of its earliest call, where categories take no part. Empty otherwise */
  prof_i_group_locations locations;
  /* Scopes that a jump left: in no other number. Groups are many, so these share a word. */
  uint64_t skipped_count : 40, level : 8;
  uint64_t record_scope : 8;  /* at::RecordScope of its earliest call, where it is an operator's */
  uint64_t has_own_stack : 1; /* to be freed with it */
} prof_i_group;

static inline uint64_t prof_i_group_total(const prof_i_group *group) {
  return group->stats.outer_ns + group->overlap_ns;
}
static inline uint64_t prof_i_group_device_total(const prof_i_group *group) {
  return group->on_device.total_ns + group->overlap_device_ns;
}

/* rows.c: the groups as rows, sorted and cut as the options say. Groups are moved, not changed.
   0 or PROF_E_NO_MEMORY. */
int prof_i_rows_make(const prof_trace *const *traces, size_t trace_count,
                     const prof_aggregate_options *options, prof_i_group **groups, uint64_t count,
                     const prof_i_unscoped_memory *outside, const prof_i_processes *processes,
                     prof_rows **rows_out);

#endif
