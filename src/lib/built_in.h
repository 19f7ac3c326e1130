/* The back ends that come with prof, in the order in which they are asked; NULL ends the list. */
#ifndef PROF_LIB_BUILT_IN_H
#define PROF_LIB_BUILT_IN_H

#include <prof/backend.h>

extern const prof_backend *const prof_i_built_in_ends[];

#endif
