/* usage: make_report dense|parts

   Makes what test_report.py knows of, and finds in the report. PROF_LEVEL and PROF_OUTPUT start
   recording.
   dense: a million short scopes, which are more than a report has slices.
   parts: steps, a counter and a pool. */
#include <prof/memory.h>
#include <prof/profiler.h>
#include <stdint.h>
#include <string.h>

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

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  if (strcmp(argv[1], "dense") == 0)
    make_dense();
  else
    make_parts();
  return 0;
}
