/* The memory of a capture without a file, before it is mapped: of a fixed size for all who might
   get it, and nobody does by exec. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/port.h"

enum { BYTES = 1 << 20 };

static void its_size_is_sealed_and_it_closes_on_exec(void **state) {
  (void)state;
  int fd = -1;
  struct stat about;
  assert_int_equal(prof_i_port_memfd(BYTES, &fd), 0);
  const int wanted = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  assert_int_equal(fcntl(fd, F_GET_SEALS) & wanted, wanted);
  assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  assert_int_equal(ftruncate(fd, 0), -1);
  assert_int_equal(errno, EPERM);
  assert_int_equal(ftruncate(fd, 2 * BYTES), -1);
  assert_int_equal(errno, EPERM);
  assert_int_equal(fstat(fd, &about), 0);
  assert_int_equal(about.st_size, BYTES);
  close(fd);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(its_size_is_sealed_and_it_closes_on_exec)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
