/* Another process, which sets the level of a capture that is recorded, as users do: by
   prof_trace_set_level() or by the command `prof level`. It also reads the capture. It does one
   deed at a time, and the caller waits for the answer. It must be begun before the caller makes
   threads and before it starts to record. A header only, since each test is one file. */
#ifndef PROF_TESTS_OUTSIDE_H
#define PROF_TESTS_OUTSIDE_H

#include <fcntl.h>
#include <limits.h>
#include <prof/trace.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { OUTSIDE_CHANGES_MAX = 1024 };

/* A change of the level, as a trace tells of it. */
typedef struct outside_change {
  uint32_t before, after;
  uint64_t at_ns; /* CLOCK_MONOTONIC */
} outside_change;

typedef struct outside_changes {
  int status; /* of the trace */
  uint32_t count;
  uint64_t untold_count, error_ns;
  outside_change items[OUTSIDE_CHANGES_MAX];
} outside_changes;

typedef enum outside_deed { OUTSIDE_SET, OUTSIDE_COMMAND, OUTSIDE_READ } outside_deed;

/* What the two processes share. */
typedef struct outside_page {
  outside_deed deed;
  char capture[512];
  int level;
  int status, before; /* of the deed; the command tells no level before */
  outside_changes seen;
} outside_page;

static struct {
  char command[PATH_MAX];
  int asks, answers;
  outside_page *page;
} outside;

static inline uint64_t outside_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Those changes of the level that have this reason. */
static inline void outside_list(const prof_trace *trace, prof_change_reason reason,
                                outside_changes *to) {
  prof_trace_info info = {.size = sizeof info};
  prof_trace_info_get(trace, &info);
  to->count = 0;
  to->untold_count = info.untold_change_count;
  to->error_ns = info.clock_error_ns;
  for (uint32_t i = 0; i < info.change_count && to->count < OUTSIDE_CHANGES_MAX; i++) {
    prof_trace_change change = {.size = sizeof change};
    prof_trace_change_get(trace, i, &change);
    if (change.kind != PROF_CHANGE_LEVEL || change.reason != reason) continue;
    to->items[to->count++] =
        (outside_change){change.level_before, change.level_after, info.start_ns + change.at_ns};
  }
}

static inline void outside_read(const char *capture, outside_changes *to) {
  prof_trace *trace = NULL;
  to->count = 0;
  to->status = prof_trace_open(capture, &trace);
  if (to->status != PROF_OK) return;
  outside_list(trace, PROF_REASON_OUTSIDE, to);
  prof_trace_destroy(trace);
}

static inline int outside_run_command(const outside_page *page) {
  extern char **environ;
  char word[] = "level", level[] = {(char)('0' + page->level), '\0'};
  char *const words[] = {outside.command, word, (char *)(uintptr_t)page->capture, level, NULL};
  posix_spawn_file_actions_t actions;
  pid_t child = -1;
  int status = -1;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  if (posix_spawn(&child, outside.command, &actions, NULL, words, environ) == 0)
    waitpid(child, &status, 0);
  posix_spawn_file_actions_destroy(&actions);
  return status;
}

static inline void outside_do(outside_page *page) {
  switch (page->deed) {
    case OUTSIDE_SET:
      page->status = prof_trace_set_level(page->capture, page->level, &page->before);
      break;
    case OUTSIDE_COMMAND:
      page->status = outside_run_command(page);
      break;
    case OUTSIDE_READ:
      outside_read(page->capture, &page->seen);
      break;
  }
}

/* Ends when the other end of the pipe is closed. */
static inline void outside_live(int asked, int answered) {
  char byte;
  while (read(asked, &byte, 1) == 1) {
    outside_do(outside.page);
    if (write(answered, &byte, 1) != 1) break;
  }
  _exit(0);
}

/* The command is that of the build that this test belongs to. */
static inline bool outside_begin(void) {
  int asks[2], answers[2];
  char own_path[PATH_MAX];
  const ssize_t bytes = readlink("/proc/self/exe", own_path, sizeof own_path - 1);
  void *const page =
      mmap(NULL, sizeof *outside.page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (bytes <= 0 || page == MAP_FAILED) return false;
  own_path[bytes] = '\0';
  for (int up = 0; up < 3; up++) *strrchr(own_path, '/') = '\0'; /* build/tests/stress/oracle */
  const int wanted = snprintf(outside.command, sizeof outside.command, "%s/prof", own_path);
  if (wanted >= (int)sizeof outside.command || access(outside.command, X_OK) != 0) return false;
  outside.page = page;
  if (pipe(asks) != 0 || pipe(answers) != 0) return false;
  const pid_t child = fork();
  if (child == 0) {
    close(asks[1]);
    close(answers[0]);
    outside_live(asks[0], answers[1]);
  }
  close(asks[0]);
  close(answers[1]);
  outside.asks = asks[1];
  outside.answers = answers[0];
  return child > 0;
}

/* The answer stands in the page. */
static inline const outside_page *outside_ask(outside_deed deed, const char *capture, int level) {
  outside_page *const page = outside.page;
  char byte = 0;
  page->deed = deed;
  page->level = level;
  page->status = page->before = -1;
  snprintf(page->capture, sizeof page->capture, "%s", capture);
  if (write(outside.asks, &byte, 1) != 1 || read(outside.answers, &byte, 1) != 1) abort();
  return page;
}

#endif
