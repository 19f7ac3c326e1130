/* Makes a million short scopes, which are more than a report has slices. PROF_LEVEL and PROF_OUTPUT
   start recording. */
#include <prof/profiler.h>

enum { ROUNDS = 200000 };

static void spin(int turns) {
  for (volatile int i = 0; i < turns; i++) {
  }
}

int main(void) {
  for (int i = 0; i < ROUNDS; i++) {
    WITH_BASE_PROFILER(PROF_HOST, "round", "loop", PROF_NO_ARGS, {
      WITH_BASE_PROFILER(PROF_HOST, "outer", "op", PROF_NO_ARGS, {
        WITH_BASE_PROFILER(PROF_HOST, "inner", "op", PROF_NO_ARGS, { spin(i % 7); });
        WITH_BASE_PROFILER(PROF_HOST, "inner", "op", PROF_NO_ARGS, { spin(i % 3); });
      });
      WITH_BASE_PROFILER(PROF_HOST, "tail", "op", PROF_NO_ARGS, { spin(i % 1000 ? 1 : 20000); });
    });
  }
  return 0;
}
