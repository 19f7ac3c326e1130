/* See dual.h. ROCR_VISIBLE_DEVICES is not changed: HIP numbers only the devices that it leaves.
   With the number 1 in both variables no device would be visible. */
#define _GNU_SOURCE
#include "dual.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../prof/commands.h"
#include "child.h"
#include "compose.h"
#include "sampler.h"

enum { INSTANCES = 2 };

/* If HIP's variable is not set, HIP reads CUDA's, with the same meaning. */
static const char *const device_variables[] = {"HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"};
enum { VARIABLES = sizeof device_variables / sizeof *device_variables };

run_words run_dual_workload(const run_stack *stack, const run_words *workload) {
  run_words words = {0};
  for (size_t i = 0; i < stack->count && words.count == 0; i++) {
    if (!stack->tools[i].sampling || !stack->tools[i].sampling->is_dual) continue;
    run_words_add(&words, run_own_path());
    run_words_add(&words, "run-dual");
  }
  run_words_add_all(&words, workload);
  return words;
}

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

static int wait_for_instance(pid_t pid) {
  int status;
  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return RUN_FAILED;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
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
    const int status = wait_for_instance(pids[i]);
    if (status == 0) continue;
    say("prof run: on device %s the program ended with status %d", devices[i][0], status);
    if (first == 0) first = status;
  }
  return first;
}
