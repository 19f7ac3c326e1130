/* Converts a program's named arguments for C. The program's own code runs during this: __str__() of
   a value, methods of a sequence, signal handlers. Under the GIL. */
#ifndef PROF_PYTHON_ARGUMENTS_H
#define PROF_PYTHON_ARGUMENTS_H

#include <prof/args.h>

#include "interpreter.h"

/* By its real type, not by __class__. No Python code runs. */
bool prof_i_py_is_instance(prof_i_py *object, prof_i_py *type);
/* False: a TypeError with both names is pending. */
bool prof_i_py_is_string(prof_i_py *object, const char *function, const char *parameter);
bool prof_i_py_is_word(prof_i_py *keyword, const char *word);

/* The result of a query of the program's code. */
typedef struct prof_i_py_result {
  prof_i_py *object; /* own reference, or NULL */
  int64_t number;
} prof_i_py_result;
/* False: an error is pending. */
typedef bool prof_i_py_getter(prof_i_py *object, ptrdiff_t at, prof_i_py_result *to);
prof_i_py_getter prof_i_py_get_size, prof_i_py_get_item, prof_i_py_get_number;

/* Queries the program's code. The result is empty if the code failed; the error is cleared. It is
   also empty if the code was interrupted. Then the error stays pending and nothing else is queried,
   because code that runs with a pending error loses it. Signal handlers run inside of the code. A
   second query distinguishes their errors from its own. */
prof_i_py_result prof_i_py_call(prof_i_py_getter *question, prof_i_py *object, ptrdiff_t at);

/* References that keep an argument's texts alive, or NULL. */
typedef struct prof_i_py_references {
  prof_i_py *objects[5];
} prof_i_py_references;
/* False: interrupted, and an error is pending. `item` is valid until prof_i_py_release(), which is
   called in both cases. `held` is zero before. */
bool prof_i_py_add_pair(prof_i_py *key, prof_i_py *value, prof_arg *item,
                        prof_i_py_references *held);
void prof_i_py_release(const prof_i_py_references *held);

#endif
