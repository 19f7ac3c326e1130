/* A program that never starts a capture. Its user does:

       PROF_LEVEL=2 PROF_OUTPUT=trace.json no_code      Records from load to exit.
       PROF_LEVEL=1 PROF_OUTPUT=trace-%p.json.gz ...    One compressed trace a process.
       no_code                                          Two loads and a branch a scope, no more.

   The library that holds the scopes may also be one that this program only links. */
#include <prof/profiler.h>
#include <stdio.h>

static unsigned scramble(unsigned value, int rounds) {
  PROF_FUNCTION();
  for (int i = 0; i < rounds; i++) value = value * 1664525u + 1013904223u;
  return value;
}

int main(void) {
  unsigned value = 1;
  for (int i = 0; i < 100; i++)
    WITH_BASE_PROFILER_LEVEL(2, PROF_HOST, "round", "loop", PROF_ARGS("i", i),
                             { value = scramble(value, 1000 * i); });
  printf("%u\n", value);
  return 0;
}
