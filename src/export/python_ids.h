/* Chrome JSON: "Python id" and "Python parent id" of a traced function's call, and of a module's.
   Each call has a number of its own in the file. Its parent is the innermost such call around it,
   as torch.profiler has it. The walk hands out what is inside first, so a number may be promised
   to a call that still waits. */
#ifndef PROF_EXPORT_PYTHON_IDS_H
#define PROF_EXPORT_PYTHON_IDS_H

#include "../trace/walker.h"

typedef struct prof_i_python_ids {
  const prof_trace *trace;
  uint8_t *is_function; /* by site; NULL: the trace has no functions */
  uint64_t *promised;   /* by place on lane 0's stack: the number of the call there; 0: none yet */
  uint32_t room;
  uint64_t last; /* number given so far */
} prof_i_python_ids;

typedef struct prof_i_python_id {
  uint64_t own, parent; /* parent 0: none */
} prof_i_python_id;

/* False: no memory. */
bool prof_i_python_ids_init(prof_i_python_ids *ids, const prof_trace *trace);
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

/* Of a function's span that the walker, which looks around, has just handed out. False: no
   memory. */
bool prof_i_python_ids_take(prof_i_python_ids *ids, prof_i_walker *walker, const prof_i_span *span,
                            prof_i_python_id *id_out);

#endif
