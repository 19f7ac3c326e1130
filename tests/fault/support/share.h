/* Tests that interrupt at every instruction: in CI one place of SHARES, others each day.
   PROF_TEST_SEED=0..SHARES - 1 says which. With PROF_LONG=1 each place is. SHARES is 8, unless a
   test defines it before. */
#ifndef PROF_TESTS_FAULT_SHARE_H
#define PROF_TESTS_FAULT_SHARE_H

#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#ifndef SHARES
#define SHARES 8u
#endif

/* This run's places: those whose number leaves it as the remainder; SHARES: all. */
static uint32_t share(void) {
  const char *const seed = getenv("PROF_TEST_SEED");
  if (getenv("PROF_LONG")) return SHARES;
  return (seed ? (uint32_t)strtoul(seed, NULL, 10) : (uint32_t)(time(NULL) / 86400)) % SHARES;
}

static void say_share(void) {
  if (share() < SHARES) print_message("PROF_TEST_SEED=%u: ", share());
}

#endif
