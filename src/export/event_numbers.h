/* Chrome JSON: "Ev Idx", the number of a row among those that torch.profiler numbers, from 0 on.
   First come operators and ranges (cpu_op, user_annotation), thread by thread and of each thread by
   begin; then changes of memory; then calls of traced functions, as operators. The walk hands out
   spans from the last begin to the first. So a first walk counts, and numbers are given downwards.
   If rows overlap without nesting, their order between lanes is not by begin. Only a trace with
   PyTorch's operators has numbers. An operator's or range's "External id" is its number + 1, and
   calls in it have the same (call_owners.h). Called by chrome.c, chrome_plain.c,
   chrome_event.c and chrome_memory.c. */
#ifndef PROF_EXPORT_EVENT_NUMBERS_H
#define PROF_EXPORT_EVENT_NUMBERS_H

#include <stdbool.h>

#include "../reader/walk.h"
#include "call_owners.h"
#include "window.h"

typedef enum prof_i_number_kind {
  PROF_I_NUMBER_NONE,
  PROF_I_NUMBER_OPERATOR, /* or a range, or a step */
  PROF_I_NUMBER_FUNCTION
} prof_i_number_kind;

/* Of one thread: how many of its rows have no number yet, and the first number of the others. */
typedef struct prof_i_thread_numbers {
  uint64_t operator_first, operators_left;
  uint64_t function_first, functions_left;
} prof_i_thread_numbers;

typedef struct prof_i_event_numbers {
  const prof_trace *trace;
  uint8_t *kinds;                 /* prof_i_number_kind by site; NULL: the trace has no operators */
  prof_i_thread_numbers *threads; /* by number */
  uint64_t operator_count;        /* of all threads */
  uint64_t memory_next;           /* of the next change of memory */
  prof_i_call_owners owners;
} prof_i_event_numbers;

/* Counts what is in the window; changes of memory where with_memory. PROF_OK or
   PROF_E_NO_MEMORY. */
int prof_i_event_numbers_init(prof_i_event_numbers *numbers, const prof_trace *trace,
                              uint32_t thread_count, prof_i_window window, bool with_memory);
void prof_i_event_numbers_fini(prof_i_event_numbers *numbers);

/* Of a scope, an open scope or a step of the host's. */
prof_i_number_kind prof_i_event_numbers_kind(const prof_i_event_numbers *numbers,
                                             const prof_i_span *span);

/* The number of such a span of that kind that the thread's walk has just handed out. */
uint64_t prof_i_event_numbers_next(prof_i_event_numbers *numbers, uint32_t thread,
                                   prof_i_number_kind kind);

#endif
