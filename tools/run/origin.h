/* Where a line of a library comes from: a process, and its rank. */
#ifndef PROF_TOOLS_RUN_ORIGIN_H
#define PROF_TOOLS_RUN_ORIGIN_H

#include <stddef.h>
#include <stdint.h>

/* -1: not known. */
typedef struct run_origin {
  int64_t rank, pid;
} run_origin;

#define RUN_ORIGIN_UNKNOWN ((run_origin){-1, -1})

/* The rank that a launcher put in front of a line, or -1: "[1,3]<stderr>:" of mpirun --tag-output,
   "3: " of srun -l, "[3] " of mpiexec -l, "[rank3]:" and "[default3]:" of torchrun. */
int64_t run_origin_rank(const char *prefix, size_t bytes);

/* Of a log file NAME.PID.log in a folder that was given to the process in a variable. The rank is
   that of the process's environment. folder: absolute. */
run_origin run_origin_of_log(const char *path, const char *folder);

#endif
