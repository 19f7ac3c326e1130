/* Tracing of every Python function, in three files. The interpreter's callbacks are in functions.c,
   which switches them on and off. Which code is traced, and its names, is in function_code.c. The
   open calls of each thread are in function_stack.c. This header has what they share, and the
   inline path of known code. All under the GIL. */
#ifndef PROF_PYTHON_FUNCTIONS_H
#define PROF_PYTHON_FUNCTIONS_H

#include <prof/profiler.h>

#include "../core/record/open_stack.h"
#include "internal.h"

/* Functions that have different names in different versions of CPython. */
typedef struct prof_i_functions_python {
  ptrdiff_t (*request_index)(void (*destroy)(void *));
  int (*get_extra)(prof_i_py *code, ptrdiff_t index, void **extra_out);
  int (*set_extra)(prof_i_py *code, ptrdiff_t index, void *extra);
  void (*set_profile)(int (*call)(prof_i_py *, prof_i_py *, int, prof_i_py *), prof_i_py *object);
  /* NULL: not available */
  int (*set_profile_of)(void *thread, int (*call)(prof_i_py *, prof_i_py *, int, prof_i_py *),
                        prof_i_py *object);
  void *(*interpreter)(void);
  void *(*first_thread)(void *interpreter);
  void *(*next_thread)(void *thread);
  void *(*function_of)(prof_i_py *builtin);
  prof_i_py *(*self_of)(prof_i_py *builtin);
} prof_i_functions_python;

/* UNKNOWN: the query failed this time. OWN: prof's. What it calls may be quiet. */
typedef enum prof_i_function_kind {
  PROF_I_FUNCTION_EXCLUDED,
  PROF_I_FUNCTION_UNKNOWN,
  PROF_I_FUNCTION_ORDINARY,
  PROF_I_FUNCTION_MODULE,
  PROF_I_FUNCTION_IMPORT,
  PROF_I_FUNCTION_OWN
} prof_i_function_kind;

/* What prof knows of a code object. It is freed with it, because the address may be reused. */
typedef struct prof_i_function {
  prof_site site;
  uint64_t epoch; /* of its last query */
  prof_i_function_kind function_kind;
  /* Of a C function: pybind11's dispatcher of many functions, which differ by their self object. */
  bool is_of_many;
  bool is_also_function; /* of a module's call: a function, if the module has no name */
  /* The standard library's, torch's, an import, or of C: not recorded if prof calls it. All other
     code is the program's. */
  bool is_support;
  bool is_silent; /* OWN: all that it calls is left out */
  const char *category;
  char *name, *source, *file; /* malloc()ed; NULL: not set yet */
} prof_i_function;

typedef struct prof_i_function_call {
  /* the code, which its frame holds, or the frame: see prof_i_functions.is_by_frame */
  const prof_i_py *of;
  uint64_t start; /* 0: not recorded; or PROF_I_FUNCTION_QUIET, _SILENT */
} prof_i_function_call;

/* Starts that no scope has. QUIET: a call of prof's own code, or of support code that this calls.
   SILENT: an import by such code, or code of prof that is silent. All that it calls is silent,
   but for functions of the program that the import system calls. */
#define PROF_I_FUNCTION_QUIET (UINT64_MAX - 1)
#define PROF_I_FUNCTION_SILENT UINT64_MAX

/* A call of an nn.Module on the stack. */
typedef struct prof_i_module_call {
  size_t place;
  uint64_t start; /* of the call at this index: a later call has another start */
  int64_t number;
} prof_i_module_call;

/* The open calls of a thread. */
typedef struct prof_i_function_stack {
  struct prof_i_function_stack *next, **at; /* among all threads' */
  prof_i_module_call *modules; /* malloc()ed; ended ones on top are removed by the next search */
  size_t module_count, module_room;
  uint64_t stamp; /* of prof_i_functions_now, when the stack was last checked */
  uint64_t epoch; /* the same */
  /* While prof calls a method of a value (own_calls.c): the frame that called prof, borrowed. */
  const prof_i_py *own_frame;
  size_t count, room;
  prof_i_function_call calls[];
} prof_i_function_stack;

