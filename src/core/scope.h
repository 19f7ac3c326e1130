/* What cost.c needs of the hot path. */
#ifndef PROF_CORE_SCOPE_H
#define PROF_CORE_SCOPE_H

#include <prof/scope.h>

#include "thread.h"

/* Opens and closes so many empty scopes as if on this thread, whose chunk has room for them all. */
void prof_i_scope_run_empty(prof_i_thread *thread, prof_site *site, int count);
/* The same of begins whose site is muted. */
void prof_i_scope_run_left_out(prof_i_thread *thread, prof_site *site, int count);

#endif
