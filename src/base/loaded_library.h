/* What is loaded in this process, looked at in a way that a fork does not mind. */
#ifndef PROF_BASE_LOADED_LIBRARY_H
#define PROF_BASE_LOADED_LIBRARY_H

#include <stddef.h>

/* Is a library loaded that is called so, of whatever release: its file, or by the name that it was
   linked with? 1, and as much of its path in path_out as there is room; 0; -1: not to be told now,
   for somebody asks or forks, or never, in the static library. */
int prof_i_library_find_loaded(const char *name, char *path_out, size_t room);

#endif
