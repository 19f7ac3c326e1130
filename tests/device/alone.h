/* Each test in a process of its own: this program with the test's name. A program lists its tests
   as TESTS(X) and has a begin() for what each of them needs; then come ALONE_TESTS, and
   alone_main() in main(). */
#ifndef TESTS_DEVICE_ALONE_H
#define TESTS_DEVICE_ALONE_H

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static inline void alone_run(const char *name) {
  int status = -1;
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", "alone", name, (char *)NULL);
    _exit(127);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  if (status != 0) fail_msg("%s: status 0x%x", name, (unsigned)status);
}

#define ALONE_CASE(name)                   \
  static void alone_##name(void **state) { \
    (void)state;                           \
    alone_run(#name);                      \
  }
#define ALONE_ENTRY(name) cmocka_unit_test(alone_##name),
#define ALONE_ONE(name) cmocka_unit_test(name),

/* alone_main(): with a test's name that one here, else all, each in its own. */
#define ALONE_TESTS                                                                      \
  TESTS(ALONE_CASE)                                                                      \
  static int alone_main(int argc, char **argv) {                                         \
    const struct CMUnitTest ones[] = {TESTS(ALONE_ONE)}, tests[] = {TESTS(ALONE_ENTRY)}; \
    for (size_t i = 0; argc == 2 && i < sizeof ones / sizeof *ones; i++) {               \
      if (strcmp(argv[1], ones[i].name) != 0) continue;                                  \
      const struct CMUnitTest one[] = {ones[i]};                                         \
      begin();                                                                           \
      return cmocka_run_group_tests_name(argv[1], one, NULL, NULL);                      \
    }                                                                                    \
    return cmocka_run_group_tests(tests, NULL, NULL);                                    \
  }

#endif
