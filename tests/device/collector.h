/* The end of prof's thread for devices, for tests that look at what it counts and says when
   recording stops. */
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

static inline bool is_collector(const char *task) {
  char path[64], name[32] = "";
  snprintf(path, sizeof path, "/proc/self/task/%.20s/comm", task);
  FILE *const file = fopen(path, "r");
  if (!file) return false; /* it has just gone */
  const bool is_read = fgets(name, sizeof name, file) != NULL;
  fclose(file);
  return is_read && strcmp(name, "prof-collector\n") == 0;
}

static inline bool collector_is_there(void) {
  bool is_there = false;
  DIR *const tasks = opendir("/proc/self/task");
  assert_non_null(tasks);
  for (const struct dirent *task; (task = readdir(tasks)) != NULL;)
    is_there |= task->d_name[0] != '.' && is_collector(task->d_name);
  closedir(tasks);
  return is_there;
}

/* A stop waits for it for a tenth of a second, with records for a second, and no longer, also where
   it has no processor: it ends by itself then. */
static inline void collector_has_ended(void) {
  WAIT_WHILE(collector_is_there());
  assert_false(collector_is_there());
}

#endif
