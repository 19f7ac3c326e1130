/* Stacks of backward calls in tables. There, an operator in a backward call has the stack of the
   forward call. Frames of autograd are left out. In torch/autograd/profiler_util.py this is done by
   _set_backward_stacktraces() and _filter_stack_entry(). The cursor and JSON keep the real stacks,
   as torch.profiler's do. Called by aggregate.c. */
#include <stdlib.h>
#include <string.h>

#include "../format/parse.h"
#include "call_stacks.h"
#include "torch.h"

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
  const prof_i_call_numbers numbers = prof_i_backward_numbers(call_stacks->backward, span);
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
  if (prof_i_backward_same_name(call_stacks->backward, span,
                                &prof_i_walker_parent(l->walker, span)->span))
    return true;
  if (own.bytes && !prof_i_call_stacks_of_text(call_stacks, own, &number)) return false;
  return prof_i_backward_add(call_stacks->backward, numbers, l->thread, span->start_ns, number);
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
    is_done = prof_i_backward_add(l->call_stacks->backward,
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
  if (!prof_i_backward_create(trace, &call_stacks->backward)) return false;
  if (!call_stacks->backward) return true;
  if (!prof_i_call_stacks_make_room(call_stacks)) return false;
  stack_search l = {.call_stacks = call_stacks, .from_ns = from_ns, .to_ns = to_ns};
  bool is_done = true;
  for (l.thread = 0; is_done && l.thread < trace->thread_count; l.thread++)
    if (!prof_i_thread_is_stream(&trace->threads[l.thread])) is_done = search_thread(&l);
  free(l.ranges);
  return is_done;
}
