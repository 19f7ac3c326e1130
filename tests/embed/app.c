/* The smallest program that uses prof, built by every embedding test in another way. usage: app
   FILE */
#include <prof/profiler.h>
#include <stdio.h>

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  int status = prof_start(1);
  WITH_BASE_PROFILER(PROF_HOST, "work", "op", PROF_NO_ARGS, { fprintf(stderr, "working\n"); });
  if (status == PROF_OK) status = prof_stop();
  if (status == PROF_OK) status = prof_dump(argv[1]);
  if (status != PROF_OK) fprintf(stderr, "%s: %s\n", prof_status_name(status), prof_last_error());
  return status == PROF_OK ? 0 : 1;
}
