/* Names of C++ functions, as vendors have them of kernels, in words. */
#ifndef PROF_BASE_DEMANGLE_H
#define PROF_BASE_DEMANGLE_H

#include <stddef.h>

/* By the C++ library that the process has; none is brought into it. A few bytes can be made to
   stand for more text than there is memory: for names of the process's own alone, not for what
   stands in a file. For the caller to free; NULL: it is none, or there is no such library. Any
   thread. */
char *prof_i_demangle(const char *text, size_t bytes);

#endif
