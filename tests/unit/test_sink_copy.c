/* Copying a file into a sink: the kernel copies, or the sink reads and writes. Both give the bytes,
   behind what was written before. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <prof/status.h>

#include "sink/sink.h"
#include "sink_folder.h"

enum { COUNT = 3000001, OFFSET = 12345 };

static unsigned char *bytes; /* of the source */

static int make_files(void **state) {
  bytes = malloc(COUNT);
  for (size_t i = 0; bytes && i < COUNT; i++) bytes[i] = (unsigned char)(i * 7 + i / 251);
  return bytes ? make_folder(state) : -1;
}

static int remove_files(void **state) {
  free(bytes);
  return remove_folder(state);
}

static int source_file(int fd) {
  assert_true(fd >= 0);
  assert_int_equal(pwrite(fd, bytes, COUNT, 0), COUNT);
  return fd;
}

static void check_copy(int fd) {
  static const char before[] = "written before", after[] = "and after";
  prof_i_sink sink;
  assert_int_equal(prof_i_sink_open_file(&sink, in_folder("out"), false, false), PROF_OK);
  prof_i_sink_text(&sink, before);
  const uint64_t count = COUNT - OFFSET;
  assert_int_equal(prof_i_sink_copy(&sink, fd, OFFSET, count), count);
  prof_i_sink_text(&sink, after);
  assert_int_equal(prof_i_sink_commit(&sink), PROF_OK);
  const size_t wanted = strlen(before) + count + strlen(after);
  char *const found = malloc(wanted + 1);
  const int out = open(in_folder("out"), O_RDONLY);
  assert_int_equal(read(out, found, wanted + 1), wanted);
  assert_memory_equal(found, before, strlen(before));
  assert_memory_equal(found + strlen(before), bytes + OFFSET, count);
  assert_memory_equal(found + strlen(before) + count, after, strlen(after));
  close(out);
  free(found);
}

static void a_file_is_copied(void **state) {
  (void)state;
  const int fd = source_file(open(in_folder("in"), O_RDWR | O_CREAT | O_EXCL, 0600));
  check_copy(fd);
  close(fd);
}

/* The kernel copies between file systems only if it can: else the sink does. */
static void a_file_of_another_file_system_is_copied(void **state) {
  (void)state;
  const int fd = source_file(memfd_create("in", 0));
  check_copy(fd);
  close(fd);
}

static void a_file_that_is_too_short_gives_fewer_bytes(void **state) {
  (void)state;
  const int fd = source_file(open(in_folder("in"), O_RDWR | O_CREAT | O_EXCL, 0600));
  prof_i_sink sink;
  assert_int_equal(prof_i_sink_open_file(&sink, in_folder("out"), false, false), PROF_OK);
  assert_int_equal(prof_i_sink_copy(&sink, fd, COUNT - 10, 100), 10);
  assert_int_equal(errno, 0);
  assert_int_equal(sink.status, PROF_OK);
  prof_i_sink_abandon(&sink);
  close(fd);
}

static void a_file_that_cannot_be_read_leaves_its_error(void **state) {
  (void)state;
  const int fd = open(in_folder("in"), O_WRONLY | O_CREAT | O_EXCL, 0600);
  prof_i_sink sink;
  assert_int_equal(prof_i_sink_open_file(&sink, in_folder("out"), false, false), PROF_OK);
  assert_int_equal(prof_i_sink_copy(&sink, fd, 0, 100), 0);
  assert_int_equal(errno, EBADF);
  prof_i_sink_abandon(&sink);
  close(fd);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_files, remove_files)

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(a_file_is_copied),
      IN_FOLDER(a_file_of_another_file_system_is_copied),
      IN_FOLDER(a_file_that_is_too_short_gives_fewer_bytes),
      IN_FOLDER(a_file_that_cannot_be_read_leaves_its_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
