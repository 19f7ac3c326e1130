/* Usage: large SCOPES [HOW]. Records SCOPES scopes, more than are copied at exit. HOW:
     "dump"   Dumps to by-call.prof, then records as many scopes again.
     "again"  Stops, then dumps to by-call.prof.
     "fork"   A child records, too: one scope more.
     "bare"   A child that was forked without fork handlers ends at once.
     "wait"   Ends when stdin does. */
#define _GNU_SOURCE
#include <prof/profiler.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void record(long count) {
  for (long i = 0; i < count; i++) WITH_BASE_PROFILER(PROF_HOST, "work", "test", PROF_NO_ARGS, {});
}

static int ended_well(pid_t child) {
  int status = 1;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

int main(int argc, char **argv) {
  const char *const how = argc > 2 ? argv[2] : "";
  const long count = atol(argv[1]);
  char byte;
  if (!strcmp(how, "fork")) {
    const pid_t child = fork();
    record(child == 0 ? count + 1 : count);
    return child != 0 && !ended_well(child);
  }
  record(count);
  if (!strcmp(how, "dump")) {
    if (prof_dump("by-call.prof") != PROF_OK) return 1;
    record(count);
  }
  if (!strcmp(how, "again") && (prof_stop() != PROF_OK || prof_dump("by-call.prof") != PROF_OK))
    return 1;
#if __GLIBC__ == 2 && __GLIBC_MINOR__ >= 34
  if (!strcmp(how, "bare")) {
    const pid_t child = _Fork();
    if (child == 0) exit(0);
    return !ended_well(child);
  }
#endif
  if (!strcmp(how, "wait")) return read(0, &byte, 1) != 0;
  return 0;
}
