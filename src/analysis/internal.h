/* Calls of src/analysis for prof's own use: the public ones without their guard. They are for
   callers that are inside of prof already, as in ../reader/internal.h. */
#ifndef PROF_ANALYSIS_INTERNAL_H
#define PROF_ANALYSIS_INTERNAL_H

#include <prof/memory.h>
#include <prof/trace.h>
#include <stdbool.h>

/* Group bits that prof_group does not have. Scopes without a line, or without the argument, have no
   row. With PROF_GROUP_PROCESS, the rank makes no more rows: a process has one. */
enum {
  PROF_I_GROUP_RANK =
      1 << 28, /* the rank of the process, in all captures; scopes of none together */
  PROF_I_GROUP_LINE = 1 << 29, /* the file and line of the call site */
  PROF_I_GROUP_ARG = 1 << 30,  /* the value of an argument; not with shapes */
  PROF_I_GROUP_FURTHER = PROF_I_GROUP_RANK | PROF_I_GROUP_LINE | PROF_I_GROUP_ARG
};

/* Keys of rows that a difference or a page shows, each one bit: all groups but kernel, whose rows
   are grouped by name and category. */
enum { PROF_I_GROUP_KEYS_MAX = 11 };

struct prof_i_filter;

/* Options that prof_aggregate_options does not have. The caller initializes it with zeros. */
typedef struct prof_i_aggregate_more {
  /* Counts only the scopes that pass; NULL: all. Times count from each capture's start. A share is
     relative to all scopes in the threads and times of the filter. */
  const struct prof_i_filter *filter;
  uint32_t group;      /* further bits */
  const char *arg_key; /* of PROF_I_GROUP_ARG */
  bool has_durations;  /* keeps what prof_i_rows_durations() returns */
} prof_i_aggregate_more;

/* Calls whose durations are in one bucket of statistics.h: 8 for each doubling. */
typedef struct prof_i_duration_calls {
  uint64_t calls;
  uint32_t bucket;
} prof_i_duration_calls;

int prof_i_traces_aggregate_more(const prof_trace *const *traces, size_t count,
                                 const prof_aggregate_options *options,
                                 const prof_i_aggregate_more *more, prof_rows **rows_out);

/* With PROF_I_GROUP_ARG: the argument's value of a row. Otherwise "". */
const char *prof_i_rows_arg(const prof_rows *rows, uint64_t index);

/* With has_durations: the durations of a row's calls, the shortest first, without empty buckets. If
   the row has no calls: of its work on devices that no scope launched. The rows own them. */
const prof_i_duration_calls *prof_i_rows_durations(const prof_rows *rows, uint64_t index,
                                                   size_t *count_out);
void prof_i_rows_destroy(prof_rows *rows);

/* Aggregates the ended scopes of one name and category (NULL: any). A recursion takes the time of
   its outermost call. 0 or PROF_E_NO_MEMORY. */
int prof_i_aggregate_one(const prof_trace *trace, const char *name, const char *category,
                         uint64_t *total_ns_out, uint64_t *count_out);

int prof_i_trace_device_text(const prof_trace *trace, uint32_t index, char **text_out);

int prof_i_memory_of(const prof_trace *trace, prof_memory **memory_out);
/* Limits the lists of live allocations to those that pass the filter. It compares the thread, the
   process, the time, the name of the innermost scope, and the pool's device. Peaks and counts still
   include all allocations. Must be called at most once. PROF_OK, or PROF_E_NO_MEMORY with its text
   set. */
int prof_i_memory_set_filter(prof_memory *memory, const struct prof_i_filter *filter);
int prof_i_memory_live(const prof_memory *memory, uint32_t index, prof_memory_moment moment,
                       uint64_t at_ns, prof_memory_by by, prof_memory_rows **rows_out);
int prof_i_memory_series(const prof_memory *memory, uint32_t index, uint32_t count,
                         int64_t *used_bytes_out, int64_t *allocated_bytes_out);

/* ---- single_scopes.c ---- */

/* Single scopes of one or several traces that pass a filter: in the order of time, or those with
   the most time. Called by the command `prof events`. One thread at a time. */

typedef enum prof_i_scopes_order {
  PROF_I_SCOPES_BY_START = 0,
  PROF_I_SCOPES_BY_DURATION = 1,
  PROF_I_SCOPES_BY_SELF = 2
} prof_i_scopes_order;

typedef struct prof_i_scopes_options {
  prof_i_scopes_order order;
  uint64_t limit;                     /* at most so many; UINT64_MAX: all */
  const struct prof_i_filter *filter; /* NULL: all scopes */
} prof_i_scopes_options;

typedef struct prof_i_scopes_result {
  uint64_t given_count;  /* to the visitor */
  uint64_t passed_count; /* the filter, as far as the scopes were read */
  bool is_whole;         /* all scopes were read: not by start after the limit */
} prof_i_scopes_result;

/* A trace and its place on the common time line, to which --from and --to apply. */
typedef struct prof_i_placed_trace {
  const prof_trace *trace;
  uint64_t offset_ns; /* of its start */
} prof_i_placed_trace;

/* Gets ended and open scopes, of the host and of devices, expanded. Times are from the start of the
   trace with that index. Non-zero stops. */
typedef int (*prof_i_scope_visit)(void *user, uint32_t trace, const prof_event *event);

/* By start: memory is constant, a part of each thread. Else it is that of `limit` scopes, and all
   scopes are read before the first visit. Equal scopes are in the order of their start, then of
   their trace and thread. Returns PROF_OK, the visitor's value, or a negative error whose text is
   set. */
int prof_i_traces_scopes(const prof_i_placed_trace *traces, uint32_t trace_count,
                         const prof_i_scopes_options *options, prof_i_scope_visit visit, void *user,
                         prof_i_scopes_result *result_out);

#endif
