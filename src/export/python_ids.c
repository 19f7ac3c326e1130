/* See python_ids.h. */
#include "python_ids.h"

#include <prof/profiler.h>
#include <stdlib.h>
#include <string.h>

#include "../analysis/call_stacks.h"
#include "../reader/capture.h"

/* A module's call has it, and it may be the first of its name: then no site tells. */
static bool schema_has_module_key(const prof_i_schema *schema) {
  static const char key[] = "Python id";
  for (uint32_t i = 0; i < schema->count; i++) {
    const uint64_t *const text = schema->record + schema->keys[i];
    if (text[0] == sizeof key - 1 && memcmp(text + 1, key, sizeof key - 1) == 0) return true;
  }
  return false;
}

static bool trace_has_functions(const prof_trace *trace) {
  const uint32_t site_count = prof_i_trace_site_count(trace);
  for (uint32_t site = 0; site < site_count; site++)
    if (prof_i_is_function_site(prof_i_trace_site(trace, site))) return true;
  for (uint32_t i = 0; i < trace->catalog.schema_count; i++)
    if (schema_has_module_key(&trace->catalog.schemas[i])) return true;
  return false;
}

bool prof_i_python_ids_is_call(const prof_i_python_ids *ids, const prof_i_span *span) {
  if (!ids->is_function || span->kind > PROF_EVENT_OPEN) return false;
  if (!span->record) return ids->is_function[span->site];
  return prof_i_is_function_category(prof_i_trace_category(ids->trace, span));
}

static uint64_t span_end_ns(const prof_i_span *span) { return span->start_ns + span->duration_ns; }

/* The index in lane 0's stack of the innermost call that holds the span; 0: none does. A span of
   another lane may cross the spans of lane 0. */
static uint32_t index_of_caller(const prof_i_python_ids *ids, prof_i_walker *walker,
                                const prof_i_span *span) {
  const prof_i_lane *const lane = &walker->lanes[0];
  const prof_i_pending_span *at =
      span->lane == 0 ? prof_i_walker_parent(walker, span) : &lane->stack[lane->count - 1];
  for (; at > lane->stack; at--) {
    const bool holds = span->lane == 0 || (at->span.start_ns <= span->start_ns &&
                                           span_end_ns(&at->span) >= span_end_ns(span));
    if (holds && prof_i_python_ids_is_call(ids, &at->span)) return (uint32_t)(at - lane->stack);
  }
  return 0;
}

/* Takes the number that is reserved for a call on lane 0. 0: none. */
static uint32_t take_reserved_number(prof_i_python_ids *ids, prof_i_walker *walker,
                                     const prof_i_span *span) {
  if (span->lane != 0) return 0;
  const uint32_t place =
      (uint32_t)(prof_i_walker_parent(walker, span) - walker->lanes[0].stack) + 1;
  if (place >= ids->room) return 0;
  const uint32_t reserved_index = ids->reserved_index[place];
  ids->reserved_index[place] = 0;
  return reserved_index;
}

/* What a walk knows of a call that it has just handed out. */
typedef struct call_numbers {
  uint32_t reserved_index; /* the reservation for the call; 0: none */
  uint32_t around;         /* of the call around it; 0: there is none */
} call_numbers;

/* False: no memory. */
static bool number_call(prof_i_python_ids *ids, prof_i_walker *walker, const prof_i_span *span,
                        call_numbers *handed_out) {
  const uint32_t around = index_of_caller(ids, walker, span);
  *handed_out = (call_numbers){.reserved_index = take_reserved_number(ids, walker, span)};
  if (around == 0) return true;
  if (!prof_i_make_room_at_index((void **)&ids->reserved_index, &ids->room, around,
                                 sizeof *ids->reserved_index))
    return false;
  if (!ids->reserved_index[around]) ids->reserved_index[around] = ++ids->reserved_last;
  handed_out->around = ids->reserved_index[around];
  return true;
}

/* ---- the first walk ---- */

typedef struct call_counter {
  prof_i_python_ids *ids;
  prof_i_walker *walker;
  prof_i_window window;
  uint64_t *starts; /* of the calls, as they are handed out */
  uint32_t start_room, count, holder_room;
} call_counter;

static int count_calls(void *user, const prof_i_span *spans, size_t span_count) {
  call_counter *const c = user;
  prof_i_python_ids *const ids = c->ids;
  for (size_t i = 0; i < span_count; i++) {
    const prof_i_span *const span = &spans[i];
    const uint64_t start_ns = span->start_ns;
    if (!prof_i_window_contains(&c->window, start_ns, span_end_ns(span))) continue;
    if (span->lane == PROF_I_LANES_MAX || !prof_i_python_ids_is_call(ids, span)) continue;
    call_numbers call;
    if (!number_call(ids, c->walker, span, &call) ||
        !prof_i_make_room((void **)&c->starts, &c->start_room, c->count, sizeof *c->starts) ||
        !prof_i_make_room_at_index((void **)&ids->holders, &c->holder_room, ids->reserved_last,
                                   sizeof *ids->holders))
      return PROF_E_NO_MEMORY;
    c->starts[c->count] = start_ns > c->window.from_ns ? start_ns : c->window.from_ns;
    if (call.reserved_index) ids->holders[call.reserved_index] = c->count;
    c->count++;
  }
  return PROF_OK;
}

