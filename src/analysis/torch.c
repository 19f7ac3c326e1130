/* See torch.h. */
#define _GNU_SOURCE /* memmem() */
#include "torch.h"

#include <stdlib.h>
#include <string.h>

#include "../format/parse.h"
#include "call_stacks.h"

enum { CALLS_FIRST = 1024 };

/* the call's name follows */
static const char range_before[] = "autograd::engine::evaluate_function: ";
static const char sequence_key[] = "Sequence number", forward_key[] = "Fwd thread id",
                  thread_key[] = "Thread id";

static bool bytes_equal(const char *data, uint64_t bytes, const char *text) {
  return bytes == strlen(text) && memcmp(data, text, (size_t)bytes) == 0;
}

/* ---- names ---- */

bool prof_i_torch_is_annotation(prof_i_text category) {
  return prof_i_text_equals(category, "user_annotation");
}

bool prof_i_torch_hides_frame(const char *frame, size_t bytes) {
  static const char *const parts[][2] = {{"autograd/__init__", "_make_grads"},
                                         {"autograd/__init__", "backward"},
                                         {"torch/tensor", "backward"}};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (memmem(frame, bytes, parts[i][0], strlen(parts[i][0])) &&
        memmem(frame, bytes, parts[i][1], strlen(parts[i][1])))
      return true;
  return false;
}

bool prof_i_backward_is_range(prof_i_text name) { return prof_i_text_begins(name, range_before); }

/* ---- an operator's numbers ---- */

prof_i_call_numbers prof_i_call_numbers_of(const prof_event *scope) {
  prof_i_call_numbers numbers = {-1, 0, 0};
  if (!bytes_equal(scope->category, scope->category_bytes, "cpu_op")) return numbers;
  for (uint32_t i = scope->arg_count; i > 0; i--) { /* they follow the shapes */
    const prof_trace_arg *const arg = &scope->args[i - 1];
    if (!arg->key) break;
    if (arg->type != PROF_ARG_I64 && arg->type != PROF_ARG_U64) continue;
    if (bytes_equal(arg->key, arg->key_bytes, sequence_key))
      numbers.sequence = arg->value.i64 < 0 ? -1 : arg->value.i64;
    else if (bytes_equal(arg->key, arg->key_bytes, forward_key))
      numbers.forward_thread = arg->value.i64 < 0 ? 0 : arg->value.u64;
    else if (bytes_equal(arg->key, arg->key_bytes, thread_key))
      numbers.thread = arg->value.i64 < 0 ? 0 : arg->value.u64;
  }
  if (numbers.sequence < 0) numbers.forward_thread = numbers.thread = 0;
  return numbers;
}

static bool schema_has_key(const prof_i_schema *schema, const char *key) {
  for (uint32_t i = 0; i < schema->count; i++)
    if (bytes_equal((const char *)(schema->record + schema->keys[i] + 1),
                    schema->record[schema->keys[i]], key))
      return true;
  return false;
}

/* Numbers of a scope of the thread being walked. A scope without arguments has no numbers. */
static prof_i_call_numbers backward_numbers(prof_i_backward *backward, const prof_i_span *span) {
  static const prof_i_call_numbers none = {-1, 0, 0};
  if (!span->record || !backward->has_numbers) return none;
  const prof_i_catalog *const catalog = &backward->trace->catalog;
  const uint32_t number = prof_i_word_schema(span->record[2]);
  const prof_i_schema *const schema = number ? prof_i_catalog_schema(catalog, number) : NULL;
  if (!schema || !backward->has_numbers[schema - catalog->schemas]) return none;
  prof_i_trace_expand(backward->trace, backward->thread, span, &backward->event);
  return prof_i_call_numbers_of(&backward->event);
}

static prof_i_text range_name(prof_i_backward *backward, const prof_i_span *span) {
  if (!span->record) return prof_i_trace_site(backward->trace, span->site)->name;
  prof_i_trace_expand(backward->trace, backward->thread, span, &backward->event);
  return (prof_i_text){backward->event.name, backward->event.name_bytes};
}

