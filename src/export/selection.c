/* See selection.h. */
#include "selection.h"

#include <stdlib.h>
#include <string.h>

#include "../analysis/memory.h"
#include "flow.h"

/* ---- ranges of scopes that pass ---- */

static int ranges_push(prof_i_selected_ranges *ranges, prof_i_selected_range range) {
  if (!prof_i_make_room((void **)&ranges->items, &ranges->room, ranges->count,
                        sizeof *ranges->items))
    return PROF_E_NO_MEMORY;
  ranges->items[ranges->count++] = range;
  return PROF_OK;
}

/* Adds a range that begins no later than the last range. Ranges that touch are merged. */
static int ranges_add(prof_i_selected_ranges *ranges, prof_i_selected_range range) {
  while (ranges->count > 0 && ranges->items[ranges->count - 1].start_ns <= range.end_ns) {
    const uint64_t end_ns = ranges->items[--ranges->count].end_ns;
    if (end_ns > range.end_ns) range.end_ns = end_ns;
  }
  return ranges_push(ranges, range);
}

static bool ranges_contain(const prof_i_selected_ranges *ranges, uint64_t ns) {
  uint32_t low = 0, high = ranges->count; /* the first range that begins at ns or before */
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (ranges->items[middle].start_ns > ns)
      low = middle + 1;
    else
      high = middle;
  }
  return low < ranges->count && ns <= ranges->items[low].end_ns;
}

static int range_compare_falling(const void *a, const void *b) {
  const prof_i_selected_range *const x = a, *const y = b;
  return (x->start_ns < y->start_ns) - (x->start_ns > y->start_ns);
}

/* Moves all ranges of `late`, which are unsorted, into `ranges`. */
static int ranges_join(prof_i_selected_ranges *ranges, prof_i_selected_ranges *late) {
  int status = PROF_OK;
  for (uint32_t i = 0; status == PROF_OK && i < ranges->count; i++)
    status = ranges_push(late, ranges->items[i]);
  if (status != PROF_OK) return status;
  qsort(late->items, late->count, sizeof *late->items, range_compare_falling);
  ranges->count = 0;
  for (uint32_t i = 0; status == PROF_OK && i < late->count; i++)
    status = ranges_add(ranges, late->items[i]);
  late->count = 0;
  return status;
}

/* ---- the walk ---- */

typedef struct selection_walk {
  prof_i_trace_filter *filter;
  uint32_t thread;
  prof_i_selected_ranges *ranges; /* of the thread; NULL: not wanted */
  prof_i_selected_ranges late;    /* scopes that came out of order, of other lanes */
  prof_i_flows *flows;            /* NULL: not wanted */
  prof_event event;               /* scratch */
} selection_walk;

static int add_scope(selection_walk *walk, const prof_i_span *span) {
  prof_i_selected_ranges *const ranges = walk->ranges;
  const prof_i_selected_range range = {span->start_ns, span->start_ns + span->duration_ns};
  if (span->lane == PROF_I_LANES_MAX ||
      !prof_i_trace_filter_takes(walk->filter, walk->thread, span))
    return PROF_OK;
  const bool is_late =
      ranges->count > 0 && ranges->items[ranges->count - 1].start_ns < range.start_ns;
  return is_late ? ranges_push(&walk->late, range) : ranges_add(ranges, range);
}

static void add_flow(selection_walk *walk, const prof_i_span *span) {
  prof_i_trace_expand(walk->filter->trace, walk->thread, span, &walk->event);
  const prof_i_flow flow = {.id = walk->event.id,
                            .start_ns = span->start_ns,
                            .tid = walk->thread,
                            .is_end = span->kind == PROF_EVENT_FLOW_END};
  (void)prof_i_flows_add(walk->flows, &flow); /* without room it is left out */
}

static int visit_spans(void *user, const prof_i_span *spans, size_t count) {
  selection_walk *const walk = user;
  int status = PROF_OK;
  for (size_t i = 0; status == PROF_OK && i < count; i++) {
    const uint32_t kind = spans[i].kind;
    if (walk->ranges && (kind == PROF_EVENT_SCOPE || kind == PROF_EVENT_OPEN))
      status = add_scope(walk, &spans[i]);
    else if (walk->flows && (kind == PROF_EVENT_FLOW_BEGIN || kind == PROF_EVENT_FLOW_END))
      add_flow(walk, &spans[i]);
  }
  return status;
}

