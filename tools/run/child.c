/* See child.h. The workload runs in its own process group, as under a shell with job control: a
   signal reaches all of it, and no process of our caller. */
#define _GNU_SOURCE
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../prof/commands.h"
#include "keeper.h"
#include "left.h"
#include "stream.h"
#include "terminal.h"

/* The signals that may end us, or that a terminal or a user sends. */
static const int forwarded[] = {SIGINT,  SIGQUIT, SIGTERM, SIGHUP, SIGUSR1,
                                SIGUSR2, SIGALRM, SIGTSTP, SIGCONT, SIGWINCH};

typedef struct child {
  pid_t pid;
  int signals;  /* a signalfd */
  int terminal; /* which we gave to the group, or -1 */
  run_keeper keeper;
  sigset_t mask_before;
  struct sigaction child_before; /* of SIGCHLD: our caller may ignore it */
  bool has_ended;
  int status;
} child;

static double now_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void open_signals(child *c) {
  sigset_t mask;
  sigemptyset(&mask);
  for (size_t i = 0; i < sizeof forwarded / sizeof *forwarded; i++) sigaddset(&mask, forwarded[i]);
  sigaddset(&mask, SIGCHLD);
  sigaddset(&mask, SIGTTOU); /* tcsetpgrp() from the background */
  sigprocmask(SIG_BLOCK, &mask, &c->mask_before);
  sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, &c->child_before);
  sigdelset(&mask, SIGTTOU);
  c->signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
  if (c->signals < 0) run_fail("cannot make a signalfd: %s", strerror(errno));
}

static void close_signals(child *c) {
  close(c->signals);
  sigaction(SIGCHLD, &c->child_before, NULL);
  sigprocmask(SIG_SETMASK, &c->mask_before, NULL);
}

/* The terminal, if we are its foreground group; else -1. */
static int own_terminal(void) {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
    if (isatty(fd) && tcgetpgrp(fd) == getpgrp()) return fd;
  return -1;
}

/* What the new process needs to know. */
typedef struct becoming {
  const child *child;
  const run_command *command;
  const run_streams *streams;
} becoming;

/* In the new process. */
static void become(void *context) {
  const becoming *const b = context;
  run_streams_be_child(b->streams);
  for (size_t i = 0; i < b->command->variables.count; i++)
    run_export(b->command->variables.items[i]);
  sigaction(SIGCHLD, &b->child->child_before, NULL);
  sigprocmask(SIG_SETMASK, &b->child->mask_before, NULL);
  const int status = run_execute(b->command->words.items);
  fflush(stderr);
  _exit(status);
}

/* A child of ours. */
static void start_here(child *c, becoming *b) {
  c->terminal = own_terminal();
  fflush(NULL);
  c->pid = fork();
  if (c->pid < 0) run_fail("cannot make a process: %s", strerror(errno));
  if (c->pid == 0) {
    setpgid(0, 0);
    if (c->terminal >= 0) tcsetpgrp(c->terminal, getpid());
    become(b);
  }
  setpgid(c->pid, c->pid); /* both processes call this: the order is not known */
}

/* A child of the keeper, on a pty. */
static void start_on_terminal(child *c, run_terminal *terminal) {
  run_news news;
  ssize_t bytes;
  while ((bytes = read(c->keeper.news, &news, sizeof news)) < 0 && errno == EINTR) continue;
  if (bytes != (ssize_t)sizeof news || news.pid <= 0) run_fail("cannot make a process");
  c->pid = news.pid;
  fcntl(c->keeper.news, F_SETFL, O_NONBLOCK);
  run_terminal_be_raw(terminal);
}

static void start(child *c, const run_command *command, run_streams *streams) {
  becoming b = {c, command, streams};
  run_keeper_plan plan = {.become = become, .context = &b};
  const bool is_on_terminal = streams->terminal.outer >= 0;
  c->keeper = (run_keeper){.pid = -1, .news = -1, .alive = -1};
  if (!is_on_terminal) start_here(c, &b);
  if (streams->buffer) {
    run_streams_tell_keeper(streams, &plan);
    run_keeper_start(&c->keeper, &plan);
  }
  run_streams_be_parent(streams);
  if (is_on_terminal) start_on_terminal(c, &streams->terminal);
}

/* ---- until it ends ---- */

/* Without a pty the group has our terminal while we are in the foreground. */
static void give_terminal(child *c) {
  const int terminal = own_terminal();
  if (terminal < 0) return;
  c->terminal = terminal;
  tcsetpgrp(terminal, c->pid);
}

static void take_terminal_back(const child *c) {
  if (c->terminal >= 0 && tcgetpgrp(c->terminal) == c->pid) tcsetpgrp(c->terminal, getpgrp());
}

