/* Where libprof.so and the libraries beside it are: the command itself is linked statically. */
#define _GNU_SOURCE
#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"

/* From the command's folder, in an installation. */
#ifndef PROF_COMMAND_LIBRARIES
#define PROF_COMMAND_LIBRARIES "../lib"
#endif

static char folder[PATH_MAX];

/* Keeps the folder if the library is there. */
static bool try_folder(const char *path) {
  static const char *const names[] = {"libprof.so", "libprof.so.0", "libprof_memory.so"};
  char file[PATH_MAX + 32];
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    snprintf(file, sizeof file, "%s/%s", path, names[i]);
    if (access(file, R_OK) != 0) continue;
    char real[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", realpath(path, real) ? real : path);
    return true;
  }
  return false;
}

/* Of a wheel: bin/prof, and lib/python3.N/site-packages/prof/lib. */
static bool try_python_packages(const char *own) {
  char pattern[PATH_MAX + 64];
  glob_t found = {0};
  bool is_found = false;
  snprintf(pattern, sizeof pattern, "%s/../lib*/python3*/*-packages/prof/lib", own);
  if (glob(pattern, 0, NULL, &found) == 0)
    for (size_t i = 0; i < found.gl_pathc && !is_found; i++)
      is_found = try_folder(found.gl_pathv[i]);
  globfree(&found);
  return is_found;
}

const char *library_folder(void) {
  char own[PATH_MAX], path[PATH_MAX + 64];
  if (*folder) return folder;
  const ssize_t bytes = readlink("/proc/self/exe", own, sizeof own - 1);
  if (bytes <= 0) return NULL;
  own[bytes] = '\0';
  char *const slash = strrchr(own, '/');
  if (!slash) return NULL;
  *slash = '\0';
  snprintf(path, sizeof path, "%s/" PROF_COMMAND_LIBRARIES, own);
  if (try_folder(own) || try_folder(path) || try_python_packages(own)) return folder;
  return NULL;
}