/* ranges, flows: NULL: not needed. */
static int walk_threads(prof_i_trace_filter *filter, prof_i_selected_ranges *ranges,
                        prof_i_flows *flows) {
  const prof_trace *const trace = filter->trace;
  selection_walk *const walk = calloc(1, sizeof *walk);
  int status = walk ? PROF_OK : PROF_E_NO_MEMORY;
  for (uint32_t i = 0; status == PROF_OK && i < trace->thread_count; i++) {
    walk->filter = filter;
    walk->thread = i;
    walk->ranges = ranges ? &ranges[i] : NULL;
    walk->flows = flows;
    status = prof_i_trace_walk(trace, i, visit_spans, walk);
    if (status == PROF_OK && walk->late.count > 0) status = ranges_join(walk->ranges, &walk->late);
  }
  if (walk) free(walk->late.items);
  free(walk);
  return status;
}

/* ---- events that pass ---- */

static int event_compare(const void *a, const void *b) {
  const prof_i_selected_event *const x = a, *const y = b;
  if (x->number != y->number) return x->number < y->number ? -1 : 1;
  if (x->start_ns != y->start_ns) return x->start_ns < y->start_ns ? -1 : 1;
  if (x->thread != y->thread) return x->thread < y->thread ? -1 : 1;
  return (x->part > y->part) - (x->part < y->part);
}

static int events_add(prof_i_selected_events *events, prof_i_selected_event event) {
  if (!prof_i_make_room((void **)&events->items, &events->room, events->count,
                        sizeof *events->items))
    return PROF_E_NO_MEMORY;
  events->items[events->count++] = event;
  return PROF_OK;
}

static void events_sort(prof_i_selected_events *events) {
  if (events->count > 1) qsort(events->items, events->count, sizeof *events->items, event_compare);
}

static bool events_have(const prof_i_selected_events *events, prof_i_selected_event event) {
  return events->count > 0 &&
         bsearch(&event, events->items, events->count, sizeof event, event_compare) != NULL;
}

static bool moment_passes(const prof_i_selection *of, const prof_i_selected_ranges *scopes,
                          uint32_t thread, uint64_t ns, prof_device device) {
  if (of->has_scope_words) return ranges_contain(&scopes[thread], ns);
  return of->filter->takes_thread[thread] &&
         prof_i_trace_filter_takes_place(of->filter, thread, ns, device);
}

bool prof_i_selection_takes_moment(const prof_i_selection *of, uint32_t thread, uint64_t ns) {
  return moment_passes(of, of->scopes, thread, ns, (prof_device){PROF_DEVICE_CPU, 0});
}

/* ---- arrows ---- */

static int add_flow_end(prof_i_selection *of, const prof_i_flow *flow, prof_i_selected_part part) {
  return events_add(&of->flow_ends,
                    (prof_i_selected_event){flow->id, flow->start_ns, flow->tid, part});
}

static int select_flows(prof_i_selection *of, prof_i_flows *flows) {
  size_t outside, alone;
  int status = PROF_OK;
  prof_i_flows_match(flows, &outside, &alone);
  for (uint32_t i = 0; status == PROF_OK && i < flows->count; i += 2) {
    const prof_i_flow *const begin = &flows->items[i], *const end = begin + 1;
    const bool passes = prof_i_selection_takes_moment(of, begin->tid, begin->start_ns) &&
                        prof_i_selection_takes_moment(of, end->tid, end->start_ns);
    status = add_flow_end(of, begin, passes ? PROF_I_SELECTED_BEGIN : PROF_I_LEFT_OUT_BEGIN);
    if (status == PROF_OK && passes) status = add_flow_end(of, end, PROF_I_SELECTED_END);
  }
  events_sort(&of->flow_ends);
  return status;
}

static bool has_flow_end(const prof_i_selection *of, const prof_event *event,
                         prof_i_selected_part part) {
  return events_have(&of->flow_ends, (prof_i_selected_event){event->id, event->start_ns,
                                                             event->thread, (uint32_t)part});
}

/* Whether the arrow of this end passes, which means that both its ends pass. */
static bool selection_takes_flow(const prof_i_selection *of, const prof_event *event) {
  return has_flow_end(
      of, event, event->kind == PROF_EVENT_FLOW_END ? PROF_I_SELECTED_END : PROF_I_SELECTED_BEGIN);
}

