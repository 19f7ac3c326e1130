/* A program with more rights than who started it does not take orders from the environment:
   PROF_LEVEL, PROF_MEMORY and PROF_OUTPUT are then not read, or anybody could have it write a file
   of his choosing. Needs root, to make such a program. */
#define _GNU_SOURCE
#include <dirent.h>
#include <limits.h>
#include <prof/device.h>
#include <prof/profiler.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { OWNER = 65534, CALLER = 65533 };

static char folder[PATH_MAX];

/* What the copy does: says whether it has more rights, and whether it records. It goes without a
   look for leaks: nobody may look into such a process. */
static void record_one(void) {
  prof_backend_state state = {.size = sizeof state};
  uint32_t plugins = 0;
  WITH_BASE_PROFILER(PROF_HOST, "inside", "setuid", PROF_NO_ARGS, {});
  for (uint32_t i = 0; prof_backend_status(i, &state) == PROF_OK; i++) plugins += state.is_plugin;
  const int status = prof_backend_load("/nowhere");
  printf("secure %lu, level %d, %u plug-ins, %s\n", getauxval(AT_SECURE), prof_level(), plugins,
         prof_status_name(status));
  _exit(fflush(stdout) == 0 ? 0 : 1);
}

/* False: this name space has no such user. */
static bool copy_self(const char *to, mode_t mode) {
  char bytes[65536];
  FILE *const in = fopen("/proc/self/exe", "rb"), *const out = fopen(to, "wb");
  assert_true(in && out);
  for (size_t count; (count = fread(bytes, 1, sizeof bytes, in)) > 0;)
    assert_int_equal(fwrite(bytes, 1, count, out), count);
  fclose(in);
  assert_int_equal(fclose(out), 0);
  if (chown(to, OWNER, OWNER) != 0) return false;
  assert_int_equal(chmod(to, mode), 0);
  return true;
}

static bool can_be_caller(void) {
  int status = -1;
  const pid_t child = fork();
  if (child == 0) _exit(setgid(CALLER) != 0 || setuid(CALLER) != 0);
  return waitpid(child, &status, 0) == child && status == 0;
}

static void run_as_caller(const char *program, const char *output, char *says, size_t room) {
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 1);
    if (setgid(CALLER) != 0 || setuid(CALLER) != 0) _exit(3);
    setenv("PROF_LEVEL", "1", 1);
    setenv("PROF_MEMORY", "1", 1);
    setenv("PROF_OUTPUT", output, 1);
    /* it would be listed as one that is not there */
    setenv("PROF_BACKENDS", "/nobody_has_this", 1);
    execl(program, program, "inside", (char *)NULL);
    _exit(4);
  }
  close(ends[1]);
  const ssize_t count = read(ends[0], says, room - 1);
  says[count > 0 ? count : 0] = '\0';
  close(ends[0]);
  int status = -1;
  waitpid(child, &status, 0);
  assert_int_equal(status, 0);
}

static int count_outputs(void) {
  int count = 0;
  DIR *const entries = opendir(folder);
  for (const struct dirent *e; (e = readdir(entries)) != NULL;)
    count += strncmp(e->d_name, "out.json", 8) == 0;
  closedir(entries);
  return count;
}

static void a_program_with_more_rights_takes_no_orders(void **state) {
  char program[PATH_MAX + 16], output[PATH_MAX + 16], says[128];
  struct statvfs about;
  (void)state;
  if (geteuid() != 0 || statvfs(folder, &about) != 0 || about.f_flag & ST_NOSUID) {
    print_message("skip: not root, or the file system gives nobody more rights\n");
    skip();
  }
  snprintf(program, sizeof program, "%s/program", folder);
  snprintf(output, sizeof output, "%s/out.json", folder);
  if (!copy_self(program, 04755) || !can_be_caller()) {
    print_message("skip: this name space has no other users\n");
    skip();
  }
  run_as_caller(program, output, says, sizeof says);
  assert_string_equal(says, "secure 1, level 0, 0 plug-ins, PROF_E_PERMISSION\n");
  assert_int_equal(count_outputs(), 0);
  assert_int_equal(chmod(program, 0755), 0); /* the same without the right: it records */
  run_as_caller(program, output, says, sizeof says);
  assert_string_equal(says, "secure 0, level 1, 1 plug-ins, PROF_E_NOT_FOUND\n");
  assert_int_equal(count_outputs(), 1);
}

static int make_folder(void **state) {
  const char *const base = getenv("TMPDIR");
  (void)state;
  snprintf(folder, sizeof folder, "%s/prof-setuid-XXXXXX", base ? base : "/tmp");
  return mkdtemp(folder) && chmod(folder, 0777) == 0 ? 0 : -1;
}

static int remove_folder(void **state) {
  (void)state;
  DIR *const entries = opendir(folder);
  for (const struct dirent *e; entries && (e = readdir(entries)) != NULL;)
    if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
      unlinkat(dirfd(entries), e->d_name, 0);
  if (entries) closedir(entries);
  return rmdir(folder);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(
      a_program_with_more_rights_takes_no_orders, make_folder, remove_folder)};
  if (argc > 1 && strcmp(argv[1], "inside") == 0) record_one();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
