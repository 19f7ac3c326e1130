/* Threads that come and go, allocate, and free what others allocated; all is freed but one piece of
   1000003 bytes a thread that lasted. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

enum { THREADS = 8, GENERATIONS = 4, STEPS = 20000, SHARED = 64 };

static void *shared[SHARED];

static void *run(void *argument) {
  uint64_t state = (uint64_t)(uintptr_t)argument;
  for (int i = 0; i < STEPS; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const unsigned draw = (unsigned)(state >> 33);
    void *piece = malloc(draw % 700);
    if (draw % 5 == 0) piece = realloc(piece, draw % 3000 + 1);
    free(__atomic_exchange_n(&shared[draw % SHARED], piece, __ATOMIC_ACQ_REL));
  }
  return malloc(1000003);
}

int main(void) {
  pthread_t threads[THREADS];
  for (int g = 0; g < GENERATIONS; g++) {
    for (int i = 0; i < THREADS; i++)
      if (pthread_create(&threads[i], NULL, run, (void *)(uintptr_t)(g * THREADS + i + 1)) != 0)
        return 1;
    for (int i = 0; i < THREADS; i++)
      if (pthread_join(threads[i], NULL) != 0) return 1;
  }
  for (int i = 0; i < SHARED; i++) free(shared[i]);
  return 0;
}
