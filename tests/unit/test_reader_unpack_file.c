/* A packed capture that is unpacked into a temporary file. Files without a name may be refused.
   Writes may be short or interrupted. The disk may be full. open(), mkostemp() and pwrite() here
   stand in front of the libc's. Two threads write. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/worker.h"
#include "format/packed.h"
#include "reader/capture.h"
#include "small_capture.h"
#include "trace_checks.h"

enum { MIB = 80, ROOM = 4 << 20, PLACES = 3 };

static struct {
  bool has_no_nameless; /* O_TMPFILE is refused */
  bool is_short;        /* a write takes a part, and each second one is interrupted */
  int writes_left;      /* until the disk is full; below 0: it never is */
  int nameless_count, named_count, write_count;
} disk = {.writes_left = -1};

static char folder[64];

int open(const char *path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const unsigned mode = va_arg(list, unsigned);
  va_end(list);
  const bool is_nameless = (flags & O_TMPFILE) == O_TMPFILE;
  disk.nameless_count += is_nameless;
  if (is_nameless && disk.has_no_nameless) {
    errno = EOPNOTSUPP;
    return -1;
  }
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int mkostemp(char *path, int flags) {
  disk.named_count++;
  memcpy(path + strlen(path) - 6, "random", 6);
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_RDWR | O_CREAT | O_EXCL, 0600);
}

/* Returns 0 or the errno of the next write. */
static int begin_write(void) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&lock);
  int error = 0;
  disk.write_count++;
  if (disk.writes_left == 0)
    error = ENOSPC;
  else if (disk.is_short && disk.write_count % 2 == 0)
    error = EINTR;
  if (disk.writes_left > 0) disk.writes_left--;
  pthread_mutex_unlock(&lock);
  return error;
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset) {
  errno = begin_write();
  if (errno) return -1;
  if (disk.is_short && count > 1) count = count / 2;
  return syscall(SYS_pwrite64, fd, bytes, count, offset);
}

/* ---- the capture: these bytes, and zeros everywhere else ---- */

static _Alignas(64) unsigned char file[ROOM];
static uint64_t file_bytes;

static uint64_t place_at(int number) {
  return PROF_I_FIRST_UNIT_OFFSET + ((uint64_t)(7 + 20 * number) << 20) + 12345;
}

static int pack(void **state) {
  capture c;
  (void)state;
  const uint64_t count = ((uint64_t)MIB << 20) + PROF_I_FIRST_UNIT_OFFSET;
  capture_begin(&c, count);
  c.count = count;
  for (int i = 0; i < PLACES; i++) c.bytes[place_at(i)] = (unsigned char)(i + 1);
  memcpy(file, c.bytes, PROF_I_HEADER_BYTES);
  ((prof_i_header *)(void *)file)->version = PROF_I_PACKED_VERSION;
  file_bytes = PROF_I_HEADER_BYTES;
  prof_i_packer *const packer = prof_i_packer_create(NULL);
  if (!packer) return -1;
  for (uint64_t at = PROF_I_FIRST_UNIT_OFFSET; at < count; at += 1 << 20) {
    const prof_i_packed_part part = {c.bytes + at, at, 1 << 20, count, 2};
    uint64_t bytes;
    prof_i_pack_columns(packer, &part);
    const void *const extent = prof_i_pack_extent(packer, &bytes);
    if (file_bytes + bytes > sizeof file) return -1;
    memcpy(file + file_bytes, extent, bytes);
    file_bytes += bytes;
  }
  prof_i_packer_destroy(packer);
  capture_end(&c);
  strcpy(folder, "/tmp/prof-unpack-test-XXXXXX");
  return mkdtemp(folder) && setenv("TMPDIR", folder, 1) == 0 ? 0 : -1;
}

static int remove_folder(void **state) {
  (void)state;
  return rmdir(folder); /* which is empty */
}

static void check_whole(void) {
  prof_trace *trace = NULL;
  if (prof_trace_open_bytes(file, file_bytes, &trace) != PROF_OK) fail_msg("%s", prof_last_error());
  assert_int_equal(info_of(trace).bad_count, 0);
  for (int i = 0; i < PLACES; i++) {
    const unsigned char *const at = trace->source.bytes + place_at(i);
    assert_int_equal(*at, i + 1);
    assert_int_equal(at[-1], 0);
    assert_int_equal(at[1], 0);
  }
  assert_int_equal(rmdir(folder), 0); /* while it is open, there is no name */
  assert_int_equal(mkdir(folder, 0700), 0);
  prof_trace_destroy(trace);
}

static int reset_disk(void **state) {
  (void)state;
  memset(&disk, 0, sizeof disk);
  disk.writes_left = -1;
  return 0;
}

static void a_file_without_a_name_has_what_was_packed(void **state) {
  (void)state;
  check_whole();
  assert_int_equal(disk.nameless_count, 1);
  assert_int_equal(disk.named_count, 0);
  assert_true(disk.write_count > PLACES);
}

static void where_there_are_none_the_name_goes_at_once(void **state) {
  (void)state;
  disk.has_no_nameless = true;
  check_whole();
  assert_int_equal(disk.named_count, 1);
}

static void short_and_interrupted_writes_go_on(void **state) {
  (void)state;
  check_whole();
  const int whole_writes = disk.write_count;
  disk.write_count = 0;
  disk.is_short = true;
  check_whole();
  assert_true(disk.write_count > 4 * whole_writes);
}

/* At each write. */
static void a_full_disk_refuses_the_capture_and_says_what_to_do(void **state) {
  (void)state;
  check_whole();
  const int writes = disk.write_count;
  for (int i = 0; i < writes; i++) {
    prof_trace *trace = NULL;
    disk.writes_left = i;
    assert_int_equal(prof_trace_open_bytes(file, file_bytes, &trace), PROF_E_NO_SPACE);
    assert_null(trace);
    assert_non_null(strstr(prof_last_error(), "a temporary file for it cannot be written"));
    assert_non_null(strstr(prof_last_error(), strerror(ENOSPC)));
    assert_non_null(strstr(prof_last_error(), "set TMPDIR to a folder with room"));
  }
  disk.writes_left = -1;
  check_whole();
}

int main(void) {
  prof_i_worker_allow_threads(); /* as the command does */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(a_file_without_a_name_has_what_was_packed, reset_disk),
      cmocka_unit_test_setup(where_there_are_none_the_name_goes_at_once, reset_disk),
      cmocka_unit_test_setup(short_and_interrupted_writes_go_on, reset_disk),
      cmocka_unit_test_setup(a_full_disk_refuses_the_capture_and_says_what_to_do, reset_disk),
  };
  return cmocka_run_group_tests(tests, pack, remove_folder);
}
