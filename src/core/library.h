/* Opening libraries at run time: vendors', plug-ins, and what is used where it is there. */
#ifndef PROF_CORE_LIBRARY_H
#define PROF_CORE_LIBRARY_H

#include <stdbool.h>

/* False in the static library. */
bool prof_i_library_can_open(void);

/* The library, or NULL, and why in *why_out: valid until this thread's next call of dlopen() and its kin. Never closed. is_there: only a copy that the process has already. */
void *prof_i_library_open(const char *name, int is_there, const char **why_out);
void *prof_i_library_find(void *library, const char *symbol);

#endif
