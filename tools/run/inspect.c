/* See captures.h. The process writes one inspection after the other into a pipe. If it ends early,
   the next file is the one that has ended it, and another process reads those behind. */
#define _GNU_SOURCE
#include "captures.h"

#include <errno.h>
#include <fcntl.h>
#include <prof/trace.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/format/header.h"

static void inspect_capture(const char *path, run_inspection *to) {
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  *to = (run_inspection){0};
  if (prof_trace_open(path, &trace) != PROF_OK) {
    snprintf(to->error, sizeof to->error, "%s", prof_last_error());
    return;
  }
  prof_trace_info_get(trace, &info);
  snprintf(to->process, sizeof to->process, "%s", info.process_name);
  to->pid = info.pid;
  to->start_ns = info.start_ns;
  to->rank = info.rank;
  to->has_ranks = prof_i_world_has_ranks(info.world_size);
  to->is_live = info.is_live;
  to->is_elsewhere = info.is_elsewhere;
  to->was_clean = info.was_clean;
  to->has_events = info.event_count + info.open_count > 0;
  to->has_rows = info.scope_count + info.open_count > 0;
  for (size_t i = 0; i < sizeof info.lost_count / sizeof *info.lost_count; i++) {
    to->has_rows |= info.lost_count[i] > 0;
    /* what the program itself has dropped is no loss */
    to->has_events |= info.lost_count[i] > 0 && i != PROF_LOSS_CLEARED;
  }
  prof_trace_destroy(trace);
}

static bool pipe_write_all(int fd, const char *at, size_t bytes) {
  while (bytes > 0) {
    const ssize_t done = write(fd, at, bytes);
    if (done < 0 && errno != EINTR) return false;
    if (done > 0) at += done;
    if (done > 0) bytes -= (size_t)done;
  }
  return true;
}

static size_t pipe_read_all(int fd, char *to, size_t bytes) {
  size_t at = 0;
  for (ssize_t got; at < bytes && (got = read(fd, to + at, bytes - at)) != 0;)
    if (got > 0)
      at += (size_t)got;
    else if (errno != EINTR)
      break;
  return at;
}

static _Noreturn void be_inspector(int to, const run_words *paths, size_t at) {
  signal(SIGBUS, SIG_DFL); /* it is reported by our parent */
  setrlimit(RLIMIT_CORE, &(struct rlimit){0});
  for (bool is_heard = true; is_heard && at < paths->count; at++) {
    run_inspection one;
    inspect_capture(paths->items[at], &one);
    is_heard = pipe_write_all(to, (const char *)&one, sizeof one);
  }
  _exit(0);
}

/* Returns how many it has inspected. No process can be made: -1. */
static ssize_t inspect_in_child(const run_words *paths, size_t from, run_inspection *to,
                                int *status_out) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  fflush(NULL);
  const pid_t pid = fork();
  if (pid == 0) be_inspector(ends[1], paths, from);
  close(ends[1]);
  const size_t bytes =
      pid > 0 ? pipe_read_all(ends[0], (char *)(to + from), (paths->count - from) * sizeof *to) : 0;
  close(ends[0]);
  while (pid > 0 && waitpid(pid, status_out, 0) < 0 && errno == EINTR) continue;
  return pid > 0 ? (ssize_t)(bytes / sizeof *to) : -1;
}

/* As the process that read it has ended. */
static void note_inspector_end(run_inspection *to, const char *path, int status) {
  *to = (run_inspection){0};
  const char *const how = WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "without a signal";
  snprintf(to->error, sizeof to->error,
           "'%s' cannot be read: it has ended the process that read it (%s); it was truncated "
           "meanwhile, or is damaged",
           path, how);
}

run_inspection *run_inspect(const run_words *paths) {
  run_inspection *const all = run_make(paths->count, sizeof *all);
  for (size_t at = 0; at < paths->count;) {
    int status = 0;
    const ssize_t count = inspect_in_child(paths, at, all, &status);
    if (count >= 0) at += (size_t)count;
    if (at == paths->count) break;
    if (count < 0)
      inspect_capture(paths->items[at], &all[at]);
    else
      note_inspector_end(&all[at], paths->items[at], status);
    at++;
  }
  return all;
}
