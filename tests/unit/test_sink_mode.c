/* The mode of an output file, by each way in which it gets its name. It has none before the end, or
   it has a temporary one. Where a sandbox forbids to name it later, it is copied. linkat() and
   openat() here stand in front of the libc's. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <prof/status.h>

#include "sink/sink.h"

typedef enum file_way { WAY_NAMELESS, WAY_NAMED, WAY_COPIED, WAY_COUNT } file_way;

static file_way way;
static int refused_count; /* calls that the way refuses */
static char folder[64], path[128];

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
  if (way == WAY_COPIED) {
    refused_count++;
    errno = EPERM;
    return -1;
  }
  return (int)syscall(SYS_linkat, from_folder, from, to_folder, to, flags);
}

int openat(int in, const char *name, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const unsigned mode = va_arg(list, unsigned);
  va_end(list);
  if (way == WAY_NAMED && (flags & O_TMPFILE) == O_TMPFILE) {
    refused_count++;
    errno = EOPNOTSUPP;
    return -1;
  }
  return (int)syscall(SYS_openat, in, name, flags, mode);
}

static int make_folder(void **state) {
  (void)state;
  strcpy(folder, "/tmp/prof-mode-XXXXXX");
  if (!mkdtemp(folder)) return -1;
  snprintf(path, sizeof path, "%s/out", folder);
  return 0;
}

static int remove_folder(void **state) {
  (void)state;
  unlink(path);
  return rmdir(folder);
}

static void write_text(const char *text, bool is_private) {
  char found[32] = "";
  prof_i_sink sink;
  assert_int_equal(prof_i_sink_open_file(&sink, path, false, false), PROF_OK);
  if (is_private) prof_i_sink_keep_private(&sink);
  prof_i_sink_text(&sink, text);
  assert_int_equal(prof_i_sink_commit(&sink), PROF_OK);
  FILE *const file = fopen(path, "r");
  if (!file && geteuid() != 0) return; /* it may not read what it has written */
  assert_non_null(file);
  assert_non_null(fgets(found, sizeof found, file));
  fclose(file);
  assert_string_equal(found, text);
}

static mode_t mode_of_file(void) {
  struct stat status;
  assert_int_equal(stat(path, &status), 0);
  return status.st_mode & 07777;
}

/* Runs the check once by each way, with the umask 027. */
static void check_each_way(void (*check)(void)) {
  const mode_t old = umask(027);
  for (way = WAY_NAMELESS; way < WAY_COUNT; way++) {
    refused_count = 0;
    unlink(path);
    check();
    assert_int_equal(refused_count > 0, way != WAY_NAMELESS);
  }
  way = WAY_NAMELESS;
  umask(old);
}

static void check_new(void) {
  write_text("new", false);
  assert_int_equal(mode_of_file(), 0640);
}

static void a_new_file_follows_the_umask(void **state) {
  (void)state;
  check_each_way(check_new);
}

static void check_replaced(void) {
  static const mode_t modes[] = {0600, 0640, 0400, 0666, 0755};
  for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
    write_text("old", false);
    assert_int_equal(chmod(path, modes[i]), 0);
    write_text("new", false);
    assert_int_equal(mode_of_file(), modes[i]);
  }
}

static void a_file_that_is_replaced_keeps_its_mode(void **state) {
  (void)state;
  check_each_way(check_replaced);
}

static void check_private(void) {
  write_text("new", true);
  assert_int_equal(mode_of_file(), 0600);
  assert_int_equal(chmod(path, 0644), 0);
  write_text("private", true);
  assert_int_equal(mode_of_file(), 0600);
}

static void a_private_file_is_its_users_alone(void **state) {
  (void)state;
  check_each_way(check_private);
}

static void check_other_user(void) {
  enum { OTHER_USER = 12345 };
  static const struct { mode_t theirs, ours; } modes[] = {{0666, 0640}, {0600, 0600}, {0777, 0640}};
  for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
    unlink(path);
    write_text("old", false);
    assert_int_equal(chmod(path, modes[i].theirs), 0);
    assert_int_equal(chown(path, OTHER_USER, OTHER_USER), 0);
    write_text("new", false);
    assert_int_equal(mode_of_file(), modes[i].ours);
  }
}

/* Who may write into the folder does not choose who reads the file. */
static void the_file_of_another_user_adds_no_rights(void **state) {
  (void)state;
  if (geteuid() != 0) {
    print_message("skip: only root gives a file to another user\n");
    skip();
  }
  check_each_way(check_other_user);
}

static void a_link_that_is_replaced_has_no_mode(void **state) {
  (void)state;
  char target[160];
  snprintf(target, sizeof target, "%s-target", folder);
  const mode_t old = umask(027);
  close(open(target, O_CREAT | O_WRONLY, 0600));
  assert_int_equal(symlink(target, path), 0);
  write_text("new", false);
  assert_int_equal(mode_of_file(), 0640);
  umask(old);
  unlink(target);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(a_new_file_follows_the_umask),
      IN_FOLDER(a_file_that_is_replaced_keeps_its_mode),
      IN_FOLDER(a_private_file_is_its_users_alone),
      IN_FOLDER(the_file_of_another_user_adds_no_rights),
      IN_FOLDER(a_link_that_is_replaced_has_no_mode),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
