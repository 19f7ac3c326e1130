/* Arguments that a program gives by name, as C records them. The program's own code runs meanwhile:
   __str__() of a value, a sequence's methods, handlers of signals. Under the GIL. */
#ifndef PROF_PYTHON_ARGUMENTS_H
#define PROF_PYTHON_ARGUMENTS_H

#include <prof/args.h>

#include "interpreter.h"

/* By its real type, whatever its __class__ says; no code of Python's runs. */
bool prof_i_py_is_instance(prof_i_py *object, prof_i_py *type);
/* False: a TypeError is pending, which names both. */
bool prof_i_py_is_string(prof_i_py *object, const char *function, const char *parameter);
bool prof_i_py_is_word(prof_i_py *keyword, const char *word);

/* What the program's own code is asked. */
typedef struct prof_i_py_result {
  prof_i_py *object; /* own reference, or NULL */
  int64_t number;
} prof_i_py_result;
/* False: an error is pending. */
typedef bool prof_i_py_getter(prof_i_py *object, ptrdiff_t at, prof_i_py_result *to);
prof_i_py_getter prof_i_py_get_size, prof_i_py_get_item, prof_i_py_get_number;

/* The answer is empty if the program's code failed, and its error is gone. It is empty as well if
   the code was interrupted: then the error stays pending, and nothing more is asked, for code that
   runs with an error pending loses it. Handlers of signals run inside of that code: what they raise
   is told from the code's own errors by asking once more. */
prof_i_py_result prof_i_py_call(prof_i_py_getter *question, prof_i_py *object, ptrdiff_t at);

/* What an argument's texts need to live: own references, or NULL. */
typedef struct prof_i_py_references {
  prof_i_py *objects[5];
} prof_i_py_references;
/* False: interrupted, an error is pending. `item` is valid until prof_i_py_release(), which is
   called either way. `held` begins as zeros. */
bool prof_i_py_add_pair(prof_i_py *key, prof_i_py *value, prof_arg *item,
                        prof_i_py_references *held);
void prof_i_py_release(const prof_i_py_references *held);

#endif
