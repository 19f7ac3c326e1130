/* What files of this folder share, grouped by the file that defines it. Under the GIL. */
#ifndef PROF_PYTHON_INTERNAL_H
#define PROF_PYTHON_INTERNAL_H

#include <prof/args.h>

#include "interpreter.h"

/* ---- scope_details.c: arguments ---- */

/* Converts a program's named arguments for C. The program's own code runs during this: __str__()
   of a value, methods of a sequence, signal handlers. Under the GIL. */

/* False: a TypeError with both names is pending. */
bool prof_i_py_is_string(prof_i_py *object, const char *function, const char *parameter);
bool prof_i_py_is_word(prof_i_py *keyword, const char *word);

/* References that keep an argument's texts alive, or NULL. */
typedef struct prof_i_py_references {
  prof_i_py *objects[5];
} prof_i_py_references;
/* False: interrupted, and an error is pending. `item` is valid until prof_i_py_release(), which is
   called in both cases. `held` is zero before. */
bool prof_i_py_add_pair(prof_i_py *key, prof_i_py *value, prof_arg *item,
                        prof_i_py_references *held);
void prof_i_py_release(const prof_i_py_references *held);

/* ---- own_calls.c: methods of values that prof calls ---- */

/* Whether the value is a PyTorch tensor, or of a derived class. */
bool prof_i_py_is_tensor(prof_i_py *value);
/* "float32[2, 3]", and "float32". NULL: an error is pending. */
prof_i_py *prof_i_py_new_tensor_text(prof_i_py *tensor);
prof_i_py *prof_i_py_new_tensor_type(prof_i_py *tensor);

typedef struct prof_i_py_own_call {
  bool is_marked, is_silent;
  const prof_i_py *frame_around; /* of the own call around this one */
} prof_i_py_own_call;
/* Until the matching end, this thread calls a method of the value on behalf of prof. method:
   "__str__", "__repr__" or "__float__"; NULL: only code of PyTorch runs. An error may be pending
   afterwards. */
prof_i_py_own_call prof_i_py_own_call_begin(prof_i_py *value, const char *method);
void prof_i_py_own_call_end(prof_i_py_own_call call);
/* Raises "WHAT, not VALUE". The value's repr() is a call of prof's. No error is pending before. */
void prof_i_py_refuse(prof_i_py *error, prof_i_py *value, const char *what);

/* ---- scope.c ---- */

/* Under the GIL. */

typedef struct prof_i_py_scope {
  void *vectorcall; /* first: Python calls the object by it */
  uint64_t start;   /* of the innermost entry; 0: not recorded */
  uint64_t *outer;  /* of the others: one object may be entered again inside itself */
  uint32_t depth, outer_room;
  uint32_t unstored_entries; /* entries for which there was no memory */
  uint8_t level;
  uint8_t requested_parts; /* bits of method_part */
  /* own references; category NULL: an annotation; args NULL, or a dict; shapes NULL, or a sequence
     of sequences */
  prof_i_py *name, *category, *args, *shapes;
} prof_i_py_scope;

enum { PROF_I_PY_STACK_FRAMES_MAX = 64 };

/* The text of a scope's category. */
prof_i_py_text prof_i_py_category_text(prof_i_py *category);

/* ---- scope_details.c ---- */

/* Begins a scope with everything copied: a name made at run time, arguments, shapes, and the
   innermost `frames` frames of the stack. 0: not recorded. If an argument's code was interrupted,
   its error is pending and the scope is not begun. */
uint64_t prof_i_py_scope_begin_copied(const prof_i_py_scope *s, int frames);

/* Finds the folder of the package prof. Its frames are left out of stacks. */
void prof_i_py_scope_find_package(void);

/* ---- instants.c ---- */

/* Adds prof.counter() and prof.instant() to PY.given.names. False: an error is pending. */
bool prof_i_python_make_instants(void);

#endif
