/* Adds one thread's scopes to their groups. A total counts only the outermost call of a recursion.
   The walk (walk.c) emits inner scopes first, and enclosing ones are pending on lane 0's stack. So
   the totals of a group are kept when a call of it is pushed. When that call is emitted, the total
   becomes the kept one plus the call, because all else that the group got was inside of it. */
#include <prof/memory.h>
#include <stdlib.h>
#include <string.h>

#include "../base/fault.h"
#include "../base/port.h"
#include "../format/layout.h"
#include "../format/parse.h"
#include "aggregation.h"
#include "internal.h"
#include "memory.h"

/* ---- memory of scopes ---- */

void prof_i_memory_totals_fini(prof_i_memory_totals *sums) { free(sums->pending); }

/* Before the next thread. */
static void memory_totals_clear(prof_i_memory_totals *sums) {
  if (sums->room) memset(sums->pending, 0, sums->room * sizeof *sums->pending);
}

static void add_own_bytes(prof_i_pending_memory *to, uint64_t count, uint64_t first_ns) {
  if (count && (!to->count || first_ns < to->first_ns)) to->first_ns = first_ns;
  to->count += count;
}

/* An alloc or a free of a pool. False: another span of memory. */
static bool memory_totals_read(const prof_trace *trace, const prof_i_span *span,
                               prof_i_scope_bytes *own_out) {
  prof_i_long_record record = {0};
  if (!prof_i_event_read(span->record, &record)) return false;
  const prof_i_memory_record memory = prof_i_memory_read(span->record, &record);
  const prof_i_pool_record *const pool = prof_i_catalog_pool(&trace->catalog, memory.pool);
  if (!pool || memory.verb > PROF_I_VERB_FREE) return false;
  const int64_t given = prof_i_memory_bytes_bounded(memory.bytes),
                bytes = memory.verb == PROF_I_VERB_ALLOC ? given : -given;
  const bool is_host = pool->device.type == PROF_DEVICE_CPU;
  *own_out = (prof_i_scope_bytes){.host = is_host ? bytes : 0,
                                  .self_host = is_host ? bytes : 0,
                                  .device = is_host ? 0 : bytes,
                                  .self_device = is_host ? 0 : bytes};
  return true;
}

/* Adds what memory_totals_read() returned. False: no memory. */
static bool memory_totals_add(prof_i_memory_totals *sums, const prof_i_span *span,
                              const prof_i_scope_bytes *own) {
  if (!prof_i_make_room_at_index((void **)&sums->pending, &sums->room, span->depth,
                                 sizeof *sums->pending))
    return false;
  prof_i_pending_memory *const to = &sums->pending[span->depth];
  prof_i_scope_bytes_add(&to->scope_bytes, own);
  add_own_bytes(to, 1, span->start_ns);
  return true;
}

/* The bytes of a scope of lane 0 that ended. They become part of the scope around it. */
static prof_i_scope_bytes memory_totals_end_scope(prof_i_memory_totals *sums,
                                                  const prof_i_span *span) {
  const uint32_t depth = span->depth + 1u;
  if (span->lane != 0 || depth >= sums->room) return (prof_i_scope_bytes){0};
  const prof_i_scope_bytes own = sums->pending[depth].scope_bytes,
                           all = {.host = own.host, .device = own.device};
  sums->pending[depth] = (prof_i_pending_memory){0};
  prof_i_scope_bytes_add(&sums->pending[span->depth].scope_bytes, &all);
  return own;
}

/* A step is not a scope, and the options leave some scopes out: their bytes belong to the scope
   around them. */
static void memory_totals_end_step(prof_i_memory_totals *sums, const prof_i_span *span) {
  const uint32_t depth = span->depth + 1u;
  if (span->lane != 0 || depth >= sums->room) return;
  const prof_i_pending_memory own = sums->pending[depth];
  sums->pending[depth] = (prof_i_pending_memory){0};
  prof_i_scope_bytes_add(&sums->pending[span->depth].scope_bytes, &own.scope_bytes);
  add_own_bytes(&sums->pending[span->depth], own.count, own.first_ns);
}

