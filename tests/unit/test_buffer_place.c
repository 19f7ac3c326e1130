/* Where a capture's file goes: beside the output, else elsewhere with a reason; never over, or
   through, an existing file. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <prof/status.h>

#include "core/buffer/arena.h"
#include "core/buffer/capture_file.h"

static char folder[] = "/tmp/prof-place-XXXXXX";
static char output[sizeof folder + 16];

enum { ROOM = 512 };

static int create(const char *at, char *path, char *reason) {
  return prof_i_capture_file_create(at, false, path, ROOM, reason, ROOM);
}

static void a_capture_stands_beside_its_output_and_is_its_users_alone(void **state) {
  (void)state;
  char path[ROOM], second[ROOM], reason[ROOM];
  struct stat about;
  const int fd = create(output, path, reason);
  assert_true(fd >= 0);
  assert_string_equal(reason, "");
  assert_int_equal(strncmp(path, output, strlen(output)), 0);
  assert_string_equal(path + strlen(path) - 7, "-0.prof");
  assert_int_equal(fstat(fd, &about), 0);
  assert_int_equal(about.st_mode & 0777, PROF_I_MODE_CLAIMING);
  assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  const int other = create(output, second, reason);
  assert_true(other >= 0);
  assert_string_not_equal(path, second);
  assert_string_equal(second + strlen(second) - 7, "-1.prof");
  close(fd);
  close(other);
  assert_int_equal(unlink(path), 0);
  assert_int_equal(unlink(second), 0);
}

static void a_symbolic_link_in_the_way_is_not_followed(void **state) {
  (void)state;
  char path[ROOM], second[ROOM], reason[ROOM], victim[ROOM];
  close(create(output, path, reason));
  assert_int_equal(unlink(path), 0);
  snprintf(victim, sizeof victim, "%s/victim", folder);
  assert_int_equal(symlink(victim, path), 0); /* it would be made there */
  const int fd = create(output, second, reason);
  assert_true(fd >= 0);
  assert_string_not_equal(path, second);
  assert_int_equal(access(victim, F_OK), -1);
  close(fd);
  unlink(path);
  unlink(second);
}

static void an_unfit_directory_is_named_and_another_one_found(void **state) {
  (void)state;
  char path[ROOM], reason[ROOM];
  setenv("PROF_CAPTURE_DIR", folder, 1);
  const int fd = create("/proc/trace.json", path, reason);
  unsetenv("PROF_CAPTURE_DIR");
  assert_true(fd >= 0);
  assert_non_null(strstr(reason, "'/proc'"));
  assert_non_null(strstr(reason, folder));
  assert_int_equal(strncmp(path, folder, strlen(folder)), 0);
  close(fd);
  unlink(path);
}

static void a_short_room_is_refused_and_nothing_is_left(void **state) {
  (void)state;
  char path[8], reason[ROOM];
  assert_int_equal(
      prof_i_capture_file_create(output, false, path, sizeof path, reason, sizeof reason), -1);
  assert_non_null(strstr(reason, "too long"));
  assert_non_null(strstr(reason, "in memory"));
  assert_string_equal(path, "");
  assert_int_equal(rmdir(folder), 0); /* empty */
  assert_int_equal(mkdir(folder, 0700), 0);
}

static void a_suffix_stands_before_the_ending(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"trace.json", "trace.%ld.json"}, {"trace.json.gz", "trace.%ld.json.gz"},
      {"trace", "trace.%ld"},           {"a.b/trace", "a.b/trace.%ld"},
      {"a/.hidden", "a/.hidden.%ld"},   {"x.tar.json", "x.tar.%ld.json"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char path[64], wanted[64];
    snprintf(path, sizeof path, "%s", cases[i][0]);
    const char *const mark = strstr(cases[i][1], "%ld");
    snprintf(wanted, sizeof wanted, "%.*s%ld%s", (int)(mark - cases[i][1]), cases[i][1],
             (long)getpid(), mark + 3);
    assert_int_equal(prof_i_output_add_suffix(path, sizeof path), PROF_OK);
    assert_string_equal(path, wanted);
  }
  char tight[12] = "trace.json";
  assert_int_equal(prof_i_output_add_suffix(tight, sizeof tight), PROF_E_INVALID);
  assert_string_equal(tight, "trace.json");
}

/* ---- the capture as the output ---- */

/* Makes a capture the one in force, as arena.c does. */
static int make_current(const char *at, char *path) {
  char reason[ROOM];
  struct stat about;
  const int fd = create(at, path, reason);
  assert_true(fd >= 0);
  assert_int_equal(fstat(fd, &about), 0);
  assert_int_equal(fchmod(fd, PROF_I_MODE_CLAIMED), 0);
  prof_i_the_arena.is_file = true;
  prof_i_the_arena.device = about.st_dev;
  prof_i_the_arena.inode = about.st_ino;
  return fd;
}

