/* Aggregates: adds up the scopes of one or more traces, by what the options name. */
#include <prof/trace.h>
#include <stdlib.h>
#include <string.h>

#include "../base/error.h"
#include "../base/port.h"
#include "../base/process.h"
#include "aggregation.h"
#include "internal.h"

/* ---- options ---- */

/* A smaller struct is of an older caller. A larger one is accepted if all bytes beyond are zero. */
static int options_copy(const prof_aggregate_options *given, prof_aggregate_options *options) {
  *options = (prof_aggregate_options){.size = sizeof *options};
  if (given) {
    if (given->size < sizeof given->size || given->size > 4096)
      return prof_i_fail(PROF_E_INVALID,
                         "options.size is %zu; set it to sizeof(prof_aggregate_options)",
                         given->size);
    memcpy(options, given, given->size < sizeof *options ? given->size : sizeof *options);
    for (size_t i = sizeof *options; i < given->size; i++)
      if (((const char *)given)[i])
        return prof_i_fail(
            PROF_E_INVALID,
            "options.size is %zu, and byte %zu, which this library does not know, is set",
            given->size, i);
  }
  return PROF_OK;
}

static int options_check(const prof_aggregate_options *options) {
  const uint32_t groups = PROF_GROUP_NAME | PROF_GROUP_CATEGORY | PROF_GROUP_DEVICE |
                          PROF_GROUP_THREAD | PROF_GROUP_SHAPE | PROF_GROUP_STACK |
                          PROF_GROUP_KERNEL | PROF_GROUP_ANNOTATION | PROF_GROUP_SCOPES |
                          PROF_GROUP_FLOPS | PROF_GROUP_PROCESS;
  if (options->group & ~groups)
    return prof_i_fail(PROF_E_INVALID, "options.group is 0x%x; the known bits are 0x%x",
                       options->group, groups);
  if (options->level > 2)
    return prof_i_fail(PROF_E_INVALID, "options.level is %u; 0 (both), 1 and 2 are known",
                       options->level);
  if (options->sort > PROF_SORT_SKIPPED)
    return prof_i_fail(PROF_E_INVALID, "options.sort is %u; the largest is %d", options->sort,
                       PROF_SORT_SKIPPED);
  const uint32_t left_out =
      PROF_LEAVE_OUT_FUNCTIONS | PROF_LEAVE_OUT_MODULES | PROF_LEAVE_OUT_MEMORY;
  if (options->leave_out & ~left_out)
    return prof_i_fail(PROF_E_INVALID, "options.leave_out is 0x%x; the known bits are 0x%x",
                       options->leave_out, left_out);
  const uint32_t rules = PROF_RULE_OPEN_CALLS | PROF_RULE_OUTER_FUNCTIONS | PROF_RULE_ONLY_CHILDREN;
  if (options->rules & ~rules)
    return prof_i_fail(PROF_E_INVALID, "options.rules is 0x%x; the known bits are 0x%x",
                       options->rules, rules);
  if (options->time_unit % 3 || options->time_unit > 9)
    return prof_i_fail(PROF_E_INVALID, "options.time_unit is %u, not 0, 3, 6 or 9",
                       options->time_unit);
  if (options->to_ns && options->to_ns <= options->from_ns)
    return prof_i_fail(PROF_E_INVALID, "options.to_ns is %llu, not after from_ns, which is %llu",
                       (unsigned long long)options->to_ns, (unsigned long long)options->from_ns);
  return PROF_OK;
}

/* Copies `given`, which may be NULL, and sets what it leaves open. PROF_E_INVALID. */
static int aggregate_options_read(const prof_aggregate_options *given,
                                  prof_aggregate_options *options) {
  int status = options_copy(given, options);
  if (!status) status = options_check(options);
  if (status) return status;
  if ((options->group & ~(uint32_t)PROF_GROUP_KERNEL) == 0)
    options->group |= PROF_GROUP_NAME | PROF_GROUP_CATEGORY;
  if ((options->rules & PROF_RULE_ONLY_CHILDREN) && !(options->group & PROF_GROUP_NAME))
    return prof_i_fail(PROF_E_INVALID,
                       "options.rules is 0x%x, and options.group, 0x%x, is without names; "
                       "PROF_RULE_ONLY_CHILDREN needs PROF_GROUP_NAME",
                       options->rules, options->group);
  return PROF_OK;
}

/* Adds the cost of scopes inside of each group's calls, at the cost of the current trace. */
static void add_scope_costs(const prof_i_aggregation *a) {
  const double scope_ns = (double)a->trace->header.scope_cost_ps / 1e3;
  for (prof_i_group *of = NULL; (of = prof_i_aggregation_next_group(a, of)) != NULL;) {
    of->self_cost_ns += (double)(of->child_count - of->priced_child_count) * scope_ns;
    of->total_cost_ns += (double)(of->inner_count - of->priced_inner_count) * scope_ns;
    of->priced_child_count = of->child_count;
    of->priced_inner_count = of->inner_count;
  }
}

