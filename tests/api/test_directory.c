/* A relative path means the directory of the start: the files of a capture stay there, even if the
   program changes its directory later. Each scene is a process of its own, whose exit status is its
   number of mistakes. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <prof/memory.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "events.h"

enum { DEEP_NAME_BYTES = 250, DEEP_COUNT = 20, BY_ENVIRONMENT_LEAVES = 3 };

static char folder[] = "/tmp/prof-directory-XXXXXX";
static char first[sizeof folder + 32], second[sizeof folder + 32];

static int mistakes;
static void expect(bool is_right, const char *what) {
  if (is_right) return;
  print_error("%s; last error: %s\n", what, prof_last_error());
  mistakes++;
}
#define EXPECT(condition) expect((condition), #condition)

static void go_to(const char *directory) {
  if (chdir(directory) != 0) expect(false, directory);
}

static bool is_in(const char *directory, const char *name) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  return access(path, F_OK) == 0;
}

static int count_in(const char *directory) {
  int count = 0;
  DIR *const entries = opendir(directory);
  for (const struct dirent *e; entries && (e = readdir(entries)) != NULL;)
    count += e->d_name[0] != '.';
  if (entries) closedir(entries);
  return entries ? count : -1;
}

static void record_a_scope(void) { WITH_BASE_PROFILER(PROF_HOST, "here", "x", PROF_NO_ARGS, {}); }

static int start_at(const char *path) {
  const prof_options options = {.size = sizeof options, .path = path, .cap_bytes = 4 << 20};
  return prof_start_with(&options);
}

/* ---- scenes ---- */

static void the_trace_is_beside_its_capture(void) {
  prof_pool *pool = NULL;
  prof_health health = {.size = sizeof health};
  EXPECT(prof_pool_create(NULL, &pool) == PROF_OK);
  go_to(first);
  EXPECT(start_at("trace.json") == PROF_OK);
  prof_memory_alloc(pool, first, 10, 0);
  go_to(second);
  record_a_scope();
  EXPECT(prof_memory_oom(PROF_HOST, 1) == PROF_OK);
  EXPECT(prof_health(&health) == PROF_OK);
  EXPECT(strncmp(health.capture_path, first, strlen(first)) == 0);
  EXPECT(count_in(first) == 2); /* the capture, the text */
  EXPECT(prof_stop() == PROF_OK);
  EXPECT(prof_start(1) == PROF_OK); /* the same capture */
  record_a_scope();
  EXPECT(prof_stop() == PROF_OK);
  EXPECT(prof_dump(NULL) == PROF_OK);
  EXPECT(is_in(first, "trace.json"));
  EXPECT(count_in(first) == 2); /* the trace, the text */
  EXPECT(count_in(second) == 0);
  EXPECT(start_at("trace.json") == PROF_OK); /* another one: from here */
  record_a_scope();
  go_to("/");
  EXPECT(prof_stop() == PROF_OK);
  EXPECT(prof_dump(NULL) == PROF_OK);
  EXPECT(count_in(first) == 2);
  EXPECT(is_in(second, "trace.json"));
  EXPECT(count_in(second) == 1);
}

static void a_forked_child_is_beside_its_parent(void) {
  char name[64];
  int status = -1;
  go_to(first);
  EXPECT(start_at("trace.json") == PROF_OK);
  go_to(second);
  const pid_t child = fork();
  if (child == 0) {
    mistakes = 0;
    go_to("/");
    record_a_scope();
    EXPECT(prof_stop() == PROF_OK);
    EXPECT(prof_dump(NULL) == PROF_OK);
    _exit(mistakes);
  }
  EXPECT(waitpid(child, &status, 0) == child && status == 0);
  EXPECT(prof_stop() == PROF_OK);
  EXPECT(prof_dump(NULL) == PROF_OK);
  snprintf(name, sizeof name, "trace.%ld.json", (long)child);
  EXPECT(is_in(first, name));
  EXPECT(is_in(first, "trace.json"));
  EXPECT(count_in(first) == 2);
  EXPECT(count_in(second) == 0);
}

/* The directory's name is not a pattern of the user: its percent signs stay as they are, for a
   child too. */
static void percent_signs_of_the_directory_stay(void) {
  char there[sizeof first + 32], name[64];
  int status = -1;
  snprintf(there, sizeof there, "%s/%%p of 100%%", first);
  EXPECT(mkdir(there, 0700) == 0);
  go_to(there);
  EXPECT(start_at("r%r.json") == PROF_OK);
  go_to(second);
  record_a_scope();
  EXPECT(prof_stop() == PROF_OK);
  EXPECT(prof_dump(NULL) == PROF_OK);
  EXPECT(is_in(there, "r0.json"));
  EXPECT(count_in(there) == 1);
  EXPECT(prof_start(1) == PROF_OK);
  const pid_t child = fork();
  if (child == 0) {
    mistakes = 0;
    record_a_scope();
    EXPECT(prof_stop() == PROF_OK);
    EXPECT(prof_dump(NULL) == PROF_OK);
    _exit(mistakes);
  }
  EXPECT(waitpid(child, &status, 0) == child && status == 0);
  snprintf(name, sizeof name, "r0.%ld.json", (long)child);
  EXPECT(is_in(there, name));
  EXPECT(count_in(second) == 0);
}

