/* A start with a helper that replaces a capture: the helper unmaps the old one, not the thread that
   starts. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include <prof/profiler.h>

#include "hang_guard.h"

enum { CAP_BYTES = 32 << 20, STARTS = 3 };

static uint64_t unmapped_here, unmapped_elsewhere; /* bytes; atomic */
static uint64_t main_thread;

/* In place of libc's. */
int munmap(void *at, size_t bytes) {
  const bool is_here = (uint64_t)syscall(SYS_gettid) == main_thread;
  __atomic_fetch_add(is_here ? &unmapped_here : &unmapped_elsewhere, bytes, __ATOMIC_SEQ_CST);
  return (int)syscall(SYS_munmap, at, bytes);
}

static void start(const char *path, uint32_t has_helper, int number) {
  const prof_options options = {.size = sizeof options,
                                .path = path,
                                .helper_thread = has_helper,
                                .cap_bytes = CAP_BYTES + ((uint64_t)number << 20)};
  assert_int_equal(prof_start_with(&options), PROF_OK);
  WITH_BASE_PROFILER(PROF_HOST, "a", "replace", PROF_NO_ARGS, {});
}

static uint64_t read_count(const uint64_t *count) {
  return __atomic_load_n(count, __ATOMIC_SEQ_CST);
}

static void replace(const char *path, uint32_t has_helper) {
  start(path, has_helper, 0);
  assert_int_equal(prof_stop(), PROF_OK);
  for (int i = 1; i <= STARTS; i++) {
    const uint64_t here = read_count(&unmapped_here), elsewhere = read_count(&unmapped_elsewhere);
    start(path, has_helper, i);
    if (has_helper) {
      assert_in_range(read_count(&unmapped_here) - here, 0, CAP_BYTES / 8);
      WAIT_WHILE(read_count(&unmapped_elsewhere) - elsewhere < CAP_BYTES / 2);
    } else {
      assert_true(read_count(&unmapped_here) - here > CAP_BYTES / 2);
    }
    assert_int_equal(prof_stop(), PROF_OK);
  }
}

static char directory[] = "/tmp/prof-replace-XXXXXX", output[64];

static void the_helper_unmaps_what_a_start_replaces(void **state) {
  (void)state;
  hang_guard();
  replace(output, 1);
}

static void without_a_helper_the_start_does(void **state) {
  (void)state;
  hang_guard();
  replace(output, 0);
}

/* A stop is where the helper ends. */
static void a_stop_leaves_nothing_mapped(void **state) {
  (void)state;
  hang_guard();
  for (int i = 0; i < STARTS; i++) {
    const uint64_t before = read_count(&unmapped_here) + read_count(&unmapped_elsewhere);
    start(output, 1, i);
    assert_int_equal(prof_stop(), PROF_OK);
    const uint64_t after = read_count(&unmapped_here) + read_count(&unmapped_elsewhere);
    assert_true(after - before > CAP_BYTES / 2);
  }
}

static int make_directory(void **state) {
  (void)state;
  main_thread = (uint64_t)syscall(SYS_gettid);
  if (!mkdtemp(directory)) return -1;
  snprintf(output, sizeof output, "%s/trace.json", directory);
  return 0;
}
static int remove_directory(void **state) {
  (void)state;
  char command[64];
  snprintf(command, sizeof command, "rm -rf '%s'", directory);
  return system(command); /* NOLINT(cert-env33-c): a directory of this test's */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_helper_unmaps_what_a_start_replaces),
      cmocka_unit_test(without_a_helper_the_start_does),
      cmocka_unit_test(a_stop_leaves_nothing_mapped),
  };
  return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
