/* Opening libraries at run time: vendors', plug-ins, and what is used where it is there. */
#ifndef PROF_BASE_LIBRARY_H
#define PROF_BASE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* Why none of several names could be opened. */
typedef struct prof_i_library_error {
  /* it is there, and cannot be loaded: no library, of another machine, or what it needs is not
     there */
  bool is_broken;
  char text[200];
} prof_i_library_error;

/* False in the static library. */
bool prof_i_library_can_open(void);

/* The library, or NULL, and why in *why_out: valid until this thread's next call of dlopen() and
   its kin. Never closed. is_there: only a copy that the process has already. */
void *prof_i_library_open(const char *name, int is_there, const char **why_out);
/* Opens one of several names; NULL: *why, which begins as {0}, has the first that is there and
   cannot be loaded, else the first. */
void *prof_i_library_try(const char *name, prof_i_library_error *why);
void *prof_i_library_find(void *library, const char *symbol);

/* Is a library loaded with this name, of whatever release? The name is that of its file, or the one
   that programs were linked with. 1: path_out has its path, as far as there is room. 0: no. -1:
   unknown: somebody else searches or forks just now, or this is the static library. A fork may
   interrupt the search. */
int prof_i_library_find_loaded(const char *name, char *path_out, size_t room);

#endif