/* At the end of a thread: adds what no scope of it encloses. */
static void memory_totals_unscoped(const prof_i_memory_totals *sums,
                                   prof_i_unscoped_memory *outside) {
  if (!sums->room || !sums->pending[0].count) return;
  const prof_i_pending_memory *const own = &sums->pending[0];
  if (!outside->count || own->first_ns < outside->first_ns) outside->first_ns = own->first_ns;
  outside->count += own->count;
  outside->host = prof_i_bytes_add_wrapping(outside->host, own->scope_bytes.self_host);
  outside->device = prof_i_bytes_add_wrapping(outside->device, own->scope_bytes.self_device);
}

typedef prof_i_group_key group_key;

/* Whether the record has parts of the key that its site does not have. */
static inline bool has_details(const prof_i_aggregation *a, const uint64_t *record) {
  const uint32_t flags = prof_i_word_flags(record[2]), by = a->options.group;
  if (a->filter && prof_i_trace_filter_reads_record(&a->filtered, record)) return true;
  return (flags & (PROF_I_FLAG_NAME | PROF_I_FLAG_CATEGORY)) || prof_i_is_async(record) ||
         ((flags & PROF_I_FLAG_DEVICE) && (by & PROF_GROUP_DEVICE)) ||
         (prof_i_word_schema(record[2]) != 0 &&
          (by & (PROF_I_GROUP_SHAPES | PROF_GROUP_STACK | PROF_I_GROUP_ARG)));
}

/* The earliest call decides the category, if the key has none. */
static void note_first_call(prof_i_aggregation *a, prof_i_group *g, const prof_i_span *span) {
  if (span->start_ns >= g->first_ns) return;
  g->first_ns = span->start_ns;
  const prof_i_site_info *const site = prof_i_trace_site(a->trace, span->site);
  const bool is_observed = prof_i_observed_has(site->line, site->file.bytes);
  g->record_scope = is_observed ? (uint8_t)prof_i_observed_scope(site->line) : 0;
  if ((a->options.group & PROF_GROUP_ANNOTATION) == 0) return;
  g->category = site->category;
  if (!span->record || !(prof_i_word_flags(span->record[2]) & PROF_I_FLAG_CATEGORY)) return;
  prof_i_trace_expand(a->trace, a->thread, span, &a->event);
  g->category = (prof_i_text){a->event.category, a->event.category_bytes};
}

static prof_i_pending_call group_total(prof_i_group *g) {
  prof_i_pending_call now;
  prof_i_pending_call_note(&now, g, false);
  return now;
}

static void add_overlap(prof_i_group *g, const prof_i_span *span, const prof_i_pending_call *before,
                        const prof_i_overlap *also) {
  const prof_i_scope_bytes *const m = &also->memory;
  const prof_i_device_time *const d = &also->on_device;
  prof_i_device_time_add(&g->on_device, &(prof_i_device_time){0, d->self_ns, d->count, d->each_ns});
  prof_i_scope_bytes_add(
      &g->memory, &(prof_i_scope_bytes){.self_host = m->self_host, .self_device = m->self_device});
  if (span->lane > 0) {
    g->overlap_device_ns += d->total_ns;
    return;
  }
  g->on_device.total_ns = before->device_ns + d->total_ns;
  g->memory.host = prof_i_bytes_add_wrapping(before->host_bytes, m->host);
  g->memory.device = prof_i_bytes_add_wrapping(before->device_bytes, m->device);
}

/* PROF_RULE_OPEN_CALLS. Traced functions are not included: they have their thread's time. */
static int add_open_call(const prof_i_aggregation *a, prof_i_group *g, const prof_i_span *span) {
  const uint64_t to_ns = a->options.to_ns, end_ns = span->start_ns + span->duration_ns;
  const uint64_t duration_ns = (to_ns && to_ns < end_ns ? to_ns : end_ns) - span->start_ns;
  g->async_count++;
  g->outer_count++;
  g->overlap_ns += duration_ns;
  return prof_i_duration_stats_add(&g->stats, duration_ns, 0) ? 0 : PROF_E_NO_MEMORY;
}

