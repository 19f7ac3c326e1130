/* Chrome JSON: numbers of rows, which a first walk finds. See chrome.h. */
#include "chrome.h"

#include <prof/profiler.h>
#include <stdlib.h>
#include <string.h>

#include "../analysis/call_stacks.h"
#include "../format/parse.h"
#include "../reader/capture.h"

/* ---- owners of calls ---- */

typedef enum call_owner_kind {
  HOLDER_OPERATOR,
  HOLDER_PASSES, /* a function: what is around it may be an operator */
  HOLDER_OTHER
} call_owner_kind;

static bool call_owners_needs(const prof_i_call_owners *owners, bool is_call) {
  return is_call || owners->open_count > 0;
}

static bool span_is_on_main_lane(const prof_i_span *span) {
  return span->lane == 0 && span->depth > 0 && span->depth <= PROF_I_OWNER_DEPTHS;
}

/* 0: no memory. */
static uint32_t reserve_id(prof_i_call_owners *owners) {
  if (!prof_i_make_room_at_index((void **)&owners->reserved, &owners->reserved_room,
                                 owners->reserved_count + 1, sizeof *owners->reserved))
    return 0;
  owners->reserved[++owners->reserved_count] = (prof_i_reserved_id){0};
  return owners->reserved_count;
}

/* Takes the reservation for the scope of lane 0 at that depth. 0: none. */
static uint32_t take_reserved_id(prof_i_call_owners *owners, const prof_i_span *span) {
  if (span->lane != 0 || span->depth >= PROF_I_OWNER_DEPTHS) return 0;
  const uint32_t reservation = owners->open[span->depth];
  owners->open[span->depth] = 0;
  owners->open_count -= reservation != 0;
  return reservation;
}

/* Passes the request on to the scope around this one. own: this scope's reservation, or a new one.
   Returns the reservation of the scope around; 0: no memory. */
static uint32_t reserve_around(prof_i_call_owners *owners, const prof_i_span *span, uint32_t own) {
  uint32_t *const around = &owners->open[span->depth - 1];
  if (*around) {
    if (own) owners->reserved[own].outer = *around;
    return *around;
  }
  *around = own ? own : reserve_id(owners);
  owners->open_count += *around != 0;
  return *around;
}

/* Of a span that is wanted. place: how many operators of the thread were handed out before it.
   False: no memory. */
static bool call_owners_add_span(prof_i_call_owners *owners, const prof_i_span *span, bool is_call,
                                 call_owner_kind holder, uint64_t place) {
  const uint32_t own = take_reserved_id(owners, span);
  if (!is_call && !own) return true;
  if (!is_call && holder != HOLDER_PASSES) {
    owners->reserved[own].id = holder == HOLDER_OPERATOR ? place + 1 : 0;
    return true;
  }
  if (!span_is_on_main_lane(span)) return true;
  const uint32_t around = reserve_around(owners, span, own);
  if (!around) return false;
  if (!is_call) return true;
  if (!prof_i_make_room((void **)&owners->calls, &owners->call_room, owners->call_count,
                        sizeof *owners->calls))
    return false;
  owners->calls[owners->call_count++] = around;
  return true;
}

/* The thread's operators have the ids from first to first + count - 1, by begin. */
static void call_owners_end_thread(prof_i_call_owners *owners, uint64_t first, uint64_t count) {
  prof_i_reserved_id *const reserved = owners->reserved;
  for (uint32_t i = owners->reserved_count; i > 0; i--) { /* an outer one may be any other */
    uint32_t at = i;
    while (reserved[at].outer) at = reserved[at].outer;
    reserved[i].id = reserved[at].id;
    if (at != i) reserved[i].outer = at;
  }
  for (uint32_t i = owners->call_first; i < owners->call_count; i++) {
    const uint64_t place = reserved[owners->calls[i]].id;
    owners->calls[i] = place ? first + count - place : 0;
  }
  owners->call_first = owners->call_count;
  owners->reserved_count = owners->open_count = 0;
  memset(owners->open, 0, sizeof owners->open);
}

uint64_t prof_i_call_owners_next_id(prof_i_call_owners *owners, const prof_i_span *span) {
  if (!span_is_on_main_lane(span) || owners->call_at >= owners->call_count) return 0;
  return owners->calls[owners->call_at++];
}

static void call_owners_fini(prof_i_call_owners *owners) {
  free(owners->calls);
  free(owners->reserved);
  *owners = (prof_i_call_owners){0};
}

/* ---- numbers of rows ---- */

