/* Where a call stands among its thread's scopes. It was told by another clock: what in truth lies
   inside of a scope, or behind it, may seem to cross its edge by what the clocks are apart. */
#ifndef PROF_READER_FIT_H
#define PROF_READER_FIT_H

#include "walk_sorted.h"

/* The last of these items, which stand by rising end, is a call: it goes to that side of each edge
   which is the nearer one. False: it ends sooner now, and may stand further to the front. */
bool prof_i_call_fit(const prof_i_walker *walker, prof_i_sorted_record *items, size_t count);

#endif