/* Resolves the filter for the trace. The options get its window, besides the caller's. */
static int use_filter(prof_i_aggregation *a) {
  if (!a->filter) return 0;
  const int status = prof_i_trace_filter_init(&a->filtered, a->trace, a->filter);
  if (status) return status;
  const prof_i_time_window *const window = &a->filtered.window;
  const uint64_t end_ns = window->to_ns == UINT64_MAX ? 0 : window->to_ns;
  a->options.from_ns = window->from_ns > a->from_ns ? window->from_ns : a->from_ns;
  a->options.to_ns = a->to_ns == 0 || (end_ns && end_ns < a->to_ns) ? end_ns : a->to_ns;
  return 0;
}

static bool takes_thread(const prof_i_aggregation *a) {
  return !a->filter || a->filtered.takes_thread[a->thread];
}

static void forget_trace(prof_i_aggregation *a) {
  if (a->filter) prof_i_trace_filter_fini(&a->filtered);
  free(a->by_site);
  a->by_site = NULL;
  prof_i_device_totals_fini(&a->on_device);
  prof_i_call_stacks_fini(&a->call_stacks);
  prof_i_aggregation_clear_edges(a);
}

static bool find_callers(prof_i_aggregation *a) {
  const bool with_scopes = a->options.group & PROF_GROUP_SCOPES;
  if (!prof_i_call_stacks_init(&a->call_stacks, a->trace, a->options.stack_frames, with_scopes))
    return false;
  return with_scopes ||
         prof_i_torch_find_forward_stacks(&a->call_stacks, a->options.from_ns, a->options.to_ns);
}

static int add_trace(prof_i_aggregation *a) {
  a->site_count = prof_i_trace_site_count(a->trace);
  a->by_site = calloc(a->site_count, sizeof *a->by_site);
  a->process = UINT32_MAX;
  const bool with_memory = !(a->options.leave_out & PROF_LEAVE_OUT_MEMORY);
  a->has_pools = with_memory && a->trace->catalog.pool_count != 0;
  a->has_only_children = (a->options.rules & PROF_RULE_ONLY_CHILDREN) != 0;
  a->has_first = a->options.sort == PROF_SORT_FIRST || (a->options.group & PROF_GROUP_ANNOTATION);
  int status = a->by_site ? use_filter(a) : PROF_E_NO_MEMORY;
  if (!status)
    status =
        prof_i_device_totals_init(&a->on_device, a->trace, a->options.group & PROF_GROUP_KERNEL);
  if (!status && (a->options.group & PROF_I_GROUP_STACKS) && !find_callers(a))
    status = PROF_E_NO_MEMORY;
  for (a->thread = 0; !status && a->thread < a->trace->thread_count; a->thread++) {
    /* its work is met where it was launched */
    if (prof_i_thread_is_stream(&a->trace->threads[a->thread]) || !takes_thread(a)) continue;
    if (a->options.group & PROF_I_GROUP_LINES)
      memset(a->by_site, 0, a->site_count * sizeof *a->by_site);
    status =
        prof_i_aggregation_set_process(a) ? prof_i_aggregation_add_thread(a) : PROF_E_NO_MEMORY;
  }
  if (!status) {
    prof_i_device_totals_begin(&a->on_device, UINT32_MAX);
    status = prof_i_aggregation_add_unscoped(a);
  }
  add_scope_costs(a);
  forget_trace(a);
  return status;
}

static int add_all_threads(prof_i_aggregation *a) {
  int status = 0;
  for (size_t i = 0; !status && i < a->trace_count; i++) {
    a->trace = a->traces[i];
    status = add_trace(a);
    a->threads_before += a->trace->thread_count;
    a->processes.of_trace = a->processes.count;
  }
  return status;
}

static void aggregation_fini(prof_i_aggregation *a) {
  prof_i_memory_totals_fini(&a->memory);
  prof_i_crossing_memory_fini(&a->crossing);
  prof_i_duration_stats_fini(&a->unwanted.stats);
  free(a->pending_call);
  free(a->processes.all);
  prof_i_aggregation_free_groups(a);
}

/* Whether all calls became part of the calls around them (PROF_RULE_ONLY_CHILDREN). */
static bool group_is_empty(const prof_i_group *g) {
  return g->stats.calls == 0 && g->open_count == 0 && g->skipped_count == 0 &&
         g->on_device.count == 0;
}

