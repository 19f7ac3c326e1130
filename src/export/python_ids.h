/* Chrome JSON: "Python id" and "Python parent id" of a traced function's call, and of a module's.
   As torch.profiler counts, and events() of Python: calls of all threads by their begins, from 1
   on. What began before the window begins with it. Of those that begin together, those of the
   earlier thread come first, and of one thread the outer ones. A call's parent is the innermost
   such call around it. The walk hands out spans from the last begin to the first, thread by thread.
   So a first walk finds the order. */
#ifndef PROF_EXPORT_PYTHON_IDS_H
#define PROF_EXPORT_PYTHON_IDS_H

#include "../reader/walker.h"
#include "exporter.h"

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
