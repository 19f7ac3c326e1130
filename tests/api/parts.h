/* Parts of a test that need limits or a process of their own: "PROGRAM --part NAME FOLDER" runs
   one, which says on stderr what went wrong. A header only, because each test is one file. */
#ifndef TESTS_API_PARTS_H
#define TESTS_API_PARTS_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child_check.h"
#include "events.h"
#include "health.h"

#define TEST(name) cmocka_unit_test_teardown(name, empty_folder)
#define PART(name) \
  { #name, name }

typedef struct part {
  const char *name;
  int (*run)(void);
} part;

enum { SKIPPED = 77, PATH_ROOM = 512 };

static char folder[] = "/tmp/prof-bad-XXXXXX"; /* of a part: where it was started */

static int skip_part(const char *why) {
  fprintf(stderr, "skip: %s\n", why);
  return SKIPPED;
}

/* A macro: the type of the first argument differs between C libraries. */
#define limit(which, bytes)                                                          \
  check(setrlimit(which, &(const struct rlimit){(bytes), RLIM_INFINITY}) == 0, "%s", \
        strerror(errno))

static off_t size_of(const char *path) {
  struct stat about;
  return stat(path, &about) == 0 ? about.st_size : -1;
}

static int entries_in(const char *path) {
  char command[PATH_ROOM + 32], line[64] = "";
  snprintf(command, sizeof command, "ls -A '%s' | wc -l", path);
  FILE *const pipe = popen(command, "r");
  check(pipe && fgets(line, sizeof line, pipe), "%s", command);
  pclose(pipe);
  return atoi(line);
}

/* Is this process a part? */
static bool is_part(int argc, char **argv) { return argc == 4 && strcmp(argv[1], "--part") == 0; }

/* In a part: runs it. Returns its exit status, 125 for an unknown name. */
static int run_as_part(const part *parts, size_t count, char **argv) {
  snprintf(folder, sizeof folder, "%s", argv[3]);
  for (size_t i = 0; i < count; i++)
    if (strcmp(parts[i].name, argv[2]) == 0) return parts[i].run();
  return 125;
}

/* Runs it with these variables ("NAME=value", at most three); what it said on stderr comes back.
   Returns its wait status. */
static int run_part(const char *name, const char *const *variables, char *said, size_t room) {
  int ends[2];
  assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    for (; variables && *variables; variables++) putenv((char *)(uintptr_t)*variables);
    execl("/proc/self/exe", "part", "--part", name, folder, (char *)NULL);
    _exit(126);
  }
  close(ends[1]);
  size_t used = 0;
  for (ssize_t more; used + 1 < room && (more = read(ends[0], said + used, room - 1 - used)) > 0;)
    used += (size_t)more;
  said[used] = '\0';
  close(ends[0]);
  int status = -1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

static int make_folder(void **state) {
  (void)state;
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
  char command[PATH_ROOM + 16];
  (void)state;
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return system(command);
}

/* A test that failed may have left files that the next ones would trip over. */
static int empty_folder(void **state) {
  char command[PATH_ROOM + 16];
  (void)state;
  snprintf(command, sizeof command, "rm -rf '%s'/*", folder);
  return system(command);
}

#endif
