/* A library that somebody instrumented; how prof comes into it is the test's affair. PART is its
   name. */
#include <prof/profiler.h>

#define TEXT_OF(word) #word
#define TEXT(word) TEXT_OF(word)
#define NAME_OF(part, verb) part##_##verb
#define NAME(part, verb) NAME_OF(part, verb)
#define SHOWN __attribute__((visibility("default")))

SHOWN int NAME(PART, start)(void);
SHOWN void NAME(PART, work)(int times);
SHOWN uint64_t NAME(PART, count)(void);
SHOWN int NAME(PART, stop)(void);
SHOWN int NAME(PART, dump)(const char *path);
SHOWN const char *NAME(PART, reason)(void);

int NAME(PART, start)(void) { return prof_start(1); }

void NAME(PART, work)(int times) {
  for (int i = 0; i < times; i++)
    WITH_BASE_PROFILER(PROF_HOST, TEXT(PART), "part", PROF_NO_ARGS, {});
}

/* What its profiler has recorded. */
uint64_t NAME(PART, count)(void) {
  prof_health health = {.size = sizeof health};
  return prof_health(&health) == PROF_OK ? health.recorded_count : UINT64_MAX;
}

int NAME(PART, stop)(void) { return prof_stop(); }
int NAME(PART, dump)(const char *path) { return prof_dump(path); }
const char *NAME(PART, reason)(void) { return prof_last_error(); }
