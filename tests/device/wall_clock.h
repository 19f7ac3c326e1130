/* Sets CLOCK_REALTIME back by an hour while a thread waits for a moment of it. A thread that read
   it just before got a time of an hour later than now. The whole program, and prof in it, sees that
   time while the test requests it. */
#ifndef TESTS_DEVICE_WALL_CLOCK_H
#define TESTS_DEVICE_WALL_CLOCK_H

#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { WALL_CLOCK_SETTING_S = 3600 };

static uint32_t wall_clock_will_be_set; /* atomic */

int clock_gettime(clockid_t clock, struct timespec *now) {
  const int result = (int)syscall(SYS_clock_gettime, clock, now);
  if (clock == CLOCK_REALTIME && __atomic_load_n(&wall_clock_will_be_set, __ATOMIC_RELAXED))
    now->tv_sec += WALL_CLOCK_SETTING_S;
  return result;
}

#endif