/* Ranges have their name from a site: there is one for each kind of operator. */
bool prof_i_backward_is_call(prof_i_backward *backward, const prof_i_span *span,
                             uint32_t range_site, prof_i_call_numbers *numbers_out) {
  *numbers_out = backward_numbers(backward, span);
  if (numbers_out->forward_thread) return !backward->is_range[span->site];
  if (!range_site) return false;
  const prof_i_text range = prof_i_trace_site(backward->trace, range_site)->name,
                    name = range_name(backward, span);
  const uint64_t before = sizeof range_before - 1;
  return range.bytes == before + name.bytes &&
         memcmp(range.data + before, name.data, (size_t)name.bytes) == 0;
}

static bool backward_same_name(prof_i_backward *backward, const prof_i_span *a,
                               const prof_i_span *b) {
  /* of the capture's bytes */
  const prof_i_text first = range_name(backward, a), second = range_name(backward, b);
  return first.bytes == second.bytes && memcmp(first.data, second.data, (size_t)first.bytes) == 0;
}

/* ---- forward calls ---- */

static prof_i_forward_call *call_slot(prof_i_forward_call *calls, uint32_t room, uint64_t thread,
                                      int64_t sequence) {
  const uint64_t by_thread = (thread + 1) * UINT64_C(0xff51afd7ed558ccd),
                 hash = ((uint64_t)sequence ^ by_thread ^ by_thread >> 32) *
                        UINT64_C(0x9e3779b97f4a7c15);
  uint32_t at = (uint32_t)(hash >> 32) & (room - 1);
  while (calls[at].number && (calls[at].thread != thread || calls[at].sequence != sequence))
    at = (at + 1) & (room - 1);
  return &calls[at];
}

static bool calls_grow(prof_i_backward *backward) {
  const uint32_t room = backward->call_room ? backward->call_room * 2 : CALLS_FIRST;
  prof_i_forward_call *const larger = calloc(room, sizeof *larger);
  if (!larger) return false;
  for (uint32_t i = 0; i < backward->call_room; i++) {
    const prof_i_forward_call *const call = &backward->calls[i];
    if (call->number) *call_slot(larger, room, call->thread, call->sequence) = *call;
  }
  free(backward->calls);
  backward->calls = larger;
  backward->call_room = room;
  return true;
}

/* Adds a forward call. Of calls with one number and one thread the earliest is kept. Of those that
   began at the same time the last one added is kept. number: as in prof_i_stack_node. False: no
   memory. */
static bool backward_add(prof_i_backward *backward, prof_i_call_numbers numbers, uint32_t owner,
                         uint64_t start_ns, uint32_t number) {
  if (backward->call_count * 2 >= backward->call_room && !calls_grow(backward)) return false;
  prof_i_forward_call *const call =
      call_slot(backward->calls, backward->call_room, numbers.thread, numbers.sequence);
  const bool is_new = call->number == 0;
  if (!is_new && call->owner != owner) {
    call->is_of_many = true;
    return true;
  }
  if (!is_new && call->start_ns < start_ns) return true;
  *call = (prof_i_forward_call){numbers.thread, numbers.sequence, start_ns,
                                owner,          number + 1,       !is_new && call->is_of_many};
  backward->call_count += is_new;
  return true;
}

uint32_t prof_i_backward_forward(const prof_i_backward *backward, prof_i_call_numbers numbers) {
  if (numbers.sequence < 0 || !backward->call_room) return 0;
  const prof_i_forward_call *call =
      call_slot(backward->calls, backward->call_room, numbers.forward_thread, numbers.sequence);
  if (!call->number) call = call_slot(backward->calls, backward->call_room, 0, numbers.sequence);
  return call->number && !call->is_of_many ? call->number - 1 : 0;
}

/* ---- create, destroy ---- */

/* Only a schema without "Thread id", or one of autograd's ranges, can belong to a backward call. */
static bool may_have_calls(const prof_trace *trace) {
  const uint32_t site_count = prof_i_trace_site_count(trace);
  for (uint32_t i = 0; i < trace->catalog.schema_count; i++)
    if (schema_has_key(&trace->catalog.schemas[i], forward_key) &&
        !schema_has_key(&trace->catalog.schemas[i], thread_key))
      return true;
  for (uint32_t site = 0; site < site_count; site++)
    if (prof_i_backward_is_range(prof_i_trace_site(trace, site)->name)) return true;
  return false;
}

