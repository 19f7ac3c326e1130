/* usage: make_report dense|parts|wide

   Makes what test_report_*.py know of, and finds in the report. PROF_LEVEL and PROF_OUTPUT start
   recording.

   - dense: a million short scopes. A report has fewer slices.
   - parts: steps, a counter and a pool.
   - wide: ten million scopes on eight threads, five deep, for bench/report_frames.py. */
#define _GNU_SOURCE
#include <prof/memory.h>
#include <prof/profiler.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

enum { WIDE_THREADS = 8, WIDE_ROUNDS = 250000, WIDE_TOGETHER = 200 };
enum { ROUNDS = 200000, STEPS = 5, PIECE = 3 << 20, BLOCK = 64 << 20 };

static void spin(int turns) {
  for (volatile int i = 0; i < turns; i++) {
  }
}

static void make_dense(void) {
  for (int i = 0; i < ROUNDS; i++) {
    WITH_BASE_PROFILER(PROF_HOST, "round", "loop", PROF_NO_ARGS, {
      WITH_BASE_PROFILER(PROF_HOST, "outer", "op", PROF_NO_ARGS, {
        WITH_BASE_PROFILER(PROF_HOST, "inner", "op", PROF_NO_ARGS, { spin(i % 7); });
        WITH_BASE_PROFILER(PROF_HOST, "inner", "op", PROF_NO_ARGS, { spin(i % 3); });
      });
      WITH_BASE_PROFILER(PROF_HOST, "tail", "op", PROF_NO_ARGS, { spin(i % 1000 ? 1 : 20000); });
    });
  }
}

/* Addresses are only names of memory. */
static void make_parts(void) {
  const prof_pool_options options = {.size = sizeof options, .name = "</script>arena"};
  const uintptr_t base = 0x10000000;
  prof_pool *pool = NULL;
  if (prof_pool_create(&options, &pool) != PROF_OK) return;
  prof_memory_reserve(pool, (void *)base, BLOCK);
  for (int step = 0; step < STEPS; step++) {
    WITH_BASE_PROFILER(PROF_HOST, "fill", "phase", PROF_NO_ARGS,
                       { prof_memory_alloc(pool, (void *)(base + step * PIECE), PIECE, PIECE); });
    PROF_COUNTER("filled", step + 1);
    prof_step();
  }
  for (int step = 0; step < STEPS; step++)
    prof_memory_free(pool, (void *)(base + step * PIECE), PIECE);
}

static pthread_barrier_t wide_barrier;

static void *make_wide_thread(void *ignored) {
  for (int i = 0; i < WIDE_ROUNDS; i++) {
    if (i % WIDE_TOGETHER == 0) pthread_barrier_wait(&wide_barrier);
    WITH_BASE_PROFILER(PROF_HOST, "step", "loop", PROF_NO_ARGS, {
      WITH_BASE_PROFILER(PROF_HOST, "layer", "op", PROF_NO_ARGS, {
        WITH_BASE_PROFILER(PROF_HOST, "linear", "op", PROF_NO_ARGS, {
          WITH_BASE_PROFILER(PROF_HOST, "matmul", "op", PROF_NO_ARGS, {
            WITH_BASE_PROFILER(PROF_HOST, "copy", "op", PROF_NO_ARGS,
                               { spin(i % 500 ? i % 90 : 20000); });
          });
        });
      });
    });
  }
  return ignored;
}

/* The threads wait for each other often: so at any zoom each of them has something to draw. */
static void make_wide(void) {
  pthread_t threads[WIDE_THREADS];
  pthread_barrier_init(&wide_barrier, NULL, WIDE_THREADS);
  for (int i = 0; i < WIDE_THREADS; i++) pthread_create(&threads[i], NULL, make_wide_thread, NULL);
  for (int i = 0; i < WIDE_THREADS; i++) pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&wide_barrier);
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  if (strcmp(argv[1], "dense") == 0)
    make_dense();
  else if (strcmp(argv[1], "wide") == 0)
    make_wide();
  else
    make_parts();
  return 0;
}
