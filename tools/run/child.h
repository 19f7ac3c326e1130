/* One process group that runs a command: its streams, signals and end. */
#ifndef PROF_TOOLS_RUN_CHILD_H
#define PROF_TOOLS_RUN_CHILD_H

#include <stdint.h>
#include <sys/types.h>

#include "stack.h"

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

/* After the start of the last process that reads stdin: closes ours, if it is a pipe. If all who
   read it close it, a writer gets SIGPIPE. True: it is closed, and is not restored. */
bool run_input_release(void);

/* ---- signals.c: signals that may end or stop us ---- */

/* They are held from set-up to collection: the child that runs gets them, and they neither end us
   nor get lost between two children. */

/* Holds them until run_signals_release(). Calls may be nested: the outermost pair counts. */
void run_signals_hold(void);
void run_signals_release(void);

/* In a new process, before its program: the state that our caller gave us. */
void run_signals_be_child(void);

/* Readable while a signal waits. */
int run_signals_fd(void);
/* Takes the next signal: its number, or 0. */
int run_signals_next(void);
/* True: it asks a program to end. */
bool run_signals_is_end(int number);

/* The first signal since the hold that asked us to end, or 0. Takes those that wait and ask so. */
int run_signals_interrupt(void);

/* Ctrl-C or Ctrl-\ has ended a program that had the terminal: our own group did not get it. */
void run_signals_note_terminal(int number);
/* After the release: ends us by SIGINT if that ended the workload on our terminal: then shells end
   a loop or a script, too. Otherwise returns. */
void run_signals_end_as(int status);

/* Waits until it can be read. False: we were asked to end. */
bool run_signals_wait(int fd);

/* In a process that waits for programs of its own group: a signal to the group reaches these, and
   we wait for their end. What our caller ignores stays so. */
void run_signals_outlive(void);

/* Stops us, or all of our group as Ctrl-Z does. Returns when we continue. Returns at once if no
   shell could continue us, or if one has done so already: run_signals_next() returns SIGCONT.
   is_background: the caller found us there. */
void run_signals_stop_us(bool is_all, bool is_background);

#endif