static bool is_open_call(const prof_i_aggregation *a, const prof_i_span *span) {
  return span->kind == PROF_EVENT_OPEN && (a->options.rules & PROF_RULE_OPEN_CALLS) &&
         !prof_i_is_function_site(prof_i_trace_site(a->trace, span->site));
}

static int add_to_group(const prof_i_aggregation *a, prof_i_group *g, const prof_i_span *span,
                        const prof_i_pending_call *before, const prof_i_overlap *also) {
  if (span->record && prof_i_is_skipped(span->record)) {
    g->skipped_count++;
    return 0;
  }
  const bool is_open = span->kind == PROF_EVENT_OPEN;
  prof_i_overlap scope_bytes = *also;
  if (is_open_call(a, span)) scope_bytes.memory.self_host = scope_bytes.memory.self_device = 0;
  add_overlap(g, span, before, &scope_bytes);
  if (is_open) {
    g->open_count++;
    if (span->duration_ns > g->open_ns) g->open_ns = span->duration_ns;
    if (!(a->options.rules & PROF_RULE_OPEN_CALLS)) return 0;
    if (is_open_call(a, span)) return add_open_call(a, g, span);
  }
  g->async_count += span->record && prof_i_is_async(span->record);
  if (span->lane > 0) {
    g->overlap_ns += span->duration_ns;
    g->outer_count++;
  } else {
    g->outer_count = before->outer_count + 1;
    g->stats.outer_ns = before->total_ns + span->duration_ns;
    g->inner_count = before->inner_count + span->inner_count;
    g->child_count += span->child_count;
  }
  return prof_i_duration_stats_add(&g->stats, span->duration_ns, span->self_ns) ? 0
                                                                                : PROF_E_NO_MEMORY;
}

/* False: no memory. */
static bool keep_unscoped(prof_i_group *g, uint64_t duration_ns) {
  prof_i_duration_stats **const unscoped = prof_i_group_unscoped(g);
  if (!*unscoped) {
    *unscoped = malloc(sizeof **unscoped);
    if (!*unscoped) return false;
    prof_i_duration_stats_init(*unscoped);
  }
  return prof_i_duration_stats_add(*unscoped, duration_ns, 0);
}

int prof_i_aggregation_add_unscoped(prof_i_aggregation *a) {
  for (const prof_i_launch *left; (left = prof_i_device_totals_unscoped(&a->on_device)) != NULL;) {
    const prof_i_span span = {.record = left->record,
                              .start_ns = left->start_ns,
                              .duration_ns = left->duration_ns,
                              .self_ns = left->self_ns,
                              .site = left->site,
                              .kind = PROF_EVENT_SCOPE};
    prof_i_group *g;
    if (!prof_i_is_in_window(&a->options, span.start_ns)) continue;
    if (!prof_i_aggregation_passes_time(a, span.start_ns, span.duration_ns)) continue;
    if (a->filter && left->thread == UINT32_MAX && !a->filtered.takes_thread[left->stream])
      continue;
    if (left->thread == UINT32_MAX) {
      a->thread = left->stream;
      if (!prof_i_aggregation_set_process(a)) return PROF_E_NO_MEMORY;
    }
    a->stack_node = 0;
    if (!prof_i_aggregation_find_detailed(a, left->stream, &span, &g)) return PROF_E_NO_MEMORY;
    if (g == &a->unwanted) continue;
    prof_i_device_time_add(&g->on_device,
                           &(prof_i_device_time){left->self_ns, left->self_ns, 1, left->self_ns});
    if (a->has_durations && !keep_unscoped(g, span.duration_ns)) return PROF_E_NO_MEMORY;
    note_first_call(a, g, &span);
  }
  return 0;
}

/* Sets a->stack_node to the stack of the span. around: of a pending span the entry below it; NULL:
   the span was just emitted. False: no memory. */
