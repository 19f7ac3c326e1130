/* One process group that runs a command: its streams, signals and end. */
#ifndef PROF_TOOLS_RUN_CHILD_H
#define PROF_TOOLS_RUN_CHILD_H

#include "compose.h"

/* Who looks at what the workload writes. All NULL or -1: the workload has our own streams. */
typedef struct run_watch {
  int log; /* a descriptor that gets all bytes of both streams, or -1 */
  /* Called for each line, without its line end. stream: 1 or 2. A line that comes in pieces, and is
     longer than RUN_LINE_BYTES_MAX, is cut there. */
  void (*on_line)(void *context, int stream, const char *line, size_t bytes);
  /* True: the line of stderr is left out. Not together with on_line. */
  bool (*is_noise)(void *context, const char *line, size_t bytes);
  bool is_stderr_alone; /* stdout is ours */
  int extra;            /* polled as well, or -1 */
  void (*on_extra)(void *context); /* there is something to read */
  void *context;
} run_watch;

enum { RUN_LINE_BYTES_MAX = 256 << 10 };

typedef struct run_end {
  int status;         /* as a shell has it: the exit status, or 128 + signal */
  double seconds;     /* from the start to the end of the process */
  run_words left;     /* "NAME (PID)" of processes of the group that still run */
  const char *failed; /* a stream that could not be written: why, or NULL */
} run_end;

/* Runs the command to its end. The group gets the terminal if we have it, and each signal that may
   end us. It goes on if we are killed. */
run_end run_child(const run_command *command, const run_watch *watch);

#endif
