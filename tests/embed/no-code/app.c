/* Scopes, and not one call of prof: the environment alone decides whether it is recorded. */
#include <prof/profiler.h>

int main(void) {
  volatile int work = 0;
  WITH_BASE_PROFILER(PROF_HOST, "work", "op", PROF_NO_ARGS, { work += 1; });
  return work == 1 ? 0 : 1;
}
