/* Compiled with PROF_DISABLE beside an object without: its scope is not recorded, its code runs. */
#include <prof/profiler.h>

int quiet_work(int value);

int quiet_work(int value) {
  WITH_BASE_PROFILER(PROF_HOST, "quiet", "op", PROF_NO_ARGS, { value += 1; });
  return value;
}
