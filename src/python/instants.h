/* prof.counter() and prof.instant(), made of C. */
#ifndef PROF_PYTHON_MARKS_H
#define PROF_PYTHON_MARKS_H

#include <stdbool.h>

/* Puts both into PY.given.names. False: an error is pending. Under the GIL. */
bool prof_i_python_make_instants(void);

#endif
