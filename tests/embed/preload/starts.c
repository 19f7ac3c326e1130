/* A program that starts a capture, and prints the result. Then it joins, stops, and starts a
   capture of its own twice. At last it starts a capture while memory alone is recorded. */
#include <prof/memory.h>
#include <stdio.h>

static void start(const char *when) {
  const int status = prof_start_with(&(prof_options){.size = sizeof(prof_options), .level = 2});
  printf("%s: %s: %s\n", when, prof_status_name(status),
         status == PROF_OK ? "" : prof_last_error());
}

int main(void) {
  start("first");
  if (prof_start(2) != PROF_OK) return 1;
  start("joined");
  if (prof_stop() != PROF_OK) return 2;
  start("after a stop");
  start("once more");
  if (prof_stop() != PROF_OK || prof_memory_start() != PROF_OK) return 3;
  start("memory alone");
  return prof_stop() == PROF_OK ? 0 : 4;
}
