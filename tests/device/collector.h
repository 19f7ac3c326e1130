/* The end of prof's own threads, for tests that look at what these count and say when recording
   stops. If the process ends at the same time, LeakSanitizer may take a thread's memory for a
   leak. */
#ifndef TESTS_DEVICE_COLLECTOR_H
#define TESTS_DEVICE_COLLECTOR_H

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "hang_guard.h"

/* line: the thread's name, and the end of the line. */
static inline bool task_has_name(const char *task, const char *line) {
  char path[64], name[32] = "";
  snprintf(path, sizeof path, "/proc/self/task/%.20s/comm", task);
  FILE *const file = fopen(path, "r");
  if (!file) return false; /* it has just gone */
  const bool is_read = fgets(name, sizeof name, file) != NULL;
  fclose(file);
  return is_read && strcmp(name, line) == 0;
}

static inline bool thread_is_there(const char *line) {
  bool is_there = false;
  DIR *const tasks = opendir("/proc/self/task");
  assert_non_null(tasks);
  for (const struct dirent *task; (task = readdir(tasks)) != NULL;)
    is_there |= task->d_name[0] != '.' && task_has_name(task->d_name, line);
  closedir(tasks);
  return is_there;
}

static inline bool collector_is_there(void) { return thread_is_there("prof-collector\n"); }

/* A stop waits for it for a tenth of a second, with records for a second, and no longer, also where
   it has no processor: it ends by itself then. */
static inline void collector_has_ended(void) {
  WAIT_WHILE(collector_is_there());
  assert_false(collector_is_there());
}

/* Its stop waits as long. */
static inline void sampler_has_ended(void) { WAIT_WHILE(thread_is_there("prof-sampler\n")); }

#endif
