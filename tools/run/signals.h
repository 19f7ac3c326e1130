/* The signals that may end or stop us. They are held from set-up to collection: the child that runs
   gets them, and they neither end us nor get lost between two children. */
#ifndef PROF_TOOLS_RUN_SIGNALS_H
#define PROF_TOOLS_RUN_SIGNALS_H

#include <stdbool.h>

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

/* Stops us, or all of our group as Ctrl-Z does. Returns when we continue, or at once if no shell
   could continue us. */
void run_signals_stop_us(bool is_all);

#endif
