/* Its own scopes and those of old.c, in one process; both counted exactly. usage: program FILE */
#include <prof/profiler.h>
#include <prof/trace.h>
#include <stdio.h>

enum { TIMES = 20000 };

void old_work(int i);
void old_cxx_work(int i);

static int expect(const char *name, uint64_t wanted) {
  uint64_t count = 0;
  const int status = prof_get_duration(name, NULL, NULL, &count);
  if (status == PROF_OK && count == wanted) return 0;
  fprintf(stderr, "%s: status %d, %llu scopes, expected %llu\n", name, status,
          (unsigned long long)count, (unsigned long long)wanted);
  return 1;
}

int main(int argc, char **argv) {
  if (argc != 2 || prof_start(1) != PROF_OK) return 2;
  for (int i = 0; i < TIMES; i++) {
    WITH_BASE_PROFILER(PROF_HOST, "new", "op", PROF_ARGS("i", i), { old_work(i); });
    old_cxx_work(i);
  }
  prof_health health = {.size = sizeof health};
  if (prof_stop() != PROF_OK || prof_health(&health) != PROF_OK) return 1;
  uint64_t lost = 0;
  for (int i = 0; i < PROF_LOSS_COUNT; i++) lost += health.lost_count[i];
  if (lost || health.recorded_count != 8 * TIMES)
    fprintf(stderr, "%llu recorded, %llu lost\n", (unsigned long long)health.recorded_count,
            (unsigned long long)lost);
  int wrong = lost != 0 || health.recorded_count != 8 * TIMES;
  wrong += expect("new", TIMES) + expect("old", TIMES) + expect("old values", TIMES) +
           expect("old text", TIMES) + expect("old level 2", 0) + expect("old name 0", TIMES / 2) +
           expect("old name 1", TIMES / 2) + expect("old format", TIMES) + expect("old at", TIMES) +
           expect("old C++", TIMES);
  if (wrong || prof_clear() != PROF_OK || prof_start(2) != PROF_OK) return 1;
  old_work(0);
  old_cxx_work(0);
  return prof_stop() == PROF_OK && prof_dump(argv[1]) == PROF_OK ? 0 : 1;
}
