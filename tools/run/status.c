/* See internal.h. The status comes through a pipe, whose number is in a variable. */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../prof/commands.h"
#include "child.h"
#include "compose.h"

static const char status_variable[] = "PROF_RUN_STATUS";

static int run_words_to_end(char **words, int close_in_child) {
  sigset_t all, mask;
  int status;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &mask);
  fflush(NULL);
  const pid_t pid = fork();
  if (pid < 0) run_fail("cannot make a process: %s", strerror(errno));
  if (pid == 0) {
    sigprocmask(SIG_SETMASK, &mask, NULL);
    if (close_in_child >= 0) close(close_in_child);
    const int failed = run_execute(words);
    fflush(stderr);
    _exit(failed);
  }
  (void)run_input_release();
  run_signals_outlive();
  sigprocmask(SIG_SETMASK, &mask, NULL);
  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return RUN_FAILED;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* A tool that has failed may end before the program. False: the program was not run to its end. */
static bool read_tool_status(int from, int *status_out) {
  ssize_t bytes;
  do bytes = read(from, status_out, sizeof *status_out);
  while (bytes < 0 && errno == EINTR);
  return bytes == (ssize_t)sizeof *status_out;
}

int run_status(int argc, char **argv) {
  int ends[2], inner;
  if (argc < 2) return refuse_words("run-status", "is for prof run alone", NULL);
  if (pipe(ends) != 0) run_fail("cannot make a pipe: %s", strerror(errno));
  fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  setenv(status_variable, run_text("%d", ends[1]), 1);
  const int outer = run_words_to_end(argv + 1, -1);
  close(ends[1]);
  if (!read_tool_status(ends[0], &inner)) return outer;
  if (outer != inner && !(outer == 1 && inner != 0)) /* uftrace ends so if the program fails */
    say("prof run: %s itself ended with status %d, so its files may not be complete",
        run_base_name(argv[1]), outer);
  return inner;
}

int run_status_of(int argc, char **argv) {
  const char *const number = getenv(status_variable);
  const long to = number ? strtol(number, NULL, 10) : -1;
  if (argc < 2 || to < 0 || to > INT_MAX)
    return refuse_words("run-status-of", "is for prof run alone", NULL);
  unsetenv(status_variable);
  const int status = run_words_to_end(argv + 1, (int)to);
  (void)!write((int)to, &status, sizeof status);
  return status;
}
