/* The one bound in time that tests have: PROF_TEST_HANG_SECONDS. It is ten times what a step
   usually takes, or more. A test waits for a condition, and asserts that condition afterwards. No
   test compares how long something took. */
#ifndef PROF_TESTS_HANG_GUARD_H
#define PROF_TESTS_HANG_GUARD_H

#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static inline unsigned hang_seconds(void) {
  const char *const text = getenv("PROF_TEST_HANG_SECONDS");
  const int seconds = text ? atoi(text) : 0;
  return seconds > 0 ? (unsigned)seconds : 300;
}

/* SIGALRM ends this process if it hangs. alarm(0) takes the guard back. */
static inline void hang_guard(void) { alarm(hang_seconds()); }

/* Naps for 1 ms and counts it. False: after so many naps, what the caller waits for hangs. */
static inline bool hang_nap(unsigned *naps) {
  const struct timespec nap = {0, 1000000};
  if (*naps >= 1000 * hang_seconds()) return false;
  ++*naps;
  nanosleep(&nap, NULL);
  return true;
}

#define WAIT_WHILE(condition)                         \
  do {                                                \
    unsigned naps_ = 0;                               \
    while ((condition) && hang_nap(&naps_)) continue; \
  } while (0)

#endif
