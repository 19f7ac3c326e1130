/* A program that links prof and has scopes: the library before it must meet the same copy. */
#include <prof/memory.h>
#include <stdlib.h>

int main(void) {
  static void *volatile kept;
  int fits = 0;
  WITH_BASE_PROFILER(PROF_HOST, "work", "test", PROF_NO_ARGS, { kept = malloc(1000003); });
  prof_memory_max max = {.size = sizeof max};
  if (prof_memory_max_get(PROF_HOST, PROF_MEMORY_POOL, &max) == PROF_OK)
    fits = max.pool_count == 1 && max.used_bytes >= 1000003;
  return getenv("PROF_MEMORY") && !fits;
}