static int collect_groups(const prof_i_aggregation *a, prof_rows **rows_out) {
  uint64_t count = 0;
  prof_i_group **const groups = malloc((prof_i_aggregation_group_count(a) + 1) * sizeof *groups);
  if (!groups) return PROF_E_NO_MEMORY;
  for (prof_i_group *g = NULL; (g = prof_i_aggregation_next_group(a, g)) != NULL;)
    if (!group_is_empty(g)) groups[count++] = g;
  const int status = prof_i_rows_make(a->traces, a->trace_count, &a->options, groups, count,
                                      &a->outside, &a->processes, a->has_durations, rows_out);
  if (!status) (*rows_out)->all_self_ns = (*rows_out)->total_self_ns + a->unwanted.stats.self_ns;
  free(groups);
  return status;
}

static int check_arguments(const char *function, const prof_trace *const *traces, size_t count,
                           const void *out) {
  if (!traces || !out)
    return prof_i_fail(PROF_E_INVALID, "%s: %s is NULL", function, traces ? "rows_out" : "traces");
  if (count == 0) return prof_i_fail(PROF_E_INVALID, "%s: count is 0", function);
  for (size_t i = 0; i < count; i++)
    if (!traces[i]) return prof_i_fail(PROF_E_INVALID, "%s: traces[%zu] is NULL", function, i);
  return PROF_OK;
}

/* NULL: no memory. */
static prof_i_aggregation *make_aggregation(const prof_trace *const *traces, size_t count) {
  prof_i_aggregation *const a = aligned_alloc(64, (sizeof *a + 63) / 64 * 64);
  if (!a) return NULL;
  memset(a, 0, sizeof *a);
  a->traces = traces;
  a->trace_count = count;
  prof_i_duration_stats_init(&a->unwanted.stats);
  return a;
}

int prof_i_aggregate_one(const prof_trace *trace, const char *name, const char *category,
                         uint64_t *total_ns_out, uint64_t *count_out) {
  prof_i_aggregation *const a = make_aggregation(&trace, 1);
  if (!a) return PROF_E_NO_MEMORY;
  a->name = name;
  a->options.category = category;
  const int status = add_all_threads(a);
  *total_ns_out = *count_out = 0;
  for (prof_i_group *g = NULL; (g = prof_i_aggregation_next_group(a, g)) != NULL;) {
    *total_ns_out += prof_i_group_total(g);
    *count_out += g->stats.calls;
  }
  aggregation_fini(a);
  free(a);
  return status;
}

/* Adds `more` to the options. If it has a group and the caller named none, the default group is
   dropped. `given` may have a smaller size. */
static void add_more(prof_i_aggregation *a, const prof_aggregate_options *given,
                     const prof_i_aggregate_more *more) {
  prof_aggregate_options whole;
  options_copy(given, &whole);
  const uint32_t named = whole.group & ~(uint32_t)PROF_GROUP_KERNEL;
  if (more->group && !named) a->options.group &= ~(uint32_t)(PROF_GROUP_NAME | PROF_GROUP_CATEGORY);
  a->options.group |= more->group;
  a->arg_key = more->arg_key;
  a->filter = more->filter;
  a->has_durations = more->has_durations;
  a->from_ns = a->options.from_ns;
  a->to_ns = a->options.to_ns;
}

int prof_i_traces_aggregate_more(const prof_trace *const *traces, size_t count,
                                 const prof_aggregate_options *options,
                                 const prof_i_aggregate_more *more, prof_rows **rows_out) {
  int status = check_arguments("prof_traces_aggregate", traces, count, rows_out);
  if (status) return status;
  prof_i_aggregation *const a = make_aggregation(traces, count);
  if (!a) return prof_i_fail(PROF_E_NO_MEMORY, "no memory to aggregate");
  status = aggregate_options_read(options, &a->options);
  if (!status) {
    add_more(a, options, more);
    status = add_all_threads(a);
    if (!status) status = collect_groups(a, rows_out);
    if (status)
      prof_i_fail(status, "no memory to aggregate %llu events",
                  (unsigned long long)a->trace->event_count);
  }
  aggregation_fini(a);
  free(a);
  return status;
}

int prof_traces_aggregate(const prof_trace *const *traces, size_t count,
                          const prof_aggregate_options *options, prof_rows **rows_out) {
  PROF_I_DEFAULT_FP;
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  PROF_I_INSIDE;
  const prof_i_aggregate_more none = {0};
  return prof_i_traces_aggregate_more(traces, count, options, &none, rows_out);
}

int prof_trace_aggregate(const prof_trace *trace, const prof_aggregate_options *options,
                         prof_rows **rows_out) {
  if (!trace || !rows_out)
    return prof_i_fail(PROF_E_INVALID, "prof_trace_aggregate: %s is NULL",
                       trace ? "rows_out" : "trace");
  return prof_traces_aggregate(&trace, 1, options, rows_out);
}
