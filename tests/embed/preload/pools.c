/* A program with a pool of its own that never starts a capture. The pool has the name that pool.c
   looks for. */
#include <prof/memory.h>

int main(void) {
  static char block[4096];
  prof_pool *pool;
  if (prof_pool_create(&(prof_pool_options){.size = sizeof(prof_pool_options), .name = "malloc"},
                       &pool) != PROF_OK)
    return 1;
  prof_memory_alloc(pool, block, 1000, 1024);
  prof_memory_alloc(pool, block + 1024, 500, 512);
  prof_memory_free(pool, block, 1024);
  WITH_BASE_PROFILER(PROF_HOST, "work", "test", PROF_NO_ARGS, {});
  return 0;
}
