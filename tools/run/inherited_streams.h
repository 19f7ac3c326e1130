/* Our streams, as our caller gave them to us, and to others. */
#ifndef PROF_TOOLS_RUN_INHERITED_H
#define PROF_TOOLS_RUN_INHERITED_H

typedef struct run_inherited {
  int flags[3]; /* before the workload; -1: it is not to be restored */
} run_inherited;

void run_inherited_take(run_inherited *streams);
/* The workload may have made them non-blocking, for all processes that share them. */
void run_inherited_restore(const run_inherited *streams);

/* After the start of the last process that reads stdin: closes ours, if it is a pipe. If all who
   read it close it, a writer gets SIGPIPE. It is not restored then. streams may be NULL. */
void run_inherited_release_input(run_inherited *streams);

#endif
