/* The state of an aggregate: options, groups, and the current walk. Each call of
   prof_traces_aggregate() has one. Four files use it:

   aggregate.c: options, traces, threads, the public calls.

   aggregate_group.c: finds the group of a scope.

   aggregate_thread.c: adds one thread's scopes to their groups.

   aggregate_plain.c: the same of a segment of plain scopes, where nothing else is needed. */
#ifndef PROF_ANALYSIS_AGGREGATION_H
#define PROF_ANALYSIS_AGGREGATION_H

#include <string.h>

#include "../reader/capture.h"
#include "../reader/internal.h"
#include "../reader/walker.h"
#include "call_stacks.h"
#include "filter.h"
#include "group.h"
#include "internal.h"

/* An entry of lane 0's stack, and the totals of its group when it was pushed. */
typedef struct prof_i_pending_call {
  prof_i_group *group; /* NULL: a step, or outside of the window */
  uint64_t total_ns, device_ns, inner_count, outer_count;
  int64_t host_bytes, device_bytes;
  bool is_step;
  bool has_call;  /* a vendor's */
  bool is_inside; /* it, or an ended scope around it, began in the window */
} prof_i_pending_call;

enum {
  PROF_I_SHAPE_WORDS = 1024,
  PROF_I_GROUP_STACKS = PROF_GROUP_STACK | PROF_GROUP_SCOPES,
  PROF_I_GROUP_SHAPES = PROF_GROUP_SHAPE | PROF_GROUP_FLOPS,
  PROF_I_GROUP_LINES = PROF_GROUP_THREAD | PROF_GROUP_PROCESS | PROF_I_GROUP_RANK
};

/* What a scope took beside its time. */
typedef struct prof_i_overlap {
  prof_i_scope_bytes memory;
  prof_i_device_time on_device;
} prof_i_overlap;

/* A complete call, with its group and the group's totals when the call was pushed. */
typedef struct prof_i_finished_call {
  prof_i_group *group; /* NULL: no call */
  prof_i_span span;
  prof_i_pending_call before;
  prof_i_overlap also;
} prof_i_finished_call;

/* Scopes of a site that were begun from one stack node (call_stacks.h): their group. */
typedef struct prof_i_edge {
  uint32_t stack_node, site;
  prof_i_group *group; /* NULL: the entry is free; the unwanted one: not wanted */
} prof_i_edge;

typedef struct prof_i_aggregation {
  const prof_trace *const *traces;
  size_t trace_count;
  prof_aggregate_options options;
  const char *name;                 /* only scopes of this name; NULL: all */
  const prof_i_filter *filter;      /* only scopes that pass; NULL: all */
  const char *arg_key;              /* of PROF_I_GROUP_ARG */
  uint64_t from_ns, to_ns;          /* as the caller gave them: a filter narrows the options' */
  struct prof_i_group_node *groups; /* of all traces: texts point into them */
  /* Of the trace that is being added up. */
  const prof_trace *trace;
  prof_i_trace_filter filtered;    /* if there is a filter */
  uint32_t thread, threads_before; /* those of earlier traces */
  uint32_t process;                /* of the thread, as in its key */
  prof_i_processes processes;
  uint32_t site_count;
  prof_i_group **by_site; /* NULL: not met yet; for one thread if lines are separate */
  bool has_pools;
  bool has_first;     /* the earliest begin of each group is needed */
  bool has_durations; /* rows keep them */
  prof_i_memory_totals memory;
  prof_i_crossing_memory crossing;
  prof_i_unscoped_memory outside; /* of no scope, of all threads */
  prof_i_device_totals on_device;
  bool has_launched;              /* the thread */
  prof_i_call_stacks call_stacks; /* if the options request stacks */
  uint32_t stack_node;            /* of the current span */
  prof_i_walker *walker;          /* of the thread */
  bool has_callers;
  prof_i_pending_call *pending_call; /* from index 1 of the stack on */
  uint32_t pending_count, pending_room;
  prof_i_edge *edges;             /* by a hash; for one thread if lines are separate */
  uint32_t edge_count, edge_room; /* the room is a power of two */
  /* PROF_RULE_ONLY_CHILDREN: the last call in the top of lane 0's stack, if it has the name of the
     top. It is added when the top gets another call. If the top gets no other, it becomes part of
     the top. */
  prof_i_finished_call only_child;
  bool has_only_children; /* the rule */
  /* All that the options leave out. It is added up like the others, because a test would cost as
     much. */
  _Alignas(64) prof_i_group unwanted;
  prof_event event;
  uint64_t shape[PROF_I_SHAPE_WORDS];
  char arg_room[PROF_I_ARG_VALUE_ROOM];
} prof_i_aggregation;

