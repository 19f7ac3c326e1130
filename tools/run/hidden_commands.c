/* See internal.h: commands that prof puts into the command line of the workload. */
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

/* As in a shell: the exit status, or 128 + signal. */
static int wait_for_program(pid_t pid) {
  int status;
  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return RUN_FAILED;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* ---- run-status and run-status-of ---- */

/* The status comes through a pipe, whose number is in a variable. */
static const char status_variable[] = "PROF_RUN_STATUS";

static int run_words_to_end(char **words, int close_in_child) {
  sigset_t all, mask;
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
  return wait_for_program(pid);
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

/* ---- run-with ---- */

int run_with(int argc, char **argv) {
  int at = 1;
  while (at < argc && strcmp(argv[at], "--") != 0) run_export(argv[at++]);
  if (at + 1 >= argc) return refuse_words("run-with", "is for prof run alone", NULL);
  return run_execute(argv + at + 1);
}

/* ---- run-dual ---- */

enum { INSTANCES = 2 };

/* If HIP's variable is not set, HIP reads CUDA's, with the same meaning. ROCR_VISIBLE_DEVICES is
   not changed: HIP numbers only the devices that it leaves. With the number 1 in HIP's variable and
   in that one no device would be visible. */
static const char *const device_variables[] = {"HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"};
enum { VARIABLES = sizeof device_variables / sizeof *device_variables };

/* The device at that index of the list, or the index itself without a list. */
static char *listed_device(const char *variable, int place) {
  const char *at = getenv(variable);
  if (!at || !*at) return run_text("%d", place);
  for (int i = 0; i < place && at; i++) at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL;
  const size_t bytes = at ? strcspn(at, ",") : 0;
  if (bytes == 0) run_fail("%s is '%s'; DUAL-GCD needs two devices", variable, getenv(variable));
  return run_copy(at, bytes);
}

static pid_t start_instance(char **words, char *const devices[VARIABLES], const sigset_t *mask) {
  fflush(NULL);
  const pid_t pid = fork();
  if (pid < 0) run_fail("cannot make a process: %s", strerror(errno));
  if (pid > 0) return pid;
  sigprocmask(SIG_SETMASK, mask, NULL);
  for (size_t i = 0; i < VARIABLES; i++) setenv(device_variables[i], devices[i], 1);
  const int status = run_execute(words);
  fflush(stderr);
  _exit(status);
}

int run_dual(int argc, char **argv) {
  char *devices[INSTANCES][VARIABLES];
  pid_t pids[INSTANCES];
  sigset_t all, mask;
  int first = 0;
  if (argc < 2) return refuse_words("run-dual", "is for prof run alone", NULL);
  for (int i = 0; i < INSTANCES; i++)
    for (size_t v = 0; v < VARIABLES; v++) devices[i][v] = listed_device(device_variables[v], i);
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &mask);
  for (int i = 0; i < INSTANCES; i++) pids[i] = start_instance(argv + 1, devices[i], &mask);
  run_signals_outlive();
  sigprocmask(SIG_SETMASK, &mask, NULL);
  for (int i = 0; i < INSTANCES; i++) {
    const int status = wait_for_program(pids[i]);
    if (status == 0) continue;
    say("prof run: on device %s the program ended with status %d", devices[i][0], status);
    if (first == 0) first = status;
  }
  return first;
}
