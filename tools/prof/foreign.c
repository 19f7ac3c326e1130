/* PyPI has another program of the name prof, with a command and a Python package. */
#define _GNU_SOURCE
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands.h"

enum { SCRIPT_BYTES = 4096 };

/* A script of pip or setuptools that starts it. */
static bool is_foreign_command(const char *path) {
  char text[SCRIPT_BYTES + 1];
  FILE *const file = fopen(path, "rb");
  if (!file) return false;
  const size_t bytes = fread(text, 1, SCRIPT_BYTES, file);
  fclose(file);
  text[bytes] = '\0';
  return strncmp(text, "#!", 2) == 0 &&
         (strstr(text, "from prof.main import") || strstr(text, "prof=="));
}

static void print_foreign(const char *path, const char *what) {
  fputs("PyPI's prof: ", stdout);
  print_text(stdout, path, strlen(path));
  printf(" is %s of another program: pip uninstall prof; this one's package is libprof\n", what);
}

static bool print_commands(void) {
  const char *const path = getenv("PATH");
  char *const folders = path ? strdup(path) : NULL, file[PATH_MAX];
  bool is_any = false;
  for (char *rest = folders, *folder; rest && (folder = strsep(&rest, ":")) != NULL;) {
    const int bytes = snprintf(file, sizeof file, "%s/prof", *folder ? folder : ".");
    if (bytes >= (int)sizeof file || !is_foreign_command(file)) continue;
    print_foreign(file, "the command");
    is_any = true;
  }
  free(folders);
  return is_any;
}

/* Beside the command, as in a virtual environment. This program's package has no such folder. */
static bool print_packages(void) {
  char own[PATH_MAX], pattern[PATH_MAX + 64];
  glob_t found = {0};
  const ssize_t bytes = readlink("/proc/self/exe", own, sizeof own - 1);
  if (bytes <= 0) return false;
  own[bytes] = '\0';
  char *const slash = strrchr(own, '/');
  if (!slash) return false;
  *slash = '\0';
  snprintf(pattern, sizeof pattern, "%s/../lib*/python3*/*-packages/prof/parsers", own);
  if (glob(pattern, 0, NULL, &found) != 0) return false;
  for (size_t i = 0; i < found.gl_pathc; i++) print_foreign(found.gl_pathv[i], "a part");
  globfree(&found);
  return true;
}

void print_foreign_prof(void) {
  const bool has_commands = print_commands(), has_packages = print_packages();
  if (has_commands || has_packages) putchar('\n');
}