typedef struct event_counter {
  prof_i_event_numbers *numbers;
  prof_i_thread_numbers *thread;
  prof_i_window window;
  uint64_t change_count;
  uint64_t operators_end; /* of the threads before */
} event_counter;

static bool text_equals(prof_i_text text, const char *word) {
  return text.bytes == strlen(word) && memcmp(text.data, word, text.bytes) == 0;
}

static bool category_is_operator(prof_i_text category) { return text_equals(category, "cpu_op"); }

static prof_i_number_kind category_number_kind(prof_i_text category) {
  if (category_is_operator(category) || text_equals(category, "user_annotation"))
    return PROF_I_NUMBER_OPERATOR;
  return prof_i_is_function_category(category) ? PROF_I_NUMBER_FUNCTION : PROF_I_NUMBER_NONE;
}

prof_i_number_kind prof_i_event_numbers_kind(const prof_i_event_numbers *numbers,
                                             const prof_i_span *span) {
  if (!numbers->kinds) return PROF_I_NUMBER_NONE;
  if (span->kind == PROF_EVENT_STEP) return PROF_I_NUMBER_OPERATOR;
  return span->record ? category_number_kind(prof_i_trace_category(numbers->trace, span))
                      : (prof_i_number_kind)numbers->kinds[span->site];
}

/* An allocation, a free, or a failed allocation, as chrome_graphs.c writes them. */
static bool span_is_memory_change(const prof_i_event_numbers *numbers, const prof_i_span *span) {
  prof_i_long_record record;
  if (!span->record || !prof_i_event_read(span->record, &record)) return false;
  const prof_i_memory_record memory = prof_i_memory_read(span->record, &record);
  return prof_i_catalog_pool(&numbers->trace->catalog, memory.pool) &&
         (memory.verb == PROF_I_VERB_ALLOC || memory.verb == PROF_I_VERB_FREE ||
          memory.verb == PROF_I_VERB_OOM);
}

/* False: no memory. */
static bool note_call_owner(event_counter *c, const prof_i_span *span, prof_i_number_kind kind) {
  prof_i_call_owners *const owners = &c->numbers->owners;
  const bool is_call = span->record && prof_i_is_call(span->record);
  if (!call_owners_needs(owners, is_call)) return true;
  const bool passes = kind == PROF_I_NUMBER_FUNCTION || prof_i_is_skipped_span(span);
  return call_owners_add_span(owners, span, is_call,
                              passes                           ? HOLDER_PASSES
                              : kind == PROF_I_NUMBER_OPERATOR ? HOLDER_OPERATOR
                                                               : HOLDER_OTHER,
                              c->thread->operators_left);
}

static int count_spans(void *user, const prof_i_span *spans, size_t span_count) {
  event_counter *const c = user;
  for (size_t i = 0; i < span_count; i++) {
    const prof_i_span *const span = &spans[i];
    const uint64_t end_ns = span->start_ns + span->duration_ns;
    if (!prof_i_window_contains(&c->window, span->start_ns, end_ns)) continue;
    if (span->lane == PROF_I_LANES_MAX) continue;
    if (span->kind == PROF_EVENT_MEMORY) c->change_count += span_is_memory_change(c->numbers, span);
    if (span->kind != PROF_EVENT_SCOPE && span->kind != PROF_EVENT_OPEN &&
        span->kind != PROF_EVENT_STEP)
      continue;
    const prof_i_number_kind kind = prof_i_event_numbers_kind(c->numbers, span);
    if (!note_call_owner(c, span, kind)) return PROF_E_NO_MEMORY;
    c->thread->operators_left += kind == PROF_I_NUMBER_OPERATOR;
    c->thread->functions_left += kind == PROF_I_NUMBER_FUNCTION;
  }
  return PROF_OK;
}

enum { FOUND = 1 };

static int find_operator_span(void *user, const prof_i_span *spans, size_t count) {
  const prof_i_event_numbers *const numbers = user;
  for (size_t i = 0; i < count; i++)
    if (spans[i].kind <= PROF_EVENT_OPEN && spans[i].record &&
        category_is_operator(prof_i_trace_category(numbers->trace, &spans[i])))
      return FOUND;
  return 0;
}

/* Plain scopes have no category of their own. */
static bool has_plain_scopes_only(const prof_trace *trace, const prof_i_trace_thread *thread) {
  uint32_t i = 0;
  while (i < thread->segment_count && trace->segments[thread->first_segment + i].is_plain) i++;
  return i == thread->segment_count && thread->open_count == 0;
}