static bool find_schemas(prof_i_backward *backward) {
  const prof_i_catalog *const catalog = &backward->trace->catalog;
  if (catalog->schema_count == 0) return true;
  backward->has_numbers = calloc(catalog->schema_count, sizeof *backward->has_numbers);
  for (uint32_t i = 0; backward->has_numbers && i < catalog->schema_count; i++)
    backward->has_numbers[i] = schema_has_key(&catalog->schemas[i], sequence_key);
  return backward->has_numbers != NULL;
}

static bool find_ranges(prof_i_backward *backward) {
  const uint32_t site_count = prof_i_trace_site_count(backward->trace);
  backward->is_range = calloc(site_count, sizeof *backward->is_range);
  for (uint32_t site = 0; backward->is_range && site < site_count; site++)
    backward->is_range[site] =
        prof_i_backward_is_range(prof_i_trace_site(backward->trace, site)->name);
  return backward->is_range != NULL;
}

/* *backward_out NULL: the capture has no backward call. False: no memory. */
static bool backward_create(const prof_trace *trace, prof_i_backward **backward_out) {
  *backward_out = NULL;
  if (!may_have_calls(trace)) return true;
  prof_i_backward *const backward = calloc(1, sizeof *backward);
  if (!backward) return false;
  backward->trace = trace;
  if (find_schemas(backward) && find_ranges(backward))
    *backward_out = backward;
  else
    prof_i_backward_destroy(backward);
  return *backward_out != NULL;
}

void prof_i_backward_destroy(prof_i_backward *backward) {
  if (!backward) return;
  free(backward->is_range);
  free(backward->has_numbers);
  free(backward->calls);
  free(backward);
}

/* ---- call stacks of PyTorch's operators ---- */

/* Stacks of backward calls in tables. There, an operator in a backward call has the stack of the
   forward call. Frames of autograd are left out. In torch/autograd/profiler_util.py this is done by
   _set_backward_stacktraces() and _filter_stack_entry(). The cursor and JSON keep the real stacks,
   as torch.profiler's do. Called by aggregate.c. */

/* Autograd's own range around a backward call. It has no number, so it takes that of the call. If
   no other forward call has this number, the range serves as the forward call. That happens if the
   forward call ran in a backward one. */
typedef struct backward_range {
  int64_t sequence;
  uint64_t start_ns;
  uint32_t number;
} backward_range;

typedef struct stack_search {
  prof_i_call_stacks *call_stacks;
  prof_i_walker *walker;
  uint64_t from_ns, to_ns;
  /* Of the thread being walked. */
  uint32_t thread;
  uint64_t torch_thread; /* 0: unknown so far */
  backward_range *ranges;
  uint32_t range_count, range_room;
  prof_i_span call; /* the last backward call, and its number */
  int64_t call_sequence;
} stack_search;

static bool is_inside_range(const stack_search *l, uint64_t start_ns) {
  return start_ns >= l->from_ns && (l->to_ns == 0 || start_ns < l->to_ns);
}

/* A walk meets inner scopes first, the latest of them first. So the last backward call is the first
   one in the range. False: no memory. */
static bool keep_range(stack_search *l, const prof_i_span *span) {
  uint32_t number;
  if (l->call_sequence < 0 || l->call.lane != span->lane || l->call.depth != span->depth + 1 ||
      l->call.start_ns >= span->start_ns + span->duration_ns)
    return true;
  const int64_t sequence = l->call_sequence;
  l->call_sequence = -1;
  if (!prof_i_call_stacks_of_span(l->call_stacks, l->walker, span, &number)) return false;
  if (prof_i_call_stacks_is_backward(l->call_stacks, number)) return true;
  if (!prof_i_make_room((void **)&l->ranges, &l->range_room, l->range_count, sizeof *l->ranges))
    return false;
  l->ranges[l->range_count++] = (backward_range){sequence, span->start_ns, number};
  return true;
}

