/* Python's scope object, and the making of its Python types. Under the GIL. */
#ifndef PROF_PYTHON_SCOPE_H
#define PROF_PYTHON_SCOPE_H

#include "interpreter.h"

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