static bool find_caller(prof_i_aggregation *a, const prof_i_span *span,
                        prof_i_pending_span *around) {
  const bool is_known =
      around ? prof_i_call_stacks_of_pending(&a->call_stacks, a->walker, around, span->start_ns,
                                             &a->stack_node)
             : prof_i_call_stacks_of_span(&a->call_stacks, a->walker, span, &a->stack_node);
  if (!is_known) return false;
  return prof_i_call_stacks_is_function(&a->call_stacks, span->site) ||
         prof_i_call_stacks_of_scope(&a->call_stacks, span, a->stack_node, &a->stack_node);
}

/* The group of a span. around: as in find_caller(). False: no memory. */
static bool find_plain_or_edge(prof_i_aggregation *a, const prof_i_span *span,
                               prof_i_pending_span *around, prof_i_group **group_out) {
  const bool is_detailed = span->record != NULL && has_details(a, span->record);
  if (a->has_callers && !find_caller(a, span, around)) return false;
  if (!prof_i_aggregation_passes_time(a, span->start_ns, span->duration_ns)) {
    *group_out = &a->unwanted;
    return true;
  }
  if (is_detailed) return prof_i_aggregation_find_detailed(a, a->thread, span, group_out);
  if (a->has_callers) return prof_i_aggregation_find_by_edge(a, span, group_out);
  *group_out = prof_i_aggregation_site_group(a, span->site);
  return *group_out != NULL;
}

/* ---- pending calls ---- */

/* Another child exists, so the kept call is added. */
static __attribute__((noinline)) int add_only_child(prof_i_aggregation *a) {
  const prof_i_finished_call *const child = &a->only_child;
  prof_i_group *const g = child->group;
  if (!g) return 0;
  a->only_child.group = NULL;
  if (a->has_first) note_first_call(a, g, &child->span);
  return add_to_group(a, g, &child->span, &child->before, &child->also);
}

/* A new entry of lane 0. False: no memory. */
static bool begin_pending(prof_i_aggregation *a, prof_i_pending_span *pending) {
  const prof_i_span *const span = &pending->span;
  prof_i_group *g = NULL;
  if (!prof_i_aggregation_has_pending_room(a)) return false;
  const bool is_step = span->kind == PROF_EVENT_STEP;
  if (a->only_child.group && !is_step && add_only_child(a)) return false;
  const bool is_counted =
      span->kind <= PROF_EVENT_OPEN && prof_i_is_in_window(&a->options, span->start_ns);
  const bool is_inside =
      (is_counted && span->kind == PROF_EVENT_SCOPE) || prof_i_aggregation_is_inside(a);
  if (is_counted && !find_plain_or_edge(a, span, pending - 1, &g)) return false;
  prof_i_pending_call *const waits = &a->pending_call[a->pending_count++];
  if (g)
    prof_i_pending_call_note(waits, g, is_inside);
  else
    *waits = (prof_i_pending_call){.is_step = is_step, .is_inside = is_inside};
  return true;
}

static void on_pending(prof_i_walker *w, prof_i_pending_span *pending) {
  if (!begin_pending(w->user, pending)) w->status = PROF_E_NO_MEMORY;
}

/* Pops the pending call of a span that was just emitted. NULL: it was never pending. */
static const prof_i_pending_call *take_pending(prof_i_aggregation *a, const prof_i_span *span) {
  if (span->lane > 0 || a->pending_count == 0) return NULL;
  const prof_i_pending_span *const around = prof_i_walker_parent(a->walker, span);
  if ((uint32_t)(around - a->walker->lanes[0].stack) != a->pending_count - 1) return NULL;
  return &a->pending_call[--a->pending_count];
}

static inline bool span_is_requested(const prof_i_aggregation *a, const prof_i_span *span) {
  return prof_i_is_in_window(&a->options, span->start_ns);
}