static int count_thread_calls(call_counter *c, uint32_t thread) {
  const prof_trace *const trace = c->ids->trace;
  if (prof_i_thread_is_stream(&trace->threads[thread])) return PROF_OK;
  c->walker = prof_i_walker_create(trace, thread, count_calls, c);
  if (!c->walker) return PROF_E_NO_MEMORY;
  prof_i_walker_skip_before(c->walker, c->window.from_ns);
  prof_i_walker_track_parents(c->walker, NULL, NULL);
  const int status = prof_i_walker_run(c->walker);
  prof_i_walker_destroy(c->walker);
  return status;
}

static void reverse_order(uint32_t *order, uint32_t first, uint32_t end) {
  for (; first + 1 < end; first++, end--) {
    const uint32_t moved = order[first];
    order[first] = order[end - 1];
    order[end - 1] = moved;
  }
}

/* Stable. Each thread's calls are mostly in order already: runs are merged where they are not. */
static void sort_by_start(uint32_t *order, uint32_t *spare, uint32_t call_count,
                          const uint64_t *starts) {
  for (uint64_t width = 1; width < call_count; width *= 2) {
    for (uint64_t at = 0; at + width < call_count; at += 2 * width) {
      const uint64_t both = call_count - at < 2 * width ? call_count - at : 2 * width;
      uint32_t *const run = order + at;
      if (starts[run[width - 1]] <= starts[run[width]]) continue;
      memcpy(spare, run, width * sizeof *run);
      uint64_t left = 0, right = width, to = 0;
      while (left < width && right < both)
        run[to++] = starts[run[right]] < starts[spare[left]] ? run[right++] : spare[left++];
      while (left < width) run[to++] = spare[left++];
    }
  }
}

/* False: no memory. */
static bool give_numbers(call_counter *c, const uint32_t *thread_ends, uint32_t thread_count) {
  uint32_t *const order = malloc(((size_t)c->count + 1) * sizeof *order);
  uint32_t *const numbers = malloc(((size_t)c->count + 1) * sizeof *numbers);
  c->ids->numbers = numbers;
  if (order && numbers) {
    for (uint32_t i = 0; i < c->count; i++) order[i] = i;
    for (uint32_t i = 0; i < thread_count; i++)
      reverse_order(order, i ? thread_ends[i - 1] : 0, thread_ends[i]);
    sort_by_start(order, numbers, c->count, c->starts);
    for (uint32_t i = 0; i < c->count; i++) numbers[order[i]] = i + 1;
  }
  free(order);
  return order && numbers;
}

static int give_ids(prof_i_python_ids *ids, uint32_t thread_count, prof_i_window window) {
  call_counter c = {.ids = ids, .window = window};
  uint32_t *const thread_ends = malloc(((size_t)thread_count + 1) * sizeof *thread_ends);
  int status = thread_ends ? PROF_OK : PROF_E_NO_MEMORY;
  for (uint32_t i = 0; i < thread_count && status == PROF_OK; i++) {
    status = count_thread_calls(&c, i);
    thread_ends[i] = c.count;
  }
  if (status == PROF_OK && !give_numbers(&c, thread_ends, thread_count)) status = PROF_E_NO_MEMORY;
  ids->call_count = c.count;
  ids->reserved_count = ids->reserved_last;
  ids->reserved_last = 0;
  free(c.starts);
  free(thread_ends);
  return status;
}

/* ---- the second walk ---- */

int prof_i_python_ids_init(prof_i_python_ids *ids, const prof_trace *trace, uint32_t thread_count,
                           prof_i_window window, uint64_t before) {
  const uint32_t site_count = prof_i_trace_site_count(trace);
  *ids = (prof_i_python_ids){.trace = trace, .before = before};
  if (!trace_has_functions(trace)) return PROF_OK;
  ids->is_function = calloc(site_count, sizeof *ids->is_function);
  if (!ids->is_function) return PROF_E_NO_MEMORY;
  for (uint32_t site = 0; site < site_count; site++)
    ids->is_function[site] = prof_i_is_function_site(prof_i_trace_site(trace, site));
  return give_ids(ids, thread_count, window);
}

void prof_i_python_ids_fini(prof_i_python_ids *ids) {
  free(ids->is_function);
  free(ids->numbers);
  free(ids->holders);
  free(ids->reserved_index);
  *ids = (prof_i_python_ids){0};
}

bool prof_i_python_ids_next(prof_i_python_ids *ids, prof_i_walker *walker, const prof_i_span *span,
                            prof_i_python_id *id_out) {
  call_numbers call;
  if (!number_call(ids, walker, span, &call)) return false;
  *id_out = (prof_i_python_id){0};
  if (ids->call_at < ids->call_count) id_out->own = ids->before + ids->numbers[ids->call_at++];
  if (call.around && call.around <= ids->reserved_count)
    id_out->parent = ids->before + ids->numbers[ids->holders[call.around]];
  return true;
}