/* Whether the event begins an arrow that does not pass. False for an arrow without an end. */
static bool selection_leaves_out_flow(const prof_i_selection *of, const prof_event *event) {
  return event->kind == PROF_EVENT_FLOW_BEGIN && has_flow_end(of, event, PROF_I_LEFT_OUT_BEGIN);
}

/* ---- memory ---- */

/* An allocation or a free. `place` is its position in the order of its pool. */
typedef struct memory_event {
  prof_i_selected_event event;
  uint32_t place;
  bool is_free, passes;
} memory_event;

static int memory_event_compare(const void *a, const void *b) {
  const memory_event *const x = a, *const y = b;
  if (x->event.part != y->event.part) return x->event.part < y->event.part ? -1 : 1;
  if (x->event.number != y->event.number) return x->event.number < y->event.number ? -1 : 1;
  return (x->place > y->place) - (x->place < y->place);
}

static bool allocation_passes(const prof_i_selection *of, uint32_t thread, uint64_t ns,
                              prof_device device) {
  const char *const word = of->filter->filter->words.device;
  return (!word || prof_i_filter_takes_device(word, device)) &&
         moment_passes(of, of->allocating_scopes, thread, ns, device);
}

/* A free passes if the previous event of its address is an allocation that passes. */
static int add_passing_frees(prof_i_selection *of, memory_event *events, uint32_t count) {
  int status = PROF_OK;
  if (count > 1) qsort(events, count, sizeof *events, memory_event_compare);
  for (uint32_t i = 1; status == PROF_OK && i < count; i++) {
    const memory_event *const before = &events[i - 1], *const event = &events[i];
    if (event->is_free && before->passes && before->event.number == event->event.number &&
        before->event.part == event->event.part)
      status = events_add(&of->frees, event->event);
  }
  events_sort(&of->frees);
  return status;
}

static int select_frees(prof_i_selection *of) {
  prof_memory *memory;
  uint32_t count = 0;
  int status = prof_i_memory_order(of->filter->trace, 0, &memory);
  if (status != PROF_OK) return status;
  memory_event *const events = malloc(((size_t)memory->item_count + 1) * sizeof *events);
  for (uint32_t i = 0; events && i < memory->item_count; i++) {
    const prof_i_memory_item *const item = &memory->items[memory->order[i]];
    const prof_i_memory_record record = prof_i_memory_item_read(item);
    const uint32_t pool = prof_i_memory_pool_index(memory, record.pool);
    const bool is_free = record.verb == PROF_I_VERB_FREE;
    if (pool == UINT32_MAX || (!is_free && record.verb != PROF_I_VERB_ALLOC)) continue;
    const prof_device device = memory->trace->catalog.pools[pool].device;
    events[count++] =
        (memory_event){.event = {record.address, item->ns, item->thread, record.pool},
                       .place = i,
                       .is_free = is_free,
                       .passes = !is_free && allocation_passes(of, item->thread, item->ns, device)};
  }
  status = events ? add_passing_frees(of, events, count) : PROF_E_NO_MEMORY;
  free(events);
  prof_i_memory_destroy(memory);
  return status;
}

bool prof_i_selection_takes_memory(const prof_i_selection *of,
                                   const prof_i_selected_memory *event) {
  if (!event->is_free) return allocation_passes(of, event->thread, event->ns, event->device);
  return events_have(
      &of->frees, (prof_i_selected_event){event->address, event->ns, event->thread, event->pool});
}

/* ---- events of all kinds ---- */

static bool takes_as_scope(const prof_i_selection *of, const prof_event *event) {
  return of->filter->takes_thread[event->thread] &&
         prof_i_trace_filter_takes_time(of->filter, event->start_ns, event->duration_ns) &&
         prof_i_trace_filter_takes_event(of->filter, event);
}

bool prof_i_selection_takes_place(const prof_i_selection *of, const prof_event *event) {
  return prof_i_trace_filter_takes_place(of->filter, event->thread, event->start_ns, event->device);
}

static bool takes_event_of_memory(const prof_i_selection *of, const prof_event *event) {
  const prof_i_selected_memory memory = {.address = event->memory.address,
                                         .ns = event->start_ns,
                                         .thread = event->thread,
                                         .pool = event->memory.pool,
                                         .device = event->device,
                                         .is_free = event->memory.verb == PROF_MEMORY_FREE};
  return prof_i_selection_takes_memory(of, &memory);
}

