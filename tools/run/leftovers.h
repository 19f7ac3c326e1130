/* Processes that a workload leaves behind. */
#ifndef PROF_TOOLS_RUN_LEFT_H
#define PROF_TOOLS_RUN_LEFT_H

#include <sys/stat.h>
#include <sys/types.h>

#include "text.h"

/* Which processes are meant: of the group, or with one of the files open. */
typedef struct run_leftovers {
  pid_t group;
  pid_t except; /* not this one, nor ourselves */
  struct stat files[2];
  size_t file_count;
} run_leftovers;

/* Adds "NAME (PID)" of each. */
void run_leftovers_find(const run_leftovers *left, run_words *to);

#endif
