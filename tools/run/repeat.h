/* --repeat: the same run several times. */
#ifndef PROF_TOOLS_RUN_REPEAT_H
#define PROF_TOOLS_RUN_REPEAT_H

#include "run.h"

/* Runs the workload `count` times, one after another, each in its own folder run-1, run-2, ...
   Prints one table of all runs. Ends early if a run could not start, or was interrupted. Returns
   the first status that is not 0. */
int run_repeat(const run_request *request, unsigned count);

#endif
