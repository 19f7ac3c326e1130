/* The workload's name, for its files and its summary. */
#ifndef PROF_TOOLS_RUN_NAME_H
#define PROF_TOOLS_RUN_NAME_H

#include "text.h"

/* The file name of the program that does the work: not that of timeout, env, nice, mpirun, a shell
   and others that only start it. "train.py" of "torchrun --nproc-per-node 2 dir/train.py". Without
   characters that a file name of prof may not have. */
char *run_workload_name(const run_words *workload);

/* timeout, env, mpirun, a shell, and others that only start a program. */
bool run_is_launcher(const char *word);

/* Cut, at a character, to what a file's name may have beside all that prof adds to it. */
char *run_program_name(const char *name);

#endif
