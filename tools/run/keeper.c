/* See keeper.h. */
#define _GNU_SOURCE
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "text.h"

typedef struct keeping {
  int alive, news; /* our ends of the pipes */
  run_keeper_stream streams[2];
  pid_t workload; /* on a pty, or -1 */
} keeping;

/* Runs until all writers have ended. Errors cannot be reported to anyone. */
static void pass_on(run_keeper_stream *streams) {
  char buffer[1 << 16];
  for (;;) {
    struct pollfd polls[2];
    for (int i = 0; i < 2; i++) polls[i] = (struct pollfd){.fd = streams[i].from, .events = POLLIN};
    if (polls[0].fd < 0 && polls[1].fd < 0) return;
    if (poll(polls, 2, -1) < 0 && errno != EINTR) return;
    for (int i = 0; i < 2; i++) {
      if (!polls[i].revents) continue;
      const ssize_t bytes = read(streams[i].from, buffer, sizeof buffer);
      if (bytes < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      ssize_t done = 0;
      while (bytes > 0 && done < bytes) {
        const ssize_t now = write(streams[i].to, buffer + done, (size_t)(bytes - done));
        if (now > 0) done += now;
        else if (errno != EINTR) break;
      }
      if (bytes > 0 && done == bytes) continue;
      close(streams[i].from);
      streams[i].from = -1;
    }
  }
}

/* Reports each stop and the end of the workload. True: it has ended. */
static bool tell_news(const keeping *k) {
  run_news news = {.pid = k->workload};
  while (waitpid(k->workload, &news.status, WNOHANG | WUNTRACED) == k->workload) {
    (void)!write(k->news, &news, sizeof news);
    if (!WIFSTOPPED(news.status)) return true;
  }
  return false;
}

/* Waits until our process writes a byte, or ends without one. */
static _Noreturn void keep(keeping *k) {
  sigset_t mask;
  sigfillset(&mask);
  sigprocmask(SIG_BLOCK, &mask, NULL);
  sigdelset(&mask, SIGCHLD);
  for (bool has_ended = k->workload < 0;;) {
    struct pollfd polls[1] = {{.fd = k->alive, .events = POLLIN}};
    if (!has_ended && tell_news(k)) has_ended = true;
    if (ppoll(polls, 1, NULL, has_ended ? NULL : &mask) < 0) continue; /* SIGCHLD */
    char byte;
    if (read(k->alive, &byte, 1) == 1) _exit(0);
    pass_on(k->streams);
    _exit(0);
  }
}

static void take_child_signal(int number) { (void)number; }

/* In the keeper: makes the session, and starts the workload in it. */
static void begin_on_terminal(keeping *k, const run_keeper_plan *plan) {
  ioctl(plan->slave, TIOCSCTTY, 0);
  sigset_t child, before;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigaddset(&child, SIGTTOU);
  sigprocmask(SIG_BLOCK, &child, &before);
  sigaction(SIGCHLD, &(struct sigaction){.sa_handler = take_child_signal}, NULL);
  k->workload = fork();
  if (k->workload == 0) {
    setpgid(0, 0);
    tcsetpgrp(plan->slave, getpid());
    sigprocmask(SIG_SETMASK, &before, NULL);
    plan->become(plan->context);
    _exit(127);
  }
  const run_news news = {.pid = k->workload, .status = -1};
  if (k->workload > 0) setpgid(k->workload, k->workload);
  (void)!write(k->news, &news, sizeof news);
  if (k->workload < 0) _exit(1);
}

static _Noreturn void be_keeper(keeping *k, const run_keeper_plan *plan) {
  memcpy(k->streams, plan->streams, sizeof k->streams);
  prctl(PR_SET_NAME, "prof run keeper");
  setsid();
  if (plan->slave >= 0) {
    begin_on_terminal(k, plan);
    close(plan->slave);
  }
  for (int i = 0; i < 2; i++)
    if (plan->write_ends[i] >= 0) close(plan->write_ends[i]);
  keep(k);
}

void run_keeper_start(run_keeper *keeper, const run_keeper_plan *plan) {
  int alive[2], news[2] = {-1, -1};
  const bool is_on_terminal = plan->slave >= 0;
  if (pipe2(alive, O_CLOEXEC) != 0 || (is_on_terminal && pipe2(news, O_CLOEXEC) != 0))
    run_fail("cannot make a pipe: %s", strerror(errno));
  fflush(NULL);
  keeper->pid = fork();
  if (keeper->pid < 0) run_fail("cannot make a process: %s", strerror(errno));
  if (keeper->pid == 0) {
    keeping k = {.alive = alive[0], .news = news[1], .workload = -1};
    close(alive[1]);
    if (is_on_terminal) close(news[0]);
    be_keeper(&k, plan);
  }
  close(alive[0]);
  if (is_on_terminal) close(news[1]);
  keeper->alive = alive[1];
  keeper->news = news[0];
}

void run_keeper_end(run_keeper *keeper) {
  if (keeper->pid <= 0) return;
  (void)!write(keeper->alive, "", 1);
  close(keeper->alive);
  if (keeper->news >= 0) close(keeper->news);
  while (waitpid(keeper->pid, NULL, 0) < 0 && errno == EINTR) continue;
  keeper->pid = -1;
}

void run_keeper_leave(run_keeper *keeper) {
  if (keeper->pid <= 0) return;
  close(keeper->alive);
  if (keeper->news >= 0) close(keeper->news);
  keeper->pid = -1;
}
