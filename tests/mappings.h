/* How many mappings this process has: the kernel allows 65530. */
#ifndef PROF_TESTS_MAPPINGS_H
#define PROF_TESTS_MAPPINGS_H

#include <stdio.h>

static inline long mappings(void) {
  FILE *const maps = fopen("/proc/self/maps", "r");
  long count = 0;
  for (int c; maps && (c = fgetc(maps)) != EOF;) count += c == '\n';
  if (maps) fclose(maps);
  return count;
}

#endif
