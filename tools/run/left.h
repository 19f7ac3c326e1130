/* Processes that a workload leaves behind. */
#ifndef PROF_TOOLS_RUN_LEFT_H
#define PROF_TOOLS_RUN_LEFT_H

#include <sys/types.h>

#include "text.h"

/* Adds "NAME (PID)" of each process of the group. */
void run_left_find(pid_t group, run_words *to);

#endif
