/* Chrome JSON: numbers of rows. The walk hands out spans from the last begin to the first, thread by
   thread. So a first walk counts the rows or finds their order, and a second walk has the numbers.
   Called by chrome.c, chrome_plain.c, chrome_event.c and chrome_graphs.c. */
#ifndef PROF_EXPORT_CHROME_NUMBERS_H
#define PROF_EXPORT_CHROME_NUMBERS_H

#include <stdbool.h>

#include "../reader/walker.h"
#include "exporter.h"

/* ---- owners of calls ---- */

/* Assigns the "External id" of a vendor's call in a trace with PyTorch's operators. As in Kineto,
   it is the id of the innermost operator or range around the call. Traced functions and other calls
   around it are skipped. The walk visits a call before the scopes around it. So a first walk finds
   each call's operator, and the second walk (chrome_event.c) writes its id. */

/* Deeper than Perfetto draws. Calls below this depth belong to no scope. */
enum { PROF_I_OWNER_DEPTHS = 512 };

/* The id that the calls in a scope will get from it. */
typedef struct prof_i_reserved_id {
  uint64_t id;    /* of the operator; 0: it was no operator */
  uint32_t outer; /* the reservation of the scope around it, if that has the id; 0: none */
} prof_i_reserved_id;

typedef struct prof_i_call_owners {
  uint64_t *calls; /* of each call on lane 0, in the order of both walks: its operator's id; 0 */
  uint32_t call_count, call_room;
  uint32_t call_at; /* of the second walk: the next call */
  /* These of the thread that the first walk is at. */
  uint32_t call_first;
  prof_i_reserved_id *reserved; /* from 1 on */
  uint32_t reserved_count, reserved_room;
  uint32_t open_count; /* depths with a reservation */
  uint32_t open[PROF_I_OWNER_DEPTHS];
} prof_i_call_owners;

typedef enum prof_i_call_owner_kind {
  PROF_I_HOLDER_OPERATOR,
  PROF_I_HOLDER_PASSES, /* a function: what is around it may be an operator */
  PROF_I_HOLDER_OTHER
} prof_i_call_owner_kind;

static inline bool prof_i_call_owners_needs(const prof_i_call_owners *owners, bool is_call) {
  return is_call || owners->open_count > 0;
}

/* The operator's id of the call that the second walk has just handed out; 0: it has none. */
uint64_t prof_i_call_owners_next_id(prof_i_call_owners *owners, const prof_i_span *span);

/* ---- numbers of rows ---- */

/* "Ev Idx", the number of a row among those that torch.profiler numbers, from 0 on. First come
   operators and ranges (cpu_op, user_annotation), thread by thread and of each thread by begin.
   Then come changes of memory, then calls of traced functions, as operators. Numbers are given
   downwards. If rows overlap without nesting, their order between lanes is not by begin. Only a
   trace with PyTorch's operators has numbers. The "External id" of an operator or range is its
   number + 1. Calls inside of it have the same id. */

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
  uint64_t operators_end;         /* behind those of all threads' operators */
  uint64_t end;                   /* behind all numbers */
  uint64_t memory_next;           /* of the next change of memory */
  prof_i_call_owners owners;
} prof_i_event_numbers;

/* Counts what is in the window; changes of memory where with_memory. first: the first number.
   PROF_OK or PROF_E_NO_MEMORY. */
int prof_i_event_numbers_init(prof_i_event_numbers *numbers, const prof_trace *trace,
                              uint32_t thread_count, prof_i_window window, bool with_memory,
                              uint64_t first);
void prof_i_event_numbers_fini(prof_i_event_numbers *numbers);

/* Of a scope, an open scope or a step of the host's. */
prof_i_number_kind prof_i_event_numbers_kind(const prof_i_event_numbers *numbers,
                                             const prof_i_span *span);

/* The number of such a span of that kind that the thread's walk has just handed out. */
uint64_t prof_i_event_numbers_next(prof_i_event_numbers *numbers, uint32_t thread,
                                   prof_i_number_kind kind);

/* ---- calls of functions ---- */

/* "Python id" and "Python parent id" of a traced function's call, and of a module's. They are as
   torch.profiler counts, and events() of Python: calls of all threads by their begins, from 1 on.
   What began before the window begins with it. Of those that begin together, those of the earlier
   thread come first, and of one thread the outer ones. A call's parent is the innermost such call
   around it. */

typedef struct prof_i_python_ids {
  const prof_trace *trace;
  uint8_t *is_function; /* by site; NULL: the trace has no functions */
  uint32_t *numbers;    /* of each call, in the order in which both walks hand them out */
  uint32_t call_count;
  uint64_t before;  /* calls of the captures before, in a merged file */
  uint32_t call_at; /* of the second walk: the next call */
  /* Both walks visit a call after its inner calls. So a number is reserved for it, from 1 on, the
     same one in both walks. */
  uint32_t *holders; /* by reservation: its call, in the order of the walks */
  uint32_t reserved_count;
  uint32_t reserved_last;   /* reservations so far in this walk */
  uint32_t *reserved_index; /* by place on lane 0's stack: the call's reservation; 0: none */
  uint32_t room;
} prof_i_python_ids;

typedef struct prof_i_python_id {
  uint64_t own, parent; /* parent 0: none */
} prof_i_python_id;

/* Walks the trace where it has functions. before: the numbers begin behind this one. PROF_OK, or
   PROF_E_NO_MEMORY. */
int prof_i_python_ids_init(prof_i_python_ids *ids, const prof_trace *trace, uint32_t thread_count,
                           prof_i_window window, uint64_t before);
void prof_i_python_ids_fini(prof_i_python_ids *ids);

static inline bool prof_i_python_ids_any(const prof_i_python_ids *ids) {
  return ids->is_function != NULL;
}
/* Are plain scopes of that site calls of functions? */
static inline bool prof_i_python_ids_has(const prof_i_python_ids *ids, uint32_t site) {
  return ids->is_function && ids->is_function[site];
}
/* Is the span a call of a function? */
bool prof_i_python_ids_is_call(const prof_i_python_ids *ids, const prof_i_span *span);

/* For the function's span that the second walk has just handed out. Both walks hand out the same
   spans. False: no memory. */
bool prof_i_python_ids_next(prof_i_python_ids *ids, prof_i_walker *walker, const prof_i_span *span,
                            prof_i_python_id *id_out);

#endif
