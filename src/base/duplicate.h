/* This copy of prof among others: the library may be in a process more than once, inside several
   shared objects or beside libprof.so. */
#ifndef PROF_BASE_DUPLICATE_H
#define PROF_BASE_DUPLICATE_H

#include <stdbool.h>

/* Do this copy's own call sites reach this copy? Not if another one comes first in the dynamic
   linker's search: that one then has all call sites, and this one must not touch the level that
   they read. Any thread. */
bool prof_i_duplicate_is_in_force(void);

/* PROF_OK, or a refusal that names the copy that is in force. Any thread. */
int prof_i_duplicate_check(void);

/* May dlclose() unmap this copy? Not libprof.so, nor a program, nor what is linked with -z
   nodelete, as users of the static library should be (the pkg-config file and CMake's target say
   so). */
bool prof_i_duplicate_can_unload(void);

#endif
