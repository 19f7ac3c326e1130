/* Opens the capture of a process that is just starting. A recorder stores the magic last. The test
   removes the magic and restores it between two reads of one open. Its pread() replaces that of
   libc. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <prof/profiler.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "trace_checks.h"

/* The capture. Its magic is restored after `reads_left` reads of its first bytes. */
static struct {
  struct stat file;
  int fd;
  int reads_left; /* below 0: the magic stays */
} start = {.reads_left = -1};

static void store_magic(uint64_t magic) {
  assert_int_equal(pwrite(start.fd, &magic, sizeof magic, offsetof(prof_i_header, magic)),
                   sizeof magic);
}

/* libprof's, too, because this program is linked with the static one. */
ssize_t pread(int fd, void *to, size_t bytes, off_t offset) {
  struct stat about;
  const bool is_it = start.reads_left >= 0 && offset == 0 && fstat(fd, &about) == 0 &&
                     about.st_ino == start.file.st_ino && about.st_dev == start.file.st_dev;
  if (is_it && start.reads_left-- == 0) store_magic(PROF_I_MAGIC);
  return syscall(SYS_pread64, fd, to, bytes, offset);
}

static char folder[PATH_MAX], path[PATH_MAX + 256];

static int find_own_capture(void) {
  char line[2 * PATH_MAX];
  bool found = false;
  FILE *const maps = fopen("/proc/self/maps", "r");
  while (maps && !found && fgets(line, sizeof line, maps)) {
    char *const at = strstr(line, folder);
    if (!at) continue;
    at[strcspn(at, "\n")] = '\0';
    found = snprintf(path, sizeof path, "%s", at) > 0;
  }
  if (maps) fclose(maps);
  return found ? 0 : -1;
}

static int record(void **state) {
  (void)state;
  char output[PATH_MAX + 16];
  const char *const base = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/prof-start-XXXXXX", base ? base : "/tmp");
  if (!mkdtemp(folder)) return -1;
  snprintf(output, sizeof output, "%s/trace.prof", folder);
  const prof_options options = {.size = sizeof options, .level = 1, .path = output};
  if (prof_start_with(&options) != PROF_OK) return -1;
  PROF_SCOPE("recorded");
  return 0;
}

static int end_record(void **state) {
  (void)state;
  prof_stop();
  unlink(path);
  return rmdir(folder);
}

static void begin_late_start(int reads) {
  if (find_own_capture() != 0) {
    print_message("skip: %s takes no capture files\n", folder);
    skip();
  }
  start.fd = open(path, O_RDWR | O_CLOEXEC);
  assert_true(start.fd >= 0);
  assert_int_equal(fstat(start.fd, &start.file), 0);
  store_magic(0);
  start.reads_left = reads;
}

static void end_late_start(void) {
  start.reads_left = -1;
  store_magic(PROF_I_MAGIC);
  close(start.fd);
}

/* Before the first read of the open, and after each: either there is no capture yet, or its process
   runs. */
static void a_process_that_starts_while_its_capture_is_opened_has_not_ended(void **state) {
  enum { READS = 8 };
  (void)state;
  int refused = 0, opened = 0;
  for (int reads = 0; reads < READS; reads++) {
    prof_trace *trace = NULL;
    begin_late_start(reads);
    const int status = prof_trace_open(path, &trace);
    end_late_start();
    if (status != PROF_OK) {
      assert_int_equal(status, PROF_E_NOT_CAPTURE);
      assert_non_null(strstr(prof_last_error(), "is starting, try again"));
      refused++;
      continue;
    }
    assert_int_equal(info_of(trace).is_live, 1);
    assert_int_equal(info_of(trace).pid, getpid());
    prof_trace_destroy(trace);
    opened++;
  }
  assert_true(refused > 0);
  assert_true(opened > 0);
}

static void a_capture_that_has_its_magic_is_live(void **state) {
  (void)state;
  prof_trace *trace = NULL;
  begin_late_start(0);
  end_late_start();
  assert_int_equal(prof_trace_open(path, &trace), PROF_OK);
  assert_int_equal(info_of(trace).is_live, 1);
  assert_int_equal(info_of(trace).was_clean, 0);
  prof_trace_destroy(trace);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_process_that_starts_while_its_capture_is_opened_has_not_ended),
      cmocka_unit_test(a_capture_that_has_its_magic_is_live),
  };
  return cmocka_run_group_tests(tests, record, end_record);
}