/* PROF_RULE_OUTER_FUNCTIONS: the function has no row, but takes its own memory. */
static bool is_outer_function(const prof_i_aggregation *a, const prof_i_span *span) {
  return (a->options.rules & PROF_RULE_OUTER_FUNCTIONS) != 0 && span->lane == 0 &&
         span->start_ns < a->options.from_ns &&
         span->start_ns + span->duration_ns > a->options.from_ns &&
         prof_i_is_function_site(prof_i_trace_site(a->trace, span->site));
}

/* The memory of a scope outside of the window belongs to the scope around it. So does that of a
   scope that a jump left. */
static prof_i_scope_bytes end_scope_memory(prof_i_aggregation *a, const prof_i_span *span) {
  const bool is_skipped = span->record && prof_i_is_skipped(span->record);
  if (span_is_requested(a, span) && !is_skipped) return memory_totals_end_scope(&a->memory, span);
  if (is_outer_function(a, span)) {
    memory_totals_end_scope(&a->memory, span);
    return (prof_i_scope_bytes){0};
  }
  memory_totals_end_step(&a->memory, span);
  return (prof_i_scope_bytes){0};
}

/* The innermost scope of lane 0 around a charge, by the rules of end_scope_memory(). */
static void find_holder(const prof_i_aggregation *a, const prof_i_span *span,
                        prof_i_charge *charge) {
  const prof_i_pending_span *const stack = a->walker->lanes[0].stack;
  const prof_i_pending_span *around = prof_i_walker_parent(a->walker, span);
  for (; around > stack; around--) {
    const prof_i_span *const holder = &around->span;
    const bool is_outer = is_outer_function(a, holder);
    if (holder->kind > PROF_EVENT_OPEN || (!span_is_requested(a, holder) && !is_outer)) continue;
    if (holder->record && prof_i_is_skipped(holder->record)) continue;
    prof_i_group *const g = a->pending_call[around - stack - 1].group;
    const bool has_own = g != &a->unwanted && !is_open_call(a, holder);
    charge->is_held = true;
    charge->holder_start_ns = holder->start_ns;
    charge->group = has_own && !is_outer ? g : NULL;
    return;
  }
}

static int add_charge(prof_i_aggregation *a, const prof_i_span *span) {
  prof_i_charge charge = {.at_ns = span->start_ns};
  if (!memory_totals_read(a->trace, span, &charge.own)) return 0;
  if (a->crossing.is_on) find_holder(a, span, &charge);
  if (a->crossing.is_on && !prof_i_crossing_memory_charge(&a->crossing, &charge))
    return PROF_E_NO_MEMORY;
  return memory_totals_add(&a->memory, span, &charge.own) ? 0 : PROF_E_NO_MEMORY;
}

/* Spans that are not scopes. */
static int visit_other(prof_i_aggregation *a, const prof_i_span *span) {
  if (a->has_launched && span->kind == PROF_EVENT_STEP)
    prof_i_device_totals_end_step(&a->on_device, span);
  if (!a->has_pools) return 0;
  if (span->kind == PROF_EVENT_STEP) memory_totals_end_step(&a->memory, span);
  if (span->kind != PROF_EVENT_MEMORY || !span_is_requested(a, span)) return 0;
  return add_charge(a, span);
}

/* Whether a scope that begins after the window is inside of one that begins in it. */
static bool is_inside_wanted(const prof_i_aggregation *a, const prof_i_span *span) {
  if (span->start_ns < a->options.from_ns || span->kind != PROF_EVENT_SCOPE) return false;
  const prof_i_pending_span *around = prof_i_walker_parent(a->walker, span);
  for (; around->span.kind; around--) /* entry 0 has kind 0 */
    if (around->span.kind == PROF_EVENT_SCOPE && span_is_requested(a, &around->span)) return true;
  return false;
}

/* ---- PROF_RULE_ONLY_CHILDREN ---- */

