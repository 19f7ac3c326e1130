/* Records one scope of its own and runs the code of disabled.c. usage: app FILE */
#include <prof/profiler.h>

int quiet_work(int value);

int main(int argc, char **argv) {
  int value = 0;
  if (argc != 2 || prof_start(1) != PROF_OK) return 1;
  WITH_BASE_PROFILER(PROF_HOST, "loud", "op", PROF_NO_ARGS, { value = quiet_work(41); });
  return value == 42 && prof_stop() == PROF_OK && prof_dump(argv[1]) == PROF_OK ? 0 : 1;
}