/* False: no memory. */
static bool search_span(stack_search *l, const prof_i_span *span) {
  prof_i_call_stacks *const call_stacks = l->call_stacks;
  uint32_t around, number;
  if (span->kind > PROF_EVENT_OPEN || !is_inside_range(l, span->start_ns)) return true;
  if (call_stacks->backward->is_range[span->site]) return keep_range(l, span);
  const prof_i_call_numbers numbers = backward_numbers(call_stacks->backward, span);
  if (numbers.sequence < 0) return true;
  /* valid until another scope is expanded */
  const prof_i_text own = prof_i_scope_own_stack(&call_stacks->backward->event);
  if (numbers.thread) l->torch_thread = numbers.thread;
  if (numbers.forward_thread) {
    l->call = *span;
    l->call_sequence = numbers.sequence;
    return true;
  }
  if (!prof_i_call_stacks_of_span(call_stacks, l->walker, span, &around) ||
      !prof_i_call_stacks_of_scope(call_stacks, span, around, &number))
    return false;
  if (prof_i_call_stacks_is_backward(call_stacks, number)) return true;
  /* e.g. vmap calls mul inside of mul: torch.profiler leaves the inner one out */
  if (backward_same_name(call_stacks->backward, span, &prof_i_walker_parent(l->walker, span)->span))
    return true;
  if (own.bytes && !prof_i_call_stacks_of_text(call_stacks, own, &number)) return false;
  return backward_add(call_stacks->backward, numbers, l->thread, span->start_ns, number);
}

static int search_spans(void *user, const prof_i_span *spans, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (!search_span(user, &spans[i])) return PROF_E_NO_MEMORY;
  return 0;
}

static bool search_thread(stack_search *l) {
  prof_i_walker *const walker = l->walker =
      prof_i_walker_create(l->call_stacks->trace, l->thread, search_spans, l);
  if (!walker) return false;
  prof_i_walker_track_parents(walker, l->call_stacks, prof_i_call_stacks_enclosing);
  prof_i_walker_skip_before(walker, l->from_ns);
  l->call_stacks->backward->thread = l->thread;
  l->torch_thread = 0;
  l->range_count = 0;
  l->call_sequence = -1;
  const int status = prof_i_walker_run(walker);
  prof_i_walker_destroy(walker);
  bool is_done = status == 0;
  for (uint32_t i = 0; is_done && l->torch_thread && i < l->range_count; i++)
    is_done = backward_add(l->call_stacks->backward,
                           (prof_i_call_numbers){l->ranges[i].sequence, 0, l->torch_thread},
                           l->thread, l->ranges[i].start_ns, l->ranges[i].number);
  return is_done;
}

static bool has_own_stacks(const prof_trace *trace) {
  for (uint32_t i = 0; i < trace->catalog.schema_count; i++) {
    const prof_i_schema *const schema = &trace->catalog.schemas[i];
    for (uint32_t k = 0; k < schema->count; k++)
      if (schema->record[schema->keys[k]] == sizeof PROF_STACK_KEY - 1 &&
          memcmp(schema->record + schema->keys[k] + 1, PROF_STACK_KEY, sizeof PROF_STACK_KEY - 1) ==
              0)
        return true;
  }
  return false;
}

bool prof_i_torch_find_forward_stacks(prof_i_call_stacks *call_stacks, uint64_t from_ns,
                                      uint64_t to_ns) {
  const prof_trace *const trace = call_stacks->trace;
  call_stacks->is_of_table = true;
  if (!call_stacks->is_function && !has_own_stacks(trace)) return true; /* there are no stacks */
  if (!backward_create(trace, &call_stacks->backward)) return false;
  if (!call_stacks->backward) return true;
  if (!prof_i_call_stacks_make_room(call_stacks)) return false;
  stack_search l = {.call_stacks = call_stacks, .from_ns = from_ns, .to_ns = to_ns};
  bool is_done = true;
  for (l.thread = 0; is_done && l.thread < trace->thread_count; l.thread++)
    if (!prof_i_thread_is_stream(&trace->threads[l.thread])) is_done = search_thread(&l);
  free(l.ranges);
  return is_done;
}