/* Makes the only child part of the call around it, whose group is `parent`. */
static void take_only_child(prof_i_aggregation *a, prof_i_group *parent, prof_i_span *span,
                            prof_i_overlap *also) {
  const prof_i_finished_call *const child = &a->only_child;
  const prof_i_device_time *const d = &child->also.on_device;
  const prof_i_scope_bytes own = {.self_host = child->also.memory.self_host,
                                  .self_device = child->also.memory.self_device};
  prof_i_scope_bytes_add(&also->memory, &own);
  prof_i_device_time_add(&also->on_device,
                         &(prof_i_device_time){.self_ns = d->self_ns, .count = d->count});
  if (!PROF_I_FAULT(LOSES_SELF)) span->self_ns += child->span.self_ns;
  span->child_count = child->span.child_count;
  if (a->crossing.is_on)
    prof_i_crossing_memory_merge(&a->crossing, child->group, child->span.start_ns,
                                 parent == &a->unwanted ? NULL : parent);
  a->only_child.group = NULL;
}

/* The innermost pending scope. Steps do not count. NULL: no scope is pending. */
static prof_i_pending_call *innermost_pending(prof_i_aggregation *a) {
  uint32_t count = a->pending_count;
  while (count && a->pending_call[count - 1].is_step && !PROF_I_FAULT(STEP_HOLDS)) count--;
  return count ? &a->pending_call[count - 1] : NULL;
}

/* A vendor's call is an event in torch.profiler, so a scope next to it is not the only child. */
static __attribute__((noinline)) void note_call(prof_i_aggregation *a, const prof_i_span *span) {
  prof_i_pending_call *const around = innermost_pending(a);
  if (around && span->lane == 0) around->has_call = true;
}

static inline bool span_nests(const prof_i_span *span) {
  return span->lane == 0 && span->kind == PROF_EVENT_SCOPE &&
         !(span->record && prof_i_is_skipped(span->record));
}

static bool have_one_name(const prof_i_group *one, const prof_i_group *other) {
  const group_key *const a = &one->key, *const b = &other->key;
  if (one == other) return true;
  return !prof_i_texts_differ(a->name, b->name) && a->location.line == b->location.line &&
         !prof_i_texts_differ(a->location.file, b->location.file);
}

/* Keeps a call that may be the only child of a call with the same name. True: it is kept. */
static __attribute__((noinline)) bool keep_only_child(prof_i_aggregation *a, prof_i_group *g,
                                                      const prof_i_group *parent,
                                                      const prof_i_span *span,
                                                      const prof_i_pending_call *before,
                                                      const prof_i_overlap *also) {
  if (!span_nests(span) || !have_one_name(g, parent)) return false;
  const prof_i_pending_span *around = prof_i_walker_parent(a->walker, span);
  if ((uint32_t)(around - a->walker->lanes[0].stack) != a->pending_count) return false;
  while (around->span.kind == PROF_EVENT_STEP) around--;
  if (!span_nests(&around->span)) return false;
  a->only_child = (prof_i_finished_call){g, *span, *before, *also};
  return true;
}

static inline __attribute__((always_inline)) int finish_visit(prof_i_aggregation *a,
                                                              const prof_i_span *span,
                                                              const prof_i_pending_call *waited,
                                                              const prof_i_overlap *also) {
  prof_i_group *g = waited ? waited->group : NULL;
  if (!span_is_requested(a, span)) {
    if (is_inside_wanted(a, span)) a->unwanted.stats.self_ns += span->self_ns;
    return 0;
  }
  if (!waited && !find_plain_or_edge(a, span, NULL, &g)) return PROF_E_NO_MEMORY;
  if (g == &a->unwanted) {
    if (span->kind == PROF_EVENT_SCOPE) g->stats.self_ns += span->self_ns;
    return 0;
  }
  if (__builtin_expect(a->crossing.is_on, 0) && prof_i_is_crossing(span) &&
      !prof_i_crossing_memory_scope(&a->crossing, span, g))
    return PROF_E_NO_MEMORY;
  const prof_i_pending_call before = waited ? *waited : group_total(g);
  if (a->has_only_children && a->pending_count) {
    const prof_i_group *const parent = innermost_pending(a) ? innermost_pending(a)->group : NULL;
    if (parent && parent->key.name.bytes == g->key.name.bytes &&
        keep_only_child(a, g, parent, span, &before, also))
      return 0;
  }
  if (a->has_first) note_first_call(a, g, span);
  return add_to_group(a, g, span, &before, also);
}

