/* See child.h. The workload is a process group of its own, as under a shell with job control: a
   signal reaches all of it, and nothing of who called us. */
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

#include "left.h"
#include "stream.h"

/* Each that may end us, or that a terminal or a user sends. */
static const int forwarded[] = {SIGINT,  SIGQUIT, SIGTERM, SIGHUP, SIGUSR1,
                                SIGUSR2, SIGALRM, SIGTSTP, SIGWINCH};

typedef struct child {
  pid_t pid;
  int signals;  /* a signalfd */
  int terminal; /* that the group has got from us, or -1 */
  sigset_t mask_before;
  struct sigaction child_before; /* of SIGCHLD: who called us may ignore it */
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
  sigaddset(&mask, SIGTTOU); /* tcsetpgrp() from behind */
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

/* In the new process. */
static _Noreturn void become(const child *c, const run_command *command, const run_streams *streams) {
  setpgid(0, 0);
  if (c->terminal >= 0) tcsetpgrp(c->terminal, getpid());
  run_streams_be_child(streams);
  for (size_t i = 0; i < command->variables.count; i++) run_export(command->variables.items[i]);
  sigaction(SIGCHLD, &c->child_before, NULL);
  sigprocmask(SIG_SETMASK, &c->mask_before, NULL);
  const int status = run_execute(command->words.items);
  fflush(stderr);
  _exit(status);
}

static void start(child *c, const run_command *command, const run_streams *streams) {
  c->terminal = own_terminal();
  fflush(NULL);
  c->pid = fork();
  if (c->pid < 0) run_fail("cannot make a process: %s", strerror(errno));
  if (c->pid == 0) become(c, command, streams);
  setpgid(c->pid, c->pid); /* both do: whoever comes first */
}

/* The workload was stopped by its terminal: so are we, until somebody continues us. */
static void stop_with(child *c) {
  if (c->terminal < 0) return;
  tcsetpgrp(c->terminal, getpgrp());
  raise(SIGSTOP);
  if (tcgetpgrp(c->terminal) == getpgrp()) tcsetpgrp(c->terminal, c->pid);
  kill(-c->pid, SIGCONT);
}

static void reap(child *c) {
  int status;
  while (waitpid(c->pid, &status, WNOHANG | WUNTRACED) == c->pid) {
    if (WIFSTOPPED(status)) {
      stop_with(c);
      continue;
    }
    c->has_ended = true;
    c->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return;
  }
}

static void take_signals(child *c) {
  struct signalfd_siginfo info;
  while (read(c->signals, &info, sizeof info) == (ssize_t)sizeof info)
    if (info.ssi_signo == SIGCHLD) reap(c);
    else kill(-c->pid, (int)info.ssi_signo);
}

static void loop(child *c, run_streams *streams) {
  while (!c->has_ended) {
    struct pollfd polls[3] = {{.fd = c->signals, .events = POLLIN}};
    const nfds_t count = 1 + run_streams_poll(streams, polls + 1);
    if (poll(polls, count, -1) < 0 && errno != EINTR)
      run_fail("cannot wait for the workload: %s", strerror(errno));
    for (nfds_t i = 1; i < count; i++)
      if (polls[i].revents) run_streams_take(streams, polls[i].fd);
    if (polls[0].revents) take_signals(c);
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
  run_streams_be_parent(&streams);
  loop(&c, &streams);
  end.seconds = now_seconds() - begun;
  if (c.terminal >= 0) tcsetpgrp(c.terminal, getpgrp());
  run_streams_finish(&streams);
  end.status = c.status;
  end.failed = streams.failed;
  run_left_find(c.pid, &end.left);
  close_signals(&c);
  return end;
}
