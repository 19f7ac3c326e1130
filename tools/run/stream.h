/* Forwards the workload's stdout and stderr to ours: all bytes, unchanged and at once. A log gets
   them, too, and a callback gets each line. Also the terminal that the workload gets (terminal.c),
   and the process that forwards if we are killed (keeper.c). */
#ifndef PROF_TOOLS_RUN_STREAM_H
#define PROF_TOOLS_RUN_STREAM_H

#include <poll.h>
#include <sys/stat.h>
#include <termios.h>

#include "child.h"

/* ---- terminal.c ---- */

/* Our terminal, and the pseudo-terminal (pty) that replaces it for the workload while we read the
   output. If our stdin and stdout are the terminal, the pty is the workload's controlling terminal:
   input is passed to it unchanged, and Ctrl-C and Ctrl-Z become signals there. Otherwise others use
   our terminal as well, in a pipe before or behind us; the pty is then only where output goes. */

typedef struct run_terminal {
  int outer;           /* a descriptor of our terminal, or -1: there is no pty */
  int master;          /* ours */
  int slave;           /* the workload's; -1 after run_terminal_be_parent() */
  bool is_controlling; /* the workload's controlling terminal */
  bool has_input;      /* it is, and input may come */
  bool is_raw;         /* our terminal, at present */
  bool adds_no_cr;     /* the pty, because our terminal does */
  struct termios before;
} run_terminal;

/* A descriptor of our terminal if we are its foreground group, or -1. */
int run_terminal_own(void);
/* We have a controlling terminal: a shell there can continue us. errno has why not. */
bool run_terminal_is_there(void);
/* Says by errno why the workload cannot get it. If we continued it, it would ask without end. */
void run_terminal_tell_refused(void);
/* False: somebody else of our group may need the terminal: a pager behind us, or the script that
   runs us. Then the workload gets it only when it asks. */
bool run_terminal_is_for_us_alone(void);

/* outer: stdout or stderr, a terminal. has_all: the workload writes to the pty alone. */
void run_terminal_open(run_terminal *terminal, int outer, bool has_all);
void run_terminal_be_parent(run_terminal *terminal);

/* Copies our terminal's size to the pty. */
void run_terminal_resize(const run_terminal *terminal);
/* True: we are the foreground group. */
bool run_terminal_is_ours(const run_terminal *terminal);
/* Raw, if we are in the foreground and something may be typed; and back. */
void run_terminal_be_raw(run_terminal *terminal);
void run_terminal_restore(run_terminal *terminal);
/* In another process, after we were killed: our terminal as it was, if it is still raw. */
void run_terminal_repair(const run_terminal *terminal);
/* Passes on what was typed. */
void run_terminal_type(run_terminal *terminal);
void run_terminal_close(run_terminal *terminal);

/* ---- keeper.c ---- */

/* A second process that forwards the workload's output if we are killed, so that the workload
   continues. If a pty is the workload's controlling terminal, it is also the session leader, and
   reports to us when the workload stops or ends. Ctrl-Z can stop a process only if its parent is in
   the session. */

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

/* ---- stream.c ---- */

typedef struct run_stream {
  int read_end, write_end; /* of a pipe or a pty; -1: the workload has our own stream */
  int to;                  /* 1 or 2 */
  int own; /* our stream, if it can be opened again so that writing does not block; else `to` */
  bool is_file; /* nobody reads our stream, so writing does not wait */
  bool is_socket;
  char *line; /* the current line: its end has not arrived */
  size_t line_bytes;
  bool is_broken;   /* our own end is closed */
  bool has_writer;  /* after the workload's end: a process can still write */
  struct stat file; /* that the workload writes to */
} run_stream;

typedef struct run_streams {
  const run_stream_watch *watch;
  run_stream streams[2];
  bool is_one;           /* our stdout and stderr are one file, so the workload's are, too */
  run_terminal terminal; /* outer: -1: there is no pty */
  const char *failed;    /* see run_child_end */
  char *buffer;
  run_keeper *keeper; /* reads the same pipes */
  /* Called when our stream takes nothing now: waits until it may. False: the rest is dropped. */
  bool (*wait_for_descriptor)(void *context, int fd);
  void *context;
} run_streams;

void run_streams_open(run_streams *streams, const run_stream_watch *watch);
/* After fork(), in the child and in the parent. */
void run_streams_be_child(const run_streams *streams);
void run_streams_be_parent(run_streams *streams);
/* Fills in the streams of a keeper's plan. */
void run_streams_tell_keeper(const run_streams *streams, run_keeper_plan *plan);
/* Fills at most 2 polls; returns how many. */
nfds_t run_streams_poll(const run_streams *streams, struct pollfd *polls);
/* Reads once from that end. */
void run_streams_take(run_streams *streams, int fd);
/* After the workload's end: reads the rest of its output, and closes. */
void run_streams_finish(run_streams *streams);

#endif