/* A call that encloses the kept call, or is next to it. */
static __attribute__((noinline)) int visit_around_only_child(prof_i_aggregation *a,
                                                             const prof_i_span *span,
                                                             const prof_i_pending_call *waited,
                                                             prof_i_overlap *also) {
  prof_i_span merged = *span;
  const bool is_alone = span->child_count == 1 || PROF_I_FAULT(NOT_ALONE);
  if (waited && is_alone && !waited->has_call)
    take_only_child(a, waited->group, &merged, also);
  else if (add_only_child(a))
    return PROF_E_NO_MEMORY;
  return finish_visit(a, &merged, waited, also);
}

static int visit_span(prof_i_aggregation *a, const prof_i_span *span) {
  const prof_i_pending_call *const waited = take_pending(a, span);
  if (span->kind > PROF_EVENT_OPEN) return visit_other(a, span);
  prof_i_overlap also = {{0}, {0}};
  if (__builtin_expect(a->has_pools, 0)) also.memory = end_scope_memory(a, span);
  if (__builtin_expect(a->has_launched, 0) &&
      !prof_i_device_totals_end_scope(&a->on_device, span, &also.on_device))
    return PROF_E_NO_MEMORY;
  if (a->has_only_children && span->record && prof_i_is_call(span->record)) note_call(a, span);
  if (__builtin_expect(a->only_child.group != NULL, 0) && span->lane == 0)
    return visit_around_only_child(a, span, waited, &also);
  return finish_visit(a, span, waited, &also);
}

static int visit_spans(void *user, const prof_i_span *spans, size_t count) {
  int status = 0;
  for (size_t i = 0; !status && i < count; i++) status = visit_span(user, &spans[i]);
  return status;
}

int prof_i_aggregation_add_thread(prof_i_aggregation *a) {
  const int looked =
      a->has_pools ? prof_i_crossing_memory_begin(&a->crossing, a->trace, a->thread) : 0;
  if (looked) return looked;
  if (!a->has_pools) a->crossing.is_on = false;
  prof_i_walker *const walker = a->walker =
      prof_i_walker_create(a->trace, a->thread, visit_spans, a);
  if (!walker) return PROF_E_NO_MEMORY;
  a->has_launched = prof_i_device_totals_begin(&a->on_device, a->thread);
  a->has_callers = prof_i_call_stacks_has_any(&a->call_stacks);
  if (a->call_stacks.backward) a->call_stacks.backward->thread = a->thread;
  a->stack_node = 0;
  prof_i_walker_track_parents(walker, a->has_callers ? &a->call_stacks : NULL,
                              prof_i_call_stacks_enclosing);
  walker->on_pending = on_pending;
  prof_i_walker_skip_before(walker, a->options.from_ns);
  a->pending_count = 0;
  a->only_child.group = NULL;
  /* Fast path: no span needs its parents or its details. */
  if (!a->has_callers && !a->has_pools && !a->has_first && !a->has_launched &&
      !(a->options.group & PROF_GROUP_FLOPS) && !a->has_only_children) {
    walker->walk_plain = prof_i_aggregation_plain_walk(a);
    walker->takes_bare = !(a->options.group & (PROF_I_GROUP_SHAPES | PROF_GROUP_STACK));
  }
  memory_totals_clear(&a->memory);
  const int status = prof_i_walker_run(walker);
  if (a->crossing.is_on)
    prof_i_crossing_memory_settle(&a->crossing, &a->outside);
  else
    memory_totals_unscoped(&a->memory, &a->outside);
  prof_i_walker_destroy(walker);
  a->walker = NULL;
  a->has_callers = false;
  a->stack_node = 0;
  if (a->options.group & PROF_I_GROUP_LINES) prof_i_aggregation_clear_edges(a);
  return status ? status : prof_i_aggregation_add_unscoped(a);
}
