/* What processes in Python are called: by their scripts, not by their interpreter. */
#ifndef PROF_TOOLS_RUN_TITLES_H
#define PROF_TOOLS_RUN_TITLES_H

#include "process_tree.h"

/* The script, the module, or "python-c". A worker of multiprocessing has the name of the script
   that started it. workload: that of prof's own Python command. NULL: the process is not seen, or
   not Python. */
const char *run_process_title(const run_process_tree *process_tree, const run_process *member,
                              const char *workload);

#endif
