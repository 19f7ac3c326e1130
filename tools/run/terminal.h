/* Our terminal, and the pseudo-terminal (pty) that replaces it for the workload while we read the
   output. If our stdin and stdout are the terminal, the pty is the workload's controlling terminal:
   input is passed to it unchanged, and Ctrl-C and Ctrl-Z become signals there. Otherwise others use
   our terminal as well, in a pipe before or behind us; the pty is then only where output goes. */
#ifndef PROF_TOOLS_RUN_TERMINAL_H
#define PROF_TOOLS_RUN_TERMINAL_H

#include <stdbool.h>
#include <termios.h>

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

#endif