/* The state of the tracing. */
typedef struct prof_i_functions {
  prof_i_functions_python python;
  prof_i_python_functions_given given;
  ptrdiff_t index;         /* of our slot in the co_extra of code objects */
  uint64_t epoch;          /* of the filter */
  uint64_t stamp;          /* changes with each epoch, and when stacks begin */
  bool has_stacks;         /* stacks are requested */
  bool is_on, is_by_frame; /* by_frame: calls are known by frame, not by code */
} prof_i_functions;

extern prof_i_functions prof_i_functions_now __attribute__((visibility("hidden")));
extern __thread prof_i_function_stack *prof_i_function_stack_here
    __attribute__((visibility("hidden"), tls_model("initial-exec")));

/* Whether a start is that of a scope. */
static inline bool prof_i_function_is_scope(uint64_t start) {
  return start - 1 < PROF_I_FUNCTION_QUIET - 1;
}

/* Whether a call that begins now is made on behalf of prof. If the caller is excluded,
   prof_i_function_begin_special() asks once more. */
static inline bool prof_i_function_is_quiet(const prof_i_function_stack *s,
                                            const prof_i_function *f) {
  const uint64_t around = s->count > 0 ? s->calls[s->count - 1].start : 0;
  return around >= PROF_I_FUNCTION_QUIET && (f->is_support || around == PROF_I_FUNCTION_SILENT);
}

/* ---- function_code.c ---- */

extern const char prof_i_category_of_python[] __attribute__((visibility("hidden"))),
    prof_i_category_of_c[] __attribute__((visibility("hidden")));

/* Called first. False: code objects have no free co_extra slot. */
bool prof_i_function_code_create(void);

/* Learns CPython's layout of C functions from one that was made of this method. */
void prof_i_function_code_probe(prof_i_py *function, const prof_i_py_method *method);

/* Classifies code that is called, or runs in `frame`. NULL: an error is pending. An exception that
   is thrown into the function may be pending, and stays so. */
prof_i_function *prof_i_function_classify(prof_i_py *code, prof_i_py *frame);

/* NULL: not classified for this filter yet. */
static inline prof_i_function *prof_i_function_known(prof_i_py *code) {
  prof_i_function *f = NULL;
  prof_i_functions_now.python.get_extra(code, prof_i_functions_now.index, (void **)&f);
  return f && PROF_I_LIKELY(f->epoch == prof_i_functions_now.epoch) ? f : NULL;
}

static inline bool prof_i_function_is_excluded(prof_i_py *code) {
  const prof_i_function *const f = prof_i_function_known(code);
  return f && f->function_kind == PROF_I_FUNCTION_EXCLUDED;
}

/* Classifies a callable. NULL: not a C function, or excluded. An error may be pending
   afterwards. */
prof_i_function *prof_i_function_of_c(prof_i_py *callable);

/* The function of module_call's answer (name, place, ...), which is queried at each call. It has
   its own name in the catalog, because a frame needs one. NULL: no memory. */
prof_i_function *prof_i_function_of_module(prof_i_py *answer);

/* ---- function_stack.c ---- */

/* Called first. False: no pthread key is free. */
bool prof_i_function_stack_create(void);

/* Makes room on the stack, and checks it for a new stamp. is_of_c: a C function is being called in
   the current frame, else that frame's function is. False: an error is pending. */
bool prof_i_function_stack_prepare(bool is_of_c);

/* Begins a call that is quiet, or needs a query of Python's side. Signal handlers may use the stack
   during it. */
void prof_i_function_begin_special(const prof_i_py *of, prof_i_function *f, prof_i_py *frame);

/* Ends a call that is not the last one on the stack, or not on it. */
void prof_i_function_end_unusual(const prof_i_py *of);

/* Begins the running functions of this thread, if stacks are requested. Else only those of prof
   that the program's innermost function has called. An error may be pending afterwards. */
void prof_i_function_begin_running(void);

/* Ends all open calls of this thread. Returns whether another thread has recorded calls that are
   open. */
bool prof_i_function_end_all(void);

#endif
