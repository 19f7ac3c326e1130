/* Runs the prof command in a folder of the test's own. */
#ifndef PROF_TESTS_RUN_COMMAND_H
#define PROF_TESTS_RUN_COMMAND_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trace_checks.h"

static struct {
  char command[PATH_MAX];
  char folder[PATH_MAX];
  char output[1 << 20]; /* of the last run: stdout, then stderr */
} own;

static CAPTURE_UNUSED void path_of(char path[PATH_MAX], const char *name) {
  if (snprintf(path, PATH_MAX, "%s/%s", own.folder, name) >= PATH_MAX) abort();
}

/* Runs the command with these words by the shell, in the folder; returns its exit status. */
static CAPTURE_UNUSED int run(const char *words) {
  char line[3 * PATH_MAX];
  snprintf(line, sizeof line,
           "cd '%s' && '%s' %s 2>stderr; status=$?; cat stderr; rm -f stderr; exit $status",
           own.folder, own.command, words);
  FILE *const pipe = popen(line, "r");
  assert_non_null(pipe);
  const size_t count = fread(own.output, 1, sizeof own.output - 1, pipe);
  own.output[count] = '\0';
  const int status = pclose(pipe);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

#define assert_says(text)                                                               \
  do {                                                                                  \
    if (!strstr(own.output, text)) fail_msg("\"%s\" is not in:\n%s", text, own.output); \
  } while (0)

static CAPTURE_UNUSED int write_capture(const capture *c, const char *name) {
  char path[PATH_MAX];
  path_of(path, name);
  FILE *const file = fopen(path, "wb");
  return !file || fwrite(c->bytes, 1, c->count, file) != c->count || fclose(file) != 0 ? -1 : 0;
}

/* False: it cannot be made. */
static CAPTURE_UNUSED bool make_folder(void) {
  const char *const build = getenv("PROF_TEST_BUILD_DIR"), *const base = getenv("TMPDIR");
  snprintf(own.command, sizeof own.command, "%s/prof", build ? build : ".");
  snprintf(own.folder, sizeof own.folder, "%s/prof-command-XXXXXX", base ? base : "/tmp");
  return mkdtemp(own.folder) != NULL;
}

static CAPTURE_UNUSED void need_the_command(void) {
  if (access(own.command, X_OK) == 0) return;
  print_message("skip: %s is not built (PROF_TOOLS is off)\n", own.command);
  skip();
}

#endif