/* Calls that have their category in the record alone: the first ones of names that the program
   made. Returns FOUND, 0, or what a walk returns. */
static int find_first_calls(prof_i_event_numbers *numbers, uint32_t thread_count) {
  const prof_trace *const trace = numbers->trace;
  int found = 0;
  for (uint32_t i = 0; i < thread_count && !found; i++)
    if (!prof_i_thread_is_stream(&trace->threads[i]) &&
        !has_plain_scopes_only(trace, &trace->threads[i]))
      found = prof_i_trace_walk(trace, i, find_operator_span, numbers);
  return found;
}

/* False: no memory. */
static bool find_kinds(prof_i_event_numbers *numbers, uint32_t thread_count) {
  const uint32_t site_count = prof_i_trace_site_count(numbers->trace);
  uint32_t site = 0;
  while (site < site_count &&
         !category_is_operator(prof_i_trace_site(numbers->trace, site)->category))
    site++;
  const int found = site < site_count ? FOUND : find_first_calls(numbers, thread_count);
  if (found != FOUND) return found == PROF_OK;
  numbers->kinds = calloc(site_count ? site_count : 1, sizeof *numbers->kinds);
  if (!numbers->kinds) return false;
  for (site = 0; site < site_count; site++)
    numbers->kinds[site] =
        (uint8_t)category_number_kind(prof_i_trace_site(numbers->trace, site)->category);
  return true;
}

static int count_thread_events(event_counter *c, uint32_t thread) {
  const prof_trace *const trace = c->numbers->trace;
  if (prof_i_thread_is_stream(&trace->threads[thread])) return PROF_OK;
  prof_i_walker *const walker = prof_i_walker_create(trace, thread, count_spans, c);
  if (!walker) return PROF_E_NO_MEMORY;
  prof_i_walker_skip_before(walker, c->window.from_ns);
  c->thread = &c->numbers->threads[thread];
  const int status = prof_i_walker_run(walker);
  prof_i_walker_destroy(walker);
  call_owners_end_thread(&c->numbers->owners, c->operators_end + 1, c->thread->operators_left);
  c->operators_end += c->thread->operators_left;
  return status;
}

int prof_i_event_numbers_init(prof_i_event_numbers *numbers, const prof_trace *trace,
                              uint32_t thread_count, prof_i_window window, bool with_memory,
                              uint64_t first) {
  event_counter c = {.numbers = numbers, .window = window, .operators_end = first};
  int status = PROF_OK;
  *numbers = (prof_i_event_numbers){.trace = trace, .operators_end = first, .end = first};
  if (!find_kinds(numbers, thread_count)) return PROF_E_NO_MEMORY;
  if (!numbers->kinds || thread_count == 0) return PROF_OK;
  numbers->threads = calloc(thread_count, sizeof *numbers->threads);
  if (!numbers->threads) return PROF_E_NO_MEMORY;
  for (uint32_t i = 0; i < thread_count && status == PROF_OK; i++)
    status = count_thread_events(&c, i);
  uint64_t next = first;
  for (uint32_t i = 0; i < thread_count; i++) {
    numbers->threads[i].operator_first = next;
    next += numbers->threads[i].operators_left;
  }
  numbers->operators_end = numbers->memory_next = next;
  if (with_memory) next += c.change_count;
  for (uint32_t i = 0; i < thread_count; i++) {
    numbers->threads[i].function_first = next;
    next += numbers->threads[i].functions_left;
  }
  numbers->end = next;
  return status;
}

void prof_i_event_numbers_fini(prof_i_event_numbers *numbers) {
  free(numbers->kinds);
  free(numbers->threads);
  call_owners_fini(&numbers->owners);
  *numbers = (prof_i_event_numbers){0};
}

uint64_t prof_i_event_numbers_next(prof_i_event_numbers *numbers, uint32_t thread,
                                   prof_i_number_kind kind) {
  prof_i_thread_numbers *const of = &numbers->threads[thread];
  const bool is_function = kind == PROF_I_NUMBER_FUNCTION;
  uint64_t *const left = is_function ? &of->functions_left : &of->operators_left;
  if (*left) --*left; /* what the first walk counted comes in the second */
  return (is_function ? of->function_first : of->operator_first) + *left;
}

/* ---- calls of functions ---- */

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
  uint32_t around;         /* number of the enclosing call; 0: none */
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

/* ---- calls of functions: the first walk ---- */

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

/* ---- calls of functions: the second walk ---- */

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
