/* The budget: how much recording may cost a thread, or bring a second, and what is left out when it
   is more. Judged where a thread changes its chunk, so a scope pays nothing for it. */
#ifndef PROF_CORE_SESSION_BUDGET_H
#define PROF_CORE_SESSION_BUDGET_H

#include <prof/profiler.h>

#include "../buffer/observer.h"
#include "../buffer/thread.h"

/* A session begins, or begins anew: what a budget has muted is heard again. Of a new capture
   nothing else than what is muted now need be told. Control lock held. */
void prof_i_budget_begin(const prof_options *options, bool is_new_capture);

/* In a forked child: whoever was just at it is not here. */
void prof_i_budget_forget(void);

/* The level has been asked for anew: what the budget has muted is heard again, and every thread
   begins its window. Control lock held. */
void prof_i_budget_restart(bool is_told);

extern const prof_i_observer prof_i_budget_observer __attribute__((visibility("hidden")));

#endif
