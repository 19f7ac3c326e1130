/* How long the machine kept a thread that naps from going on, for bounds of wall time: what a busy machine adds to them is not prof's. */
#ifndef TESTS_DEVICE_KEPT_H
#define TESTS_DEVICE_KEPT_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

typedef struct kept {
  pthread_t thread;
  uint32_t is_over; /* atomic */
  uint64_t begun_ns, kept_ns;
} kept;

static inline uint64_t kept_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline void *kept_nap(void *of) {
  enum { NAP_NS = 1000000 };
  kept *const k = of;
  while (!__atomic_load_n(&k->is_over, __ATOMIC_ACQUIRE)) {
    const uint64_t before = kept_now_ns();
    nanosleep(&(struct timespec){0, NAP_NS}, NULL);
    const uint64_t took_ns = kept_now_ns() - before;
    if (took_ns > NAP_NS) k->kept_ns += took_ns - NAP_NS;
  }
  return NULL;
}

static inline void kept_begin(kept *k) {
  *k = (kept){.begun_ns = kept_now_ns()};
  assert_int_equal(pthread_create(&k->thread, NULL, kept_nap, k), 0);
}

/* The ns since then, less those of the machine. */
static inline uint64_t kept_end(kept *k) {
  const uint64_t took_ns = kept_now_ns() - k->begun_ns;
  __atomic_store_n(&k->is_over, 1, __ATOMIC_RELEASE);
  pthread_join(k->thread, NULL);
  return took_ns > k->kept_ns ? took_ns - k->kept_ns : 0;
}

#endif
