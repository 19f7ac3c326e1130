/* Several processes with one output: which one records for it, and which one has its name. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <prof/status.h>

#include "base/port.h"
#include "core/buffer/capture_file.h"
#include "format/layout.h"
#include "hang_guard.h"

static char folder[] = "/tmp/prof-rivals-XXXXXX";
static char output[sizeof folder + 16];

enum { ROOM = 512, MANY = 16 };

static int create(const char *at, char *path) {
  char reason[ROOM];
  return prof_i_capture_file_create(at, false, path, ROOM, reason, ROOM);
}

/* Without a capture of the caller. */
static bool is_taken(const char *at) {
  char name[ROOM], none[ROOM] = "";
  snprintf(name, sizeof name, "%s", at);
  assert_int_equal(prof_i_output_claim_settle(name, sizeof name, 0, -1, none, sizeof none),
                   PROF_OK);
  return strcmp(name, at) != 0;
}

/* ---- who records for it ---- */

/* A child holds a capture until it gets the order to end. */
static pid_t start_child(int *to_child, bool closes) {
  int ends[2], ready[2];
  char one = 'x';
  assert_int_equal(pipe(ends), 0);
  assert_int_equal(pipe(ready), 0);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    char path[ROOM];
    close(ends[1]);
    const int fd = create(output, path);
    if (closes) close(fd);
    if (fd >= 0 && write(ready[1], &one, 1) == 1 && read(ends[0], &one, 1) == 0) _exit(0);
    _exit(1);
  }
  close(ends[0]);
  close(ready[1]);
  assert_int_equal(read(ready[0], &one, 1), 1);
  close(ready[0]);
  *to_child = ends[1];
  return child;
}

static void end_child(pid_t child, int to_child) {
  int status = -1;
  close(to_child);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

static void an_output_is_taken_while_another_living_process_records_for_it(void **state) {
  (void)state;
  char path[ROOM], other_output[ROOM];
  snprintf(other_output, sizeof other_output, "%s/other.json", folder);
  assert_false(is_taken(output));
  close(create(output, path));
  assert_false(is_taken(output)); /* the caller's */
  unlink(path);
  for (int closes = 0; closes < 2;
       closes++) { /* its host may have closed the descriptor, and the lock with it */
    int to_child = -1;
    const pid_t child = start_child(&to_child, closes);
    assert_true(is_taken(output));
    assert_false(is_taken(other_output));
    end_child(child, to_child);
    assert_false(is_taken(output)); /* its capture is still there, and it is dead */
  }
}

/* A file of a capture's name, of that host, with the header that it is given; NULL: empty. */
static int put_capture(const char *host, const char *numbers, const prof_i_header *header,
                       char path[ROOM]) {
  snprintf(path, ROOM, "%s.%s-%s.prof", output, host, numbers);
  const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  assert_true(fd >= 0);
  if (header) assert_int_equal(write(fd, header, sizeof *header), sizeof *header);
  return fd;
}

/* Anybody who may write there can put any name there; and a capture made without /proc has a start
   of 0. */
static void a_name_of_no_living_process_takes_no_output(void **state) {
  (void)state;
  static const char *const numbers[] = {"4194305-0-0",
                                        "999999999999999999999999-0-0",
                                        "999999999999999999999999-99999999999999999999999-0",
                                        "1-99999999999999999999999-0",
                                        "--0",
                                        "1--0"};
  char host[64] = "", path[ROOM];
  gethostname(host, sizeof host - 1);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    close(put_capture(host, numbers[i], NULL, path));
    if (is_taken(output)) fail_msg("taken by %s", path);
    assert_int_equal(unlink(path), 0);
  }
}

/* A container has another host name at each start. What one that was killed has left must not take
   the name for ever. */
static void what_another_host_has_left_takes_no_output_unless_somebody_holds_it(void **state) {
  (void)state;
  prof_i_header headers[3];
  char path[ROOM];
  memset(headers, 0, sizeof headers);
  for (int i = 0; i < 3; i++) headers[i].magic = PROF_I_MAGIC;
  memcpy(headers[0].boot_id, "another boot",
         sizeof "another boot"); /* of an earlier boot, or copied here */
  prof_i_port_boot_id(headers[1].boot_id, sizeof headers[1].boot_id);
  headers[1].namespace_pid = prof_i_port_pid_namespace() + 1; /* another container's */
  memcpy(headers[2].boot_id, headers[1].boot_id, sizeof headers[2].boot_id);
  headers[2].namespace_pid =
      prof_i_port_pid_namespace(); /* this machine's, whose name has changed */
  for (int i = -1; i < 3; i++) {
    const int fd = put_capture("another", "1-2-0", i < 0 ? NULL : &headers[i], path);
    if (is_taken(output)) fail_msg("a file that nobody holds, header %d", i);
    prof_i_capture_file_lock(fd);
    if (!is_taken(output)) fail_msg("a file that somebody holds, header %d", i);
    close(fd);
    assert_int_equal(unlink(path), 0);
  }
}

