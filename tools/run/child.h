/* One process group that runs a command: its streams, signals and end. */
#ifndef PROF_TOOLS_RUN_CHILD_H
#define PROF_TOOLS_RUN_CHILD_H

#include <stdint.h>
#include <sys/types.h>

#include "compose.h"

/* Callbacks for the workload's output. All NULL or -1: the workload inherits our streams. */
typedef struct run_stream_watch {
  int log; /* a descriptor that gets all bytes of both streams, or -1 */
  /* Called for each line, without its line end. stream: 1 or 2. A line that arrives in pieces is
     split at RUN_LINE_BYTES_MAX. */
  void (*on_line)(void *context, int stream, const char *line, size_t bytes);
  /* True: the line of stderr is left out. Not together with on_line. */
  bool (*is_noise_line)(void *context, const char *line, size_t bytes);
  bool is_stderr_alone;            /* only stderr is read; stdout is inherited */
  bool is_last;                    /* no command of ours that follows reads stdin */
  int extra;                       /* polled as well, or -1 */
  void (*on_extra)(void *context); /* there is something to read */
  void *context;
} run_stream_watch;

enum { RUN_LINE_BYTES_MAX = 256 << 10 };

typedef struct run_child_end {
  int status;        /* as in a shell: the exit status, or 128 + signal */
  pid_t pid;         /* of the process, or 0 */
  uint64_t ended_ns; /* of CLOCK_MONOTONIC: it was alive shortly before */
  double seconds;    /* from the start to the end of the process */
  /* "NAME (PID)" of processes that still run: of the group, or with a stream of it open */
  run_words left;
  const char *failed; /* why a stream could not be written, or NULL */
} run_child_end;

/* Runs the command to its end. If no process can be made, says why, with RUN_FAILED. The group gets
   the terminal if we have it, and each signal that may end us. If we are killed, it continues. */
run_child_end run_child(const run_command *command, const run_stream_watch *watch);

/* After a fault of ours while a command runs, from the handler of run_set_failure_handler(): passes
   its output on to its end, and reads nothing of it. Does nothing if no command runs. */
void run_child_go_on(run_child_end *end);
bool run_child_is_running(void);

/* Calls run() in a process of its own, as run_child() runs a command. Returns its status. */
int run_child_call(int (*run)(void *context), void *context);

#endif
