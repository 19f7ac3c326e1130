/* See stream.h: the second process. */
#define _GNU_SOURCE
#include "stream.h"

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

#include "process_tree.h"

/* Our orders to the keeper, one byte each: a stream's number, or this. */
enum { ORDER_END = 2 };

typedef struct keeper_state {
  int alive, news; /* our ends of the pipes */
  run_keeper_stream streams[2];
  int log;
  const run_terminal *terminal;
  pid_t workload; /* on a pty, or -1 */
  bool is_blind;  /* no signal comes when it ends */
} keeper_state;

/* ---- after our process was killed ---- */

static void close_stream(run_keeper_stream *s) {
  if (s->from >= 0) close(s->from);
  s->from = -1;
}

/* False: nobody reads it any more. Other errors may pass, and cannot be reported to anyone. */
static bool keeper_write_all(int to, const char *at, size_t bytes) {
  while (bytes > 0) {
    const ssize_t done = write(to, at, bytes);
    if (done < 0 && errno == EAGAIN) {
      poll(&(struct pollfd){.fd = to, .events = POLLOUT}, 1, -1);
    } else if (done < 0 && errno != EINTR) {
      return errno != EPIPE;
    } else if (done > 0) {
      at += done;
      bytes -= (size_t)done;
    }
  }
  return true;
}

static void pass_stream(const keeper_state *k, run_keeper_stream *s) {
  static char buffer[1 << 16];
  const ssize_t bytes = read(s->from, buffer, sizeof buffer);
  if (bytes < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (bytes > 0 && k->log >= 0) keeper_write_all(k->log, buffer, (size_t)bytes);
  if (bytes <= 0 || !keeper_write_all(s->to, buffer, (size_t)bytes)) close_stream(s);
}

/* Runs until all writers have ended. */
static void keeper_pass_streams(keeper_state *k) {
  run_terminal_repair(k->terminal);
  for (;;) {
    struct pollfd polls[2];
    for (int i = 0; i < 2; i++)
      polls[i] = (struct pollfd){.fd = k->streams[i].from, .events = POLLIN};
    if (polls[0].fd < 0 && polls[1].fd < 0) return;
    if (poll(polls, 2, -1) < 0 && errno != EINTR) return;
    for (int i = 0; i < 2; i++)
      if (polls[i].revents) pass_stream(k, &k->streams[i]);
  }
}

/* ---- beside it ---- */

/* Reports each stop and the end of the workload. True: it has ended. */
static bool send_news(const keeper_state *k) {
  run_news news = {.pid = k->workload};
  while (waitpid(k->workload, &news.status, WNOHANG | WUNTRACED) == k->workload) {
    (void)!write(k->news, &news, sizeof news);
    if (!WIFSTOPPED(news.status)) return true;
  }
  return false;
}

/* Obeys our process until it sends the end, or is no more. */
static _Noreturn void keeper_loop(keeper_state *k) {
  sigset_t mask;
  sigfillset(&mask);
  sigprocmask(SIG_BLOCK, &mask, NULL);
  sigdelset(&mask, SIGCHLD);
  for (bool has_ended = k->workload < 0;;) {
    const struct timespec often = {.tv_nsec = 50000000};
    struct pollfd polls[1] = {{.fd = k->alive, .events = POLLIN}};
    if (!has_ended && send_news(k)) has_ended = true;
    const bool is_blind = k->is_blind && !has_ended;
    const int ready = ppoll(polls, 1, is_blind ? &often : NULL, has_ended ? NULL : &mask);
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue; /* SIGCHLD */
    char send_order = ORDER_END;
    const ssize_t bytes = read(k->alive, &send_order, 1);
    if (bytes < 0) continue;
    if (bytes == 0) keeper_pass_streams(k);
    if (send_order == ORDER_END) _exit(0);
    close_stream(&k->streams[(int)send_order]);
  }
}

static void take_child_signal(int number) { (void)number; }

/* In the keeper: makes the session, and starts the workload in it. */
static void begin_on_terminal(keeper_state *k, const run_keeper_plan *plan) {
  const int slave = plan->terminal->slave;
  ioctl(slave, TIOCSCTTY, 0);
  sigset_t child, before;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigaddset(&child, SIGTTOU);
  const struct sigaction action = {.sa_handler = take_child_signal};
  k->is_blind =
      sigprocmask(SIG_BLOCK, &child, &before) != 0 || sigaction(SIGCHLD, &action, NULL) != 0;
  k->workload = fork();
  if (k->workload == 0) {
    setpgid(0, 0);
    tcsetpgrp(slave, getpid());
    sigprocmask(SIG_SETMASK, &before, NULL);
    plan->execute_child(plan->context);
    _exit(127);
  }
  const run_news news = {.pid = k->workload, .status = -1};
  if (k->workload > 0) setpgid(k->workload, k->workload);
  (void)!write(k->news, &news, sizeof news);
  if (k->workload < 0) _exit(1);
}

/* Those at the other ends must see when the workload closes a stream that we do not forward. */
static void close_what_is_not_forwarded(const keeper_state *k) {
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) return;
  dup2(null, STDIN_FILENO);
  for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
    bool is_needed = fd == k->terminal->outer;
    for (int i = 0; i < 2; i++) is_needed |= k->streams[i].from >= 0 && k->streams[i].to == fd;
    if (!is_needed) dup2(null, fd);
  }
  close(null);
}

static _Noreturn void run_as_keeper(keeper_state *k, const run_keeper_plan *plan) {
  memcpy(k->streams, plan->streams, sizeof k->streams);
  k->log = plan->log;
  k->terminal = plan->terminal;
  prctl(PR_SET_NAME, RUN_KEEPER_COMM);
  setsid();
  if (plan->terminal->is_controlling) begin_on_terminal(k, plan);
  if (plan->terminal->slave >= 0) close(plan->terminal->slave);
  for (int i = 0; i < 2; i++)
    if (plan->write_ends[i] >= 0) close(plan->write_ends[i]);
  close_what_is_not_forwarded(k);
  keeper_loop(k);
}

static bool open_keeper_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC) == 0; }

static void close_pipe(const int ends[2]) {
  for (int i = 0; i < 2; i++)
    if (ends[i] >= 0) close(ends[i]);
}

bool run_keeper_start(run_keeper *keeper, const run_keeper_plan *plan) {
  int alive[2] = {-1, -1}, news[2] = {-1, -1};
  const bool is_on_terminal = plan->terminal->is_controlling;
  fflush(NULL);
  const bool has_pipes = open_keeper_pipe(alive) && (!is_on_terminal || open_keeper_pipe(news));
  const pid_t pid = has_pipes ? fork() : -1;
  if (pid < 0) {
    const int error = errno;
    close_pipe(alive);
    close_pipe(news);
    errno = error;
    return false;
  }
  if (pid == 0) {
    keeper_state k = {.alive = alive[0], .news = news[1], .workload = -1};
    close(alive[1]);
    if (is_on_terminal) close(news[0]);
    run_as_keeper(&k, plan);
  }
  close(alive[0]);
  if (is_on_terminal) close(news[1]);
  *keeper = (run_keeper){.pid = pid, .news = news[0], .alive = alive[1]};
  return true;
}

static void send_order(const run_keeper *keeper, char what) {
  (void)!write(keeper->alive, &what, 1);
}

void run_keeper_close(const run_keeper *keeper, int stream) {
  if (keeper->pid > 0) send_order(keeper, (char)stream);
}

void run_keeper_end(run_keeper *keeper) {
  if (keeper->pid <= 0) return;
  send_order(keeper, ORDER_END);
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