static void assert_stays(const char *path, int fd) {
  struct stat there, ours;
  assert_int_equal(fstat(fd, &ours), 0);
  assert_int_equal(lstat(path, &there), 0);
  assert_true(there.st_ino == ours.st_ino && there.st_dev == ours.st_dev);
  assert_int_equal(there.st_mode & 077, 0);
}

static void a_capture_takes_its_outputs_name_and_replaces_the_one_of_before(void **state) {
  (void)state;
  char path[ROOM];
  struct stat before, after;
  for (int round = 0; round < 2; round++) {
    const int fd = make_current(output, path);
    assert_int_equal(fstat(fd, &before), 0);
    const mode_t mask = umask(round ? 077 : 022);
    assert_int_equal(prof_i_capture_file_rename(path, output), PROF_OK);
    umask(mask);
    assert_int_equal(lstat(output, &after), 0);
    assert_int_equal(after.st_ino, before.st_ino);
    assert_int_equal(after.st_mode & 0777, 0600); /* it is a capture still */
    assert_int_equal(access(path, F_OK), -1);
    close(fd);
  }
  assert_int_equal(unlink(output), 0);
}

static void a_link_under_the_outputs_name_is_replaced_and_not_followed(void **state) {
  (void)state;
  char path[ROOM], victim[ROOM];
  struct stat about;
  snprintf(victim, sizeof victim, "%s/victim", folder);
  assert_int_equal(symlink(victim, output), 0);
  const int fd = make_current(output, path);
  assert_int_equal(prof_i_capture_file_rename(path, output), PROF_OK);
  assert_int_equal(lstat(output, &about), 0);
  assert_true(S_ISREG(about.st_mode));
  assert_int_equal(access(victim, F_OK), -1);
  close(fd);
  assert_int_equal(unlink(output), 0);
}

/* Each says why, and leaves the capture and what stands under the output's name as they were. */
static void an_output_that_cannot_be_had_leaves_the_capture_as_it_is(void **state) {
  (void)state;
  char path[ROOM], moved[ROOM + 8], elsewhere[] = "/dev/shm/prof-place-XXXXXX";
  const int fd = make_current(output, path);
  const int other = open(output, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  assert_true(other >= 0);
  prof_i_capture_file_lock(other);
  assert_int_equal(prof_i_capture_file_rename(path, output), PROF_E_BUSY);
  assert_non_null(strstr(prof_last_error(), "another process records into it"));
  assert_stays(output, other);
  assert_stays(path, fd);
  close(other);
  assert_int_equal(unlink(output), 0);

  assert_int_equal(mkdir(output, 0700), 0);
  assert_int_equal(prof_i_capture_file_rename(path, output), PROF_E_FILE_TYPE);
  assert_stays(path, fd);
  assert_int_equal(rmdir(output), 0);

  struct stat here, there;
  const int far = mkstemp(elsewhere);
  if (far >= 0 && fstat(far, &there) == 0 && fstat(fd, &here) == 0 && there.st_dev != here.st_dev) {
    assert_int_equal(prof_i_capture_file_rename(path, elsewhere), PROF_E_IO);
    assert_non_null(strstr(prof_last_error(), "on another file system"));
    assert_stays(elsewhere, far);
    assert_stays(path, fd);
  }
  close(far);
  unlink(elsewhere);

  snprintf(moved, sizeof moved, "%s.moved", path); /* and another's file in its place */
  assert_int_equal(rename(path, moved), 0);
  close(open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  assert_int_equal(prof_i_capture_file_rename(path, output), PROF_E_NOT_FOUND);
  assert_int_equal(access(output, F_OK), -1);
  assert_int_equal(access(path, F_OK), 0);
  assert_stays(moved, fd);
  close(fd);
  unlink(moved);
  unlink(path);
}

static int make_folder(void **state) {
  (void)state;
  if (!mkdtemp(folder)) return -1;
  snprintf(output, sizeof output, "%s/trace.json", folder);
  return 0;
}
static int remove_folder(void **state) {
  char command[ROOM];
  (void)state;
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return system(command);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_capture_stands_beside_its_output_and_is_its_users_alone),
      cmocka_unit_test(a_symbolic_link_in_the_way_is_not_followed),
      cmocka_unit_test(an_unfit_directory_is_named_and_another_one_found),
      cmocka_unit_test(a_short_room_is_refused_and_nothing_is_left),
      cmocka_unit_test(a_suffix_stands_before_the_ending),
      cmocka_unit_test(a_capture_takes_its_outputs_name_and_replaces_the_one_of_before),
      cmocka_unit_test(a_link_under_the_outputs_name_is_replaced_and_not_followed),
      cmocka_unit_test(an_output_that_cannot_be_had_leaves_the_capture_as_it_is),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