static inline bool prof_i_texts_differ(prof_i_text a, prof_i_text b) {
  return a.bytes != b.bytes || (a.data != b.data && memcmp(a.data, b.data, (size_t)a.bytes) != 0);
}

static inline bool prof_i_has_window(const prof_aggregate_options *options) {
  return (options->from_ns | options->to_ns) != 0;
}

static inline bool prof_i_is_in_window(const prof_aggregate_options *options, uint64_t start_ns) {
  return __builtin_expect(!prof_i_has_window(options), 1) ||
         (start_ns >= options->from_ns && (options->to_ns == 0 || start_ns < options->to_ns));
}

/* Whether the filter takes a scope of this time. Its call site is looked at with the group's. */
static inline bool prof_i_aggregation_passes_time(const prof_i_aggregation *a, uint64_t start_ns,
                                                  uint64_t duration_ns) {
  return !a->filter || prof_i_trace_filter_takes_time(&a->filtered, start_ns, duration_ns);
}

/* ---- pending calls ---- */

/* The totals of the group so far, of lane 0. Spans of side lanes enclose no others. Stored field by
   field, because a copy of the struct would wait for the stores that made it. */
static inline void prof_i_pending_call_note(prof_i_pending_call *to, prof_i_group *g,
                                            bool is_inside) {
  to->group = g;
  to->total_ns = g->stats.outer_ns;
  to->device_ns = g->on_device.total_ns;
  to->inner_count = g->inner_count;
  to->outer_count = g->outer_count;
  to->host_bytes = g->memory.host;
  to->device_bytes = g->memory.device;
  to->is_step = to->has_call = false;
  to->is_inside = is_inside;
}

static inline bool prof_i_aggregation_has_pending_room(prof_i_aggregation *a) {
  if (__builtin_expect(a->pending_count < a->pending_room, 1)) return true;
  return prof_i_make_room((void **)&a->pending_call, &a->pending_room, a->pending_count,
                          sizeof *a->pending_call);
}

/* Whether an ended scope that began in the window is pending. */
static inline bool prof_i_aggregation_is_inside(const prof_i_aggregation *a) {
  return a->pending_count && a->pending_call[a->pending_count - 1].is_inside;
}

/* ---- aggregate_group.c: functions that return false had no memory ---- */

/* Sets the process of a->thread. */
bool prof_i_aggregation_set_process(prof_i_aggregation *a);

/* Finds the group of a site that was not met yet. NULL: no memory. */
prof_i_group *prof_i_aggregation_add_site(prof_i_aggregation *a, uint32_t site);

/* Finds the group of a scope of that thread by all that its record says. *group_out is the
   unwanted one if the options leave the scope out. */
bool prof_i_aggregation_find_detailed(prof_i_aggregation *a, uint32_t thread,
                                      const prof_i_span *span, prof_i_group **group_out);

/* Finds the group of a scope that has nothing beyond its site, by its stack node and site. */
bool prof_i_aggregation_find_by_edge(prof_i_aggregation *a, const prof_i_span *span,
                                     prof_i_group **group_out);
void prof_i_aggregation_clear_edges(prof_i_aggregation *a);

/* The group after `group`; the first one if it is NULL. NULL: there are no more. */
prof_i_group *prof_i_aggregation_next_group(const prof_i_aggregation *a, prof_i_group *group);
uint64_t prof_i_aggregation_group_count(const prof_i_aggregation *a);
void prof_i_aggregation_free_groups(prof_i_aggregation *a);

static inline prof_i_group *prof_i_aggregation_site_group(prof_i_aggregation *a, uint32_t site) {
  prof_i_group *const g = a->by_site[site];
  return __builtin_expect(g != NULL, 1) ? g : prof_i_aggregation_add_site(a, site);
}

/* ---- aggregate_thread.c: 0 or PROF_E_NO_MEMORY ---- */

/* Adds up all scopes of a->thread. */
int prof_i_aggregation_add_thread(prof_i_aggregation *a);

/* Adds the device time that no scope of its thread encloses: a row of its own name has it. */
int prof_i_aggregation_add_unscoped(prof_i_aggregation *a);

/* ---- aggregate_plain.c ---- */

/* How the thread's walker adds a segment of plain scopes. */
prof_i_walk_segment prof_i_aggregation_plain_walk(const prof_i_aggregation *a);

#endif