/* A start, a scope, a dump with a relative name: one file in the directory where the program is. */
static void leaves_a_trace_here(void) {
  EXPECT(start_at("trace.json") == PROF_OK);
  record_a_scope();
  EXPECT(prof_stop() == PROF_OK);
  EXPECT(prof_dump(NULL) == PROF_OK);
  EXPECT(is_in(".", "trace.json"));
  EXPECT(count_in(".") == 1);
}

/* No path of 4096 bytes leads there: the file is found all the same, as long as the program
   stays. */
static void a_directory_without_a_path_works_while_the_program_is_there(void) {
  char name[DEEP_NAME_BYTES + 1], here[PATH_MAX];
  memset(name, 'd', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  go_to(first);
  for (int i = 0; i < DEEP_COUNT && !mistakes; i++) {
    EXPECT(mkdir(name, 0700) == 0);
    go_to(name);
  }
  EXPECT(getcwd(here, sizeof here) == NULL);
  leaves_a_trace_here();
}

/* A path just short enough for itself, and too long for the names that are made of it, stays
   relative. */
static void a_path_of_any_length_works_while_the_program_is_there(void) {
  char name[DEEP_NAME_BYTES + 1], here[PATH_MAX];
  memset(name, 'd', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  go_to(first);
  for (int i = 0; i < 15 && !mistakes; i++) {
    EXPECT(mkdir(name, 0700) == 0);
    go_to(name);
  }
  /* 15 bytes further each time, up to the end of what getcwd() takes */
  for (int i = 0; i < 20 && !mistakes; i++) {
    EXPECT(mkdir("fourteen bytes", 0700) == 0);
    go_to("fourteen bytes");
    if (!getcwd(here, sizeof here)) break;
    leaves_a_trace_here();
  }
}

static void the_environments_path_is_that_of_the_start(void) {
  char *const argv[] = {"directory", "by-environment", second, NULL};
  go_to(first);
  setenv("PROF_LEVEL", "1", 1);
  setenv("PROF_OUTPUT", "trace.json", 1);
  const pid_t child = fork();
  if (child == 0) {
    execv("/proc/self/exe", argv);
    _exit(127);
  }
  int status = -1;
  EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) &&
         WEXITSTATUS(status) == BY_ENVIRONMENT_LEAVES);
  EXPECT(is_in(first, "trace.json"));
  EXPECT(count_in(first) == 1);
  EXPECT(count_in(second) == 0);
}

static int run_by_environment(const char *directory) {
  if (prof_level() != 1 || chdir(directory) != 0) return 1;
  record_a_scope();
  return BY_ENVIRONMENT_LEAVES;
}

/* ---- */

static void play(void (*scene)(void)) {
  int status = -1;
  assert_int_equal(mkdir(first, 0700), 0);
  assert_int_equal(mkdir(second, 0700), 0);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    scene();
    _exit(mistakes);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

static int clean(void **state) {
  char command[256];
  (void)state;
  snprintf(command, sizeof command, "rm -rf '%s' '%s'", first, second);
  return system(command);
}

#define SCENE(name)                       \
  static void test_##name(void **state) { \
    (void)state;                          \
    play(name);                           \
  }
SCENE(the_trace_is_beside_its_capture)
SCENE(a_forked_child_is_beside_its_parent)
SCENE(percent_signs_of_the_directory_stay)
SCENE(a_directory_without_a_path_works_while_the_program_is_there)
SCENE(a_path_of_any_length_works_while_the_program_is_there)
SCENE(the_environments_path_is_that_of_the_start)
#define ENTRY(name) \
  { #name, test_##name, NULL, clean, NULL }

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      ENTRY(the_trace_is_beside_its_capture),
      ENTRY(a_forked_child_is_beside_its_parent),
      ENTRY(percent_signs_of_the_directory_stay),
      ENTRY(a_directory_without_a_path_works_while_the_program_is_there),
      ENTRY(a_path_of_any_length_works_while_the_program_is_there),
      ENTRY(the_environments_path_is_that_of_the_start),
  };
  if (argc == 3 && strcmp(argv[1], "by-environment") == 0) return run_by_environment(argv[2]);
  if (!mkdtemp(folder)) return 1;
  snprintf(first, sizeof first, "%s/first", folder);
  snprintf(second, sizeof second, "%s/second", folder);
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  rmdir(folder);
  return failed;
}
