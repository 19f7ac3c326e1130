/* The bytes of Python's strings. Under the GIL. */
#ifndef PROF_PYTHON_TEXT_H
#define PROF_PYTHON_TEXT_H

#include "interpreter.h"

/* As long as `holder` lives or the str does. */
typedef struct prof_i_py_text {
  const char *data;  /* with a NUL behind it */
  uint32_t bytes;    /* 16384 at most: more is cut anyway */
  prof_i_py *holder; /* own reference, or NULL */
} prof_i_py_text;

/* Lone surrogates stay as they are: readers repair what is not UTF-8. Empty where there is no
   memory; no error is pending behind it. */
prof_i_py_text prof_i_py_text_of(prof_i_py *string);

#endif
