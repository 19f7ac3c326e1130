/* Single scopes of one or several traces that pass a filter: in the order of time, or those with
   the most time. Called by the command `prof events`. One thread at a time. */
#ifndef PROF_ANALYSIS_SINGLE_SCOPES_H
#define PROF_ANALYSIS_SINGLE_SCOPES_H

#include "filter.h"

typedef enum prof_i_scopes_order {
  PROF_I_SCOPES_BY_START = 0,
  PROF_I_SCOPES_BY_DURATION = 1,
  PROF_I_SCOPES_BY_SELF = 2
} prof_i_scopes_order;

typedef struct prof_i_scopes_options {
  prof_i_scopes_order order;
  uint64_t limit;              /* at most so many; UINT64_MAX: all */
  const prof_i_filter *filter; /* NULL: all scopes */
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
