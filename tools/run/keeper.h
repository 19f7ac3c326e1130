/* A process beside ours that keeps the workload going if we are killed: then it passes the
   workload's output on. Of a workload on a pty it is the session's leader, and tells us when the
   workload stops or ends: only in a session with a parent can Ctrl-Z stop it. */
#ifndef PROF_TOOLS_RUN_KEEPER_H
#define PROF_TOOLS_RUN_KEEPER_H

#include <stdbool.h>
#include <sys/types.h>

/* What the keeper writes to us. */
typedef struct run_news {
  pid_t pid;  /* of the workload, which is its group as well */
  int status; /* of waitpid(); -1: it has begun */
} run_news;

typedef struct run_keeper {
  pid_t pid; /* of the keeper, or -1 */
  int news;  /* run_news come here; of a workload on a pty alone, else -1 */
  int alive; /* the keeper takes over when this closes before a byte has come */
} run_keeper;

/* A stream of the workload: where it is read, and where it goes. */
typedef struct run_keeper_stream {
  int from, to; /* from: -1: there is none */
} run_keeper_stream;

typedef struct run_keeper_plan {
  run_keeper_stream streams[2];
  int write_ends[2]; /* the workload's ends of pipes, which the keeper closes; or -1 */
  int slave;         /* the pty's, or -1: then the workload is not the keeper's child */
  void (*become)(void *context); /* on a pty: executes the workload; does not return */
  void *context;
} run_keeper_plan;

void run_keeper_start(run_keeper *keeper, const run_keeper_plan *plan);

/* All went well: the keeper goes. */
void run_keeper_end(run_keeper *keeper);

/* Processes of the workload still run: the keeper passes on what they write until they have ended,
   and is not waited for. */
void run_keeper_leave(run_keeper *keeper);

#endif
