/* Four threads record scopes of every kind, enough to change chunks often. Then the process reads
   its trace back, and every count must be exact. For compilers, linkers and C libraries that may
   break one of the ways to record.

   Usage: busy FILE. At the end the main thread records one scope, as app.c does. FILE gets it as a
   trace. */
#include <prof/profiler.h>
#include <prof/trace.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 4, TIMES = 20000 };

static void work(int i) {
  char name[32];
  WITH_BASE_PROFILER(PROF_HOST, "outer", "busy", PROF_NO_ARGS, {
    WITH_BASE_PROFILER(PROF_HOST, "values", "busy", PROF_ARGS("i", i, "half", i / 2.0), {});
    WITH_BASE_PROFILER(PROF_HOST, "text", "busy", PROF_ARGS("text", i % 2 ? "odd" : "even"), {});
    WITH_BASE_PROFILER_LEVEL(2, PROF_HOST, "level 2", "busy", PROF_NO_ARGS, {});
    WITH_BASE_PROFILER(PROF_HOST, "format", "busy", PROF_FMT("%d of %s", i, "many"), {});
  });
  snprintf(name, sizeof name, "name %d", i % 2);
  WITH_BASE_PROFILER(PROF_HOST, name, "busy", PROF_NO_ARGS, {});
  prof_scope_end(prof_scope_begin(1, "by call", "busy", NULL));
}

static void *run(void *unused) {
  for (int i = 0; i < TIMES; i++) work(i);
  return unused;
}

static int expect(const char *name, uint64_t wanted) {
  uint64_t total_ns = 0, count = 0;
  const int status = prof_get_duration(name, NULL, &total_ns, &count);
  if (status == PROF_OK && count == wanted && (total_ns > 0 || wanted == 0)) return 0;
  fprintf(stderr, "%s: status %d, %llu scopes of %llu ns, expected %llu\n", name ? name : "all",
          status, (unsigned long long)count, (unsigned long long)total_ns,
          (unsigned long long)wanted);
  return 1;
}

static int check(void) {
  const uint64_t each = (uint64_t)THREADS * TIMES;
  prof_health health = {.size = sizeof health};
  uint64_t lost = 0;
  if (prof_health(&health) != PROF_OK) return 1;
  for (int i = 0; i < PROF_LOSS_COUNT; i++) lost += health.lost_count[i];
  if (lost || health.recorded_count != each * 6 || health.threads_seen_count != THREADS) {
    fprintf(stderr, "%llu recorded, %llu lost, %u threads\n",
            (unsigned long long)health.recorded_count, (unsigned long long)lost,
            health.threads_seen_count);
    return 1;
  }
  return expect("outer", each) + expect("values", each) + expect("text", each) +
         expect("level 2", 0) + expect("format", each) + expect("name 0", each / 2) +
         expect("name 1", each / 2) + expect("by call", each) + expect(NULL, each * 6);
}

int main(int argc, char **argv) {
  pthread_t threads[THREADS];
  if (argc != 2) return 2;
  int status = prof_start(1);
  for (int i = 0; i < THREADS; i++)
    if (pthread_create(&threads[i], NULL, run, NULL) != 0) return 1;
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  if (status == PROF_OK) status = prof_stop();
  if (status == PROF_OK && check() != 0) return 1;
  if (status == PROF_OK) status = prof_clear();
  if (status == PROF_OK) status = prof_start(1);
  WITH_BASE_PROFILER(PROF_HOST, "work", "op", PROF_NO_ARGS, {});
  if (status == PROF_OK) status = prof_stop();
  if (status == PROF_OK) status = prof_dump(argv[1]);
  if (status != PROF_OK) fprintf(stderr, "%s: %s\n", prof_status_name(status), prof_last_error());
  return status == PROF_OK ? 0 : 1;
}