/* After a stop, or when we have come to the foreground. */
static void go_on(child *c, run_terminal *terminal) {
  if (terminal->outer >= 0) {
    run_terminal_resize(terminal);
    run_terminal_be_raw(terminal);
  } else {
    give_terminal(c);
  }
  kill(-c->pid, SIGCONT);
}

/* The terminal stopped the workload, so we stop ourselves until we are continued. A workload in the
   background that read the terminal continues at once if we are in the foreground by now. */
static void stop_with(child *c, run_terminal *terminal, int number) {
  const bool is_ours = terminal->outer < 0 && own_terminal() >= 0;
  if (number != SIGTSTP && number != SIGTTIN && number != SIGTTOU) return; /* somebody's SIGSTOP */
  if (!is_ours || number == SIGTSTP) {
    run_terminal_restore(terminal);
    take_terminal_back(c);
    raise(SIGSTOP);
  }
  go_on(c, terminal);
}

static void take_status(child *c, run_terminal *terminal, int status) {
  if (WIFSTOPPED(status)) {
    stop_with(c, terminal, WSTOPSIG(status));
    return;
  }
  c->has_ended = true;
  c->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void reap(child *c, run_terminal *terminal) {
  int status;
  while (!c->has_ended && waitpid(c->pid, &status, WNOHANG | WUNTRACED) == c->pid)
    take_status(c, terminal, status);
}

static void take_signals(child *c, run_terminal *terminal) {
  struct signalfd_siginfo info;
  while (read(c->signals, &info, sizeof info) == (ssize_t)sizeof info) {
    const int number = (int)info.ssi_signo;
    if (number == SIGCHLD) reap(c, terminal);
    else if (number == SIGCONT) go_on(c, terminal);
    else if (number == SIGWINCH && terminal->outer >= 0) run_terminal_resize(terminal);
    else kill(-c->pid, number);
  }
}

/* Reads the keeper's news. If the keeper has ended, the workload's end is not known. */
static void take_news(child *c, run_terminal *terminal) {
  run_news news;
  const ssize_t bytes = read(c->keeper.news, &news, sizeof news);
  if (bytes == (ssize_t)sizeof news) {
    take_status(c, terminal, news.status);
  } else if (bytes >= 0 || (errno != EAGAIN && errno != EINTR)) {
    c->has_ended = true;
    c->status = RUN_FAILED;
    say("prof run: the process that waits for the workload was killed; how it ended is not known");
  }
}

static void loop(child *c, run_streams *streams) {
  const run_watch *const watch = streams->watch;
  run_terminal *const terminal = &streams->terminal;
  while (!c->has_ended) {
    enum { SIGNALS, NEWS, TYPED, EXTRA, FIXED };
    const bool is_typed = terminal->outer >= 0 && terminal->has_input && terminal->is_raw;
    struct pollfd polls[FIXED + 2] = {[SIGNALS] = {.fd = c->signals, .events = POLLIN},
                                      [NEWS] = {.fd = c->keeper.news, .events = POLLIN},
                                      [TYPED] = {.fd = is_typed ? STDIN_FILENO : -1,
                                                 .events = POLLIN},
                                      [EXTRA] = {.fd = watch->extra, .events = POLLIN}};
    const nfds_t count = FIXED + run_streams_poll(streams, polls + FIXED);
    if (poll(polls, count, -1) < 0) {
      if (errno != EINTR) run_fail("cannot wait for the workload: %s", strerror(errno));
      continue;
    }
    for (nfds_t i = FIXED; i < count; i++)
      if (polls[i].revents) run_streams_take(streams, polls[i].fd);
    if (polls[TYPED].revents) run_terminal_type(terminal);
    if (polls[EXTRA].revents) watch->on_extra(watch->context);
    if (polls[SIGNALS].revents) take_signals(c, terminal);
    if (polls[NEWS].revents && !c->has_ended) take_news(c, terminal);
  }
}

run_end run_child(const run_command *command, const run_watch *watch) {
  child c = {.terminal = -1};
  run_end end = {0};
  run_streams streams;
  run_streams_open(&streams, watch);
  open_signals(&c);
  const double begun = now_seconds();
  start(&c, command, &streams);
  loop(&c, &streams);
  end.seconds = now_seconds() - begun;
  take_terminal_back(&c);
  run_left_find(c.pid, &end.left);
  run_streams_finish(&streams);
  if (end.left.count > 0) run_keeper_leave(&c.keeper);
  else run_keeper_end(&c.keeper);
  end.status = c.status;
  end.failed = streams.failed;
  close_signals(&c);
  return end;
}
