/* See built_in.h. */
#include "built_in.h"

#include <stddef.h>

const prof_backend *const prof_i_built_in_ends[] = {NULL};