static bool is_piece_of_memory(uint32_t verb) {
  return verb == PROF_MEMORY_ALLOC || verb == PROF_MEMORY_FREE || verb == PROF_MEMORY_OOM;
}

bool prof_i_selection_takes(const prof_i_selection *of, const prof_event *event,
                            prof_i_export_filtered *filtered) {
  bool takes = true;
  switch ((prof_event_kind)event->kind) {
    case PROF_EVENT_SCOPE:
    case PROF_EVENT_OPEN:
    case PROF_EVENT_STEP:
      takes = takes_as_scope(of, event);
      if (event->kind != PROF_EVENT_STEP) prof_i_filtered_count_add(&filtered->scopes, takes);
      filtered->event_count += takes;
      break;
    case PROF_EVENT_INSTANT:
    case PROF_EVENT_COUNTER: /* whichever thread counts, it is the process's */
      takes = prof_i_selection_takes_place(of, event) &&
              (event->kind == PROF_EVENT_COUNTER || of->filter->takes_thread[event->thread]);
      prof_i_filtered_count_add(&filtered->values, takes);
      filtered->event_count += takes && takes_as_scope(of, event);
      break;
    case PROF_EVENT_FLOW_BEGIN:
    case PROF_EVENT_FLOW_END:
      takes = selection_takes_flow(of, event);
      filtered->arrows.written += takes && event->kind == PROF_EVENT_FLOW_BEGIN;
      filtered->arrows.left_out += selection_leaves_out_flow(of, event);
      break;
    case PROF_EVENT_MEMORY:
      takes = takes_event_of_memory(of, event);
      if (of->with_memory && is_piece_of_memory(event->memory.verb))
        prof_i_filtered_count_add(&filtered->memory, takes);
      break;
  }
  return takes;
}

/* ---- a selection ---- */

static int find_scopes(prof_i_selection *of, prof_i_flows *flows, bool with_memory) {
  const prof_trace *const trace = of->filter->trace;
  const size_t room = (size_t)trace->thread_count + 1;
  of->scopes = calloc(room, sizeof *of->scopes);
  if (!of->scopes) return PROF_E_NO_MEMORY;
  const int status = walk_threads(of->filter, of->has_scope_words ? of->scopes : NULL, flows);
  of->allocating_scopes = of->scopes;
  if (status != PROF_OK || !with_memory || !of->has_scope_words ||
      !of->filter->filter->words.device)
    return status;
  of->any_device_words = *of->filter->filter;
  of->any_device_words.words.device = NULL;
  of->allocating_scopes = calloc(room, sizeof *of->allocating_scopes);
  if (!of->allocating_scopes ||
      prof_i_trace_filter_init(&of->any_device, trace, &of->any_device_words) != PROF_OK)
    return PROF_E_NO_MEMORY;
  return walk_threads(&of->any_device, of->allocating_scopes, NULL);
}

int prof_i_selection_init(prof_i_selection *of, prof_i_trace_filter *filter, bool with_flows,
                          bool with_memory) {
  memset(of, 0, sizeof *of);
  of->filter = filter;
  of->with_memory = with_memory;
  of->has_scope_words = prof_i_filter_has_scope_words(filter->filter);
  const bool has_pools = with_memory && filter->trace->catalog.pool_count > 0;
  prof_i_flows flows;
  prof_i_flows_init(&flows);
  int status = find_scopes(of, with_flows ? &flows : NULL, has_pools);
  if (status == PROF_OK && with_flows) status = select_flows(of, &flows);
  if (status == PROF_OK && has_pools) status = select_frees(of);
  prof_i_flows_fini(&flows);
  return status;
}

static void free_ranges(prof_i_selected_ranges *ranges, uint32_t thread_count) {
  for (uint32_t i = 0; ranges && i < thread_count; i++) free(ranges[i].items);
  free(ranges);
}

void prof_i_selection_fini(prof_i_selection *of) {
  const uint32_t thread_count = of->filter ? of->filter->trace->thread_count : 0;
  if (of->allocating_scopes != of->scopes) free_ranges(of->allocating_scopes, thread_count);
  free_ranges(of->scopes, thread_count);
  if (of->any_device.trace) prof_i_trace_filter_fini(&of->any_device);
  free(of->flow_ends.items);
  free(of->frees.items);
}
