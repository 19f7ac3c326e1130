/* The pages of a capture's file: stores into what was populated take no fault, and large chunks lie
   where a file system takes the largest pieces of memory for them. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include <prof/profiler.h>

#include "base/port.h"
#include "format/layout.h"

enum { PAGE_BYTES = 4096, BYTES = 1 << 20, SCOPES = 1 << 19 };

static long faults(void) {
  struct rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_minflt;
}

/* In memory: no writeback takes pages meanwhile. */
static long faults_of_stores(uint64_t offset, int (*populate)(void *, uint64_t, size_t)) {
  int fd = -1;
  assert_int_equal(prof_i_port_memfd(offset + BYTES, &fd), 0);
  assert_int_equal(prof_i_port_write_zeros(fd, offset, BYTES), 0);
  char *const all = mmap(NULL, offset + BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  assert_ptr_not_equal(all, MAP_FAILED);
  assert_int_equal(populate(all + offset, offset, BYTES), 0);
  const long before = faults();
  for (size_t i = 0; i < BYTES; i += PAGE_BYTES) *(volatile char *)(all + offset + i) = 1;
  const long count = faults() - before;
  munmap(all, offset + BYTES);
  close(fd);
  return count;
}

static int populate_all(void *at, uint64_t offset, size_t bytes) {
  (void)offset;
  return prof_i_port_populate(at, bytes);
}

static void stores_fault_no_more_than_if_all_pages_were_asked_for(void **state) {
  (void)state;
  static const uint64_t offsets[] = {0, PAGE_BYTES, 3 * PROF_I_UNIT_BYTES, BYTES};
  for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++)
    assert_in_range(faults_of_stores(offsets[i], prof_i_port_populate_file_pages), 0,
                    faults_of_stores(offsets[i], populate_all));
}

static void large_chunks_of_a_file_lie_at_multiples_of_their_size(void **state) {
  (void)state;
  char folder[] = "/tmp/prof-pages-XXXXXX", output[64];
  assert_non_null(mkdtemp(folder));
  snprintf(output, sizeof output, "%s/out.json", folder);
  const prof_options options = {.size = sizeof options, .level = 1, .path = output};
  assert_int_equal(prof_start_with(&options), PROF_OK);
  for (int i = 0; i < SCOPES; i++) WITH_BASE_PROFILER(PROF_HOST, "scope", "test", PROF_NO_ARGS, {});
  prof_health health = {.size = sizeof health};
  prof_health(&health);
  assert_int_equal(prof_stop(), PROF_OK);
  if (!*health.capture_path) skip(); /* no file could be recorded into there */
  const int fd = open(health.capture_path, O_RDONLY | O_CLOEXEC);
  assert_true(fd >= 0);
  prof_i_head head;
  int count = 0;
  for (uint64_t at = PROF_I_FIRST_UNIT_OFFSET;
       pread(fd, &head, sizeof head, (off_t)at) == sizeof head && head.bytes; at += head.bytes) {
    if (head.kind != PROF_I_EXTENT_CHUNK || head.bytes < PROF_I_CHUNK_BYTES_MAX) continue;
    assert_int_equal(at % head.bytes, 0);
    count++;
  }
  assert_true(count > 1);
  close(fd);
  unlink(health.capture_path);
  rmdir(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(stores_fault_no_more_than_if_all_pages_were_asked_for),
      cmocka_unit_test(large_chunks_of_a_file_lie_at_multiples_of_their_size)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
