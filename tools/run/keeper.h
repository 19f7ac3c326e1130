/* A second process that forwards the workload's output if we are killed, so that the workload
   continues. If a pty is the workload's controlling terminal, it is also the session leader, and
   reports to us when the workload stops or ends. Ctrl-Z can stop a process only if its parent is in
   the session. */
#ifndef PROF_TOOLS_RUN_KEEPER_H
#define PROF_TOOLS_RUN_KEEPER_H

#include <sys/types.h>

#include "terminal.h"

/* What the keeper writes to us. */
typedef struct run_news {
  pid_t pid;  /* of the workload, which is its group as well */
  int status; /* of waitpid(); -1: it has begun */
} run_news;

typedef struct run_keeper {
  pid_t pid; /* of the keeper, or -1 */
  int news;  /* to read run_news, for a workload on a pty; else -1 */
  int alive; /* if this closes before we end the keeper, it takes over */
} run_keeper;

/* A stream of the workload: the descriptor to read, and the one to write. */
typedef struct run_keeper_stream {
  int from, to; /* from: -1: there is none */
} run_keeper_stream;

typedef struct run_keeper_plan {
  run_keeper_stream streams[2];
  int write_ends[2];            /* the workload's ends of pipes, which the keeper closes; or -1 */
  int log;                      /* gets all bytes, or -1 */
  const run_terminal *terminal; /* if it is controlling, the workload is the keeper's child on it */
  void (*execute_child)(void *context); /* on a pty: executes the workload; does not return */
  void *context;
} run_keeper_plan;

/* False: there is none, and errno says why. */
bool run_keeper_start(run_keeper *keeper, const run_keeper_plan *plan);

/* We have closed this stream of the plan. The keeper does, too, and the workload gets SIGPIPE. */
void run_keeper_close(const run_keeper *keeper, int stream);

/* Ends the keeper: the workload has ended normally. */
void run_keeper_end(run_keeper *keeper);

/* Processes of the workload still run. The keeper forwards their output until they have ended. We
   do not wait for it. */
void run_keeper_leave(run_keeper *keeper);

#endif
