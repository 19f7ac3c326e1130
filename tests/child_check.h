/* Checks for a child process of a test: a check that fails says why on stderr and ends the child
   with status 1. Needs <stdio.h>, <unistd.h> and <prof/profiler.h>. */
#ifndef PROF_TEST_CHILD_CHECK_H
#define PROF_TEST_CHILD_CHECK_H

#define check(condition, ...)                                         \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition); \
      fprintf(stderr, __VA_ARGS__);                                   \
      fprintf(stderr, "; last error: %s\n", prof_last_error());       \
      _exit(1);                                                       \
    }                                                                 \
  } while (0)

#define check_status(expression, wanted)                                           \
  do {                                                                             \
    const int got = (expression);                                                  \
    check(got == (wanted), "%s is %s, not %s", #expression, prof_status_name(got), \
          prof_status_name(wanted));                                               \
  } while (0)

#endif
