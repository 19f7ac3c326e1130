/* Threads that record while another one starts, stops, clears and dumps: a program under a race
   detector, which sees this code and nothing of prof's. */
#define _GNU_SOURCE
#include <prof/memory.h>
#include <prof/profiler.h>
#include <prof/sampler.h>
#include <prof/trace.h>
#include <pthread.h>
#include <unistd.h>

enum { THREADS = 2, ROUNDS = 20 };

static int is_over;
static prof_pool *pool;

static void *record(void *arg) {
  char piece;
  (void)arg;
  prof_thread_set_name("recorder");
  while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
    WITH_BASE_PROFILER(PROF_HOST, "outer", "test", PROF_ARGS("text", "a", "n", 3), {
      PROF_SCOPE_LEVEL(2, PROF_HOST, "inner", "test", PROF_NO_ARGS);
      prof_memory_alloc(pool, &piece, 64, 64);
      prof_memory_free(pool, &piece, 64);
    });
    PROF_INSTANT("instant", "test", PROF_NO_ARGS);
    PROF_COUNTER("counter", 1.0);
    usleep(20);
  }
  return NULL;
}

int main(int argc, char **argv) {
  const prof_pool_options options = {.size = sizeof options, .name = "pool"};
  pthread_t threads[THREADS];
  if (argc != 2 || prof_pool_create(&options, &pool) != PROF_OK) return 2;
  for (int i = 0; i < THREADS; i++)
    if (pthread_create(&threads[i], NULL, record, NULL) != 0) return 3;
  for (int i = 0; i < ROUNDS; i++) {
    prof_trace *trace;
    if (prof_start(1 + i % 2) != PROF_OK) return 4;
    prof_sampler_start(NULL); /* there may be nothing to read */
    usleep(1000);
    if (prof_get(&trace) != PROF_OK) return 5;
    prof_trace_destroy(trace);
    prof_sampler_stop();
    if (prof_stop() != PROF_OK) return 6;
    if (i % 5 == 4 && i + 1 < ROUNDS) prof_clear();
    usleep(500);
  }
  __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  return prof_dump(argv[1]);
}