/* ---- which process has its name ---- */

/* -1: it failed. */
static int try_to_settle(const char *at, char *name, char *path) {
  snprintf(name, ROOM, "%s", at);
  const int fd = create(name, path);
  return fd >= 0 && prof_i_output_claim_settle(name, ROOM, 0, fd, path, ROOM) == PROF_OK ? fd : -1;
}

static int settle(const char *at, char *name, char *path) {
  const int fd = try_to_settle(at, name, path);
  assert_true(fd >= 0);
  return fd;
}

static void the_first_has_the_name_and_the_second_one_of_its_own(void **state) {
  (void)state;
  char name[ROOM], path[ROOM], wanted[ROOM], beginning[ROOM + 1];
  struct stat about;
  int to_child = -1, fd = settle(output, name, path);
  assert_string_equal(name, output);
  assert_int_equal(fstat(fd, &about), 0);
  assert_int_equal(about.st_mode & 0777, PROF_I_MODE_CLAIMED);
  close(fd);
  unlink(path);
  const pid_t child = start_child(&to_child, false);
  fd = settle(output, name, path);
  snprintf(wanted, sizeof wanted, "%s", output);
  assert_int_equal(prof_i_output_add_suffix(wanted, sizeof wanted), PROF_OK);
  assert_string_equal(name, wanted);
  snprintf(beginning, sizeof beginning, "%s.", wanted); /* the capture says so */
  assert_int_equal(strncmp(path, beginning, strlen(beginning)), 0);
  assert_int_equal(access(path, F_OK), 0);
  close(fd);
  unlink(path);
  end_child(child, to_child);
}

static void of_many_that_start_at_once_one_has_the_name(void **state) {
  (void)state;
  struct shared {
    int ready, has_name, has_settled;
  } *const all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pid_t children[MANY];
  assert_true(all != MAP_FAILED);
  for (int i = 0; i < MANY; i++) {
    children[i] = fork();
    assert_true(children[i] >= 0);
    if (children[i] != 0) continue;
    char name[ROOM],
        path[ROOM]; /* and no assertion of cmocka's: it would go on with the other tests here */
    __atomic_add_fetch(&all->ready, 1, __ATOMIC_SEQ_CST);
    WAIT_WHILE(__atomic_load_n(&all->ready, __ATOMIC_SEQ_CST) < MANY);
    const bool has_settled = try_to_settle(output, name, path) >= 0;
    if (strcmp(name, output) == 0) __atomic_add_fetch(&all->has_name, 1, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&all->has_settled, 1, __ATOMIC_SEQ_CST);
    WAIT_WHILE(__atomic_load_n(&all->has_settled, __ATOMIC_SEQ_CST) < MANY);
    unlink(path);
    _exit(!has_settled);
  }
  for (int i = 0; i < MANY; i++) {
    int status = -1;
    assert_int_equal(waitpid(children[i], &status, 0), children[i]);
    assert_int_equal(status, 0);
  }
  assert_true(all->has_name <= 1); /* none, where a process that looks had no processor for 50 ms */
  munmap(all, sizeof *all);
}

/* Whoever may open the directory may lock it. */
static void a_lock_on_the_directory_is_nothing_to_a_start(void **state) {
  (void)state;
  char name[ROOM], path[ROOM];
  const int directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  assert_int_equal(flock(directory, LOCK_EX), 0);
  const int fd = settle(output, name, path);
  assert_string_equal(name, output);
  close(fd);
  unlink(path);
  close(directory);
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
      cmocka_unit_test(an_output_is_taken_while_another_living_process_records_for_it),
      cmocka_unit_test(a_name_of_no_living_process_takes_no_output),
      cmocka_unit_test(what_another_host_has_left_takes_no_output_unless_somebody_holds_it),
      cmocka_unit_test(the_first_has_the_name_and_the_second_one_of_its_own),
      cmocka_unit_test(of_many_that_start_at_once_one_has_the_name),
      cmocka_unit_test(a_lock_on_the_directory_is_nothing_to_a_start),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
