/* What sees every Python function, in three rooms: functions.c has what the interpreter calls and
   switches on and off, function_code.c which code is wanted and what it is called, function_stack.c
   what stands open on each thread. All under the GIL. Here is what they share, and what a call that
   is known already takes. */
#ifndef PROF_PYTHON_FUNCTIONS_H
#define PROF_PYTHON_FUNCTIONS_H

#include <prof/profiler.h>

#include "../core/record/open_stack.h"
#include "interpreter.h"

/* What not every CPython exports by one name. */
typedef struct prof_i_functions_python {
  ptrdiff_t (*request_index)(void (*destroy)(void *));
  int (*get_extra)(prof_i_py *code, ptrdiff_t index, void **extra_out);
  int (*set_extra)(prof_i_py *code, ptrdiff_t index, void *extra);
  void (*set_profile)(int (*call)(prof_i_py *, prof_i_py *, int, prof_i_py *), prof_i_py *object);
  /* NULL: it is not to be had */
  int (*set_profile_of)(void *thread, int (*call)(prof_i_py *, prof_i_py *, int, prof_i_py *),
                        prof_i_py *object);
  void *(*interpreter)(void);
  void *(*first_thread)(void *interpreter);
  void *(*next_thread)(void *thread);
  void *(*function_of)(prof_i_py *builtin);
  prof_i_py *(*self_of)(prof_i_py *builtin);
} prof_i_functions_python;

/* unknown: it could not be asked for, this time */
typedef enum prof_i_function_kind {
  PROF_I_FUNCTION_EXCLUDED,
  PROF_I_FUNCTION_UNKNOWN,
  PROF_I_FUNCTION_ORDINARY,
  PROF_I_FUNCTION_MODULE,
  PROF_I_FUNCTION_IMPORT
} prof_i_function_kind;

/* A code object's own, which goes when it does: its address may then be another's. */
typedef struct prof_i_function {
  prof_site site;
  uint64_t epoch; /* that it was judged in */
  prof_i_function_kind function_kind;
  /* of a function of C: pybind11's, which calls all of its functions; they are known by the object
     that they are given */
  bool is_of_many;
  bool is_also_function; /* of a module's call: so it is where nobody names the module */
  const char *category;
  char *name, *source, *file; /* malloc()ed; NULL: none yet */
} prof_i_function;

typedef struct prof_i_function_call {
  /* the code, which its frame holds, or the frame itself, by which way the call was seen */
  const prof_i_py *of;
  uint64_t start; /* 0: not recorded */
} prof_i_function_call;

/* A call of an nn.Module, as its stack has it. */
typedef struct prof_i_module_call {
  size_t place;
  uint64_t start; /* of the call that stood there: another one has another */
  int64_t number;
} prof_i_module_call;

/* A thread's. */
typedef struct prof_i_function_stack {
  struct prof_i_function_stack *next, **at; /* among all threads' */
  prof_i_module_call *modules; /* malloc()ed; those that are over lie on top until somebody looks */
  size_t module_count, module_room;
  uint64_t stamp; /* that of prof_i_functions_now when it was last seen to be right */
  uint64_t epoch; /* the same */
  size_t count, room;
  prof_i_function_call calls[];
} prof_i_function_stack;

/* The tracing that there is. */
typedef struct prof_i_functions {
  prof_i_functions_python python;
  prof_i_python_functions_given given;
  ptrdiff_t index;         /* of functions among what code objects hold */
  uint64_t epoch;          /* of the filter */
  uint64_t stamp;          /* another one with each epoch, and each time that stacks begin */
  bool has_stacks;         /* somebody wants them */
  bool is_on, is_by_frame; /* by_frame: the stack's calls are frames, not code */
} prof_i_functions;

extern prof_i_functions prof_i_functions_now __attribute__((visibility("hidden")));
extern __thread prof_i_function_stack *prof_i_function_stack_here
    __attribute__((visibility("hidden"), tls_model("initial-exec")));

/* ---- function_code.c ---- */

extern const char prof_i_category_of_python[] __attribute__((visibility("hidden"))),
    prof_i_category_of_c[] __attribute__((visibility("hidden")));

/* Before anything else. False: code objects cannot hold one thing more. */
bool prof_i_function_code_create(void);

/* One of C's that was made of this method. */
void prof_i_function_code_probe(prof_i_py *function, const prof_i_py_method *method);

/* A code that is called, or runs, and its frame. NULL: an error is pending. An exception that is
   thrown into the function may be pending before, and is behind it. */
prof_i_function *prof_i_function_classify(prof_i_py *code, prof_i_py *frame);

/* NULL: it has not been judged for this filter. */
static inline prof_i_function *prof_i_function_known(prof_i_py *code) {
  prof_i_function *f = NULL;
  prof_i_functions_now.python.get_extra(code, prof_i_functions_now.index, (void **)&f);
  return f && PROF_I_LIKELY(f->epoch == prof_i_functions_now.epoch) ? f : NULL;
}

static inline bool prof_i_function_is_excluded(prof_i_py *code) {
  const prof_i_function *const f = prof_i_function_known(code);
  return f && f->function_kind == PROF_I_FUNCTION_EXCLUDED;
}

/* Of anything that is called. NULL: it is no function of C, or not wanted. An error may be pending
   behind it. */
prof_i_function *prof_i_function_of_c(prof_i_py *callable);

/* Of module_call's answer (name, place, ...), which is asked for at each call: a name of its own in
   the catalog, as a frame has to have. NULL: no memory. */
prof_i_function *prof_i_function_of_module(prof_i_py *answer);

/* What Python's side says. NULL: an error is pending where it was interrupted; none where it
   failed, at the end of a recursion, say, which is nobody's concern. Handlers of signals run inside
   of it, too: what they raise is told from its own by asking once more. */
prof_i_py *prof_i_function_describe(prof_i_py *callable, prof_i_py *object);

/* ---- function_stack.c ---- */

/* Before anything else. False: there is no room for what it keeps of each thread. */
bool prof_i_function_stack_create(void);

/* Where the stack has no room or was seen last by another stamp. What is called is the frame at
   hand, or stands in it: a function of C. False: an error is pending. */
bool prof_i_function_stack_prepare(bool is_of_c);

/* A call of which Python's side says more. Meanwhile handlers of signals may have used the
   stack. */
void prof_i_function_begin_special(const prof_i_py *of, prof_i_function *f, prof_i_py *frame);

/* A call that is not the last one here, or none. */
void prof_i_function_end_unusual(const prof_i_py *of);

/* What runs on this thread begins, where stacks are wanted. An error may be pending behind it. */
void prof_i_function_begin_running(void);

/* What this thread has open in this tracing ends. Does any that was recorded stand open on
   another? */
bool prof_i_function_end_all(void);

#endif
