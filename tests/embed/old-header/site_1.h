/* For a library whose call sites have another layout: what stands between objects of version 1 and
   it. Such a library keeps every name of version 1. Its level is a word that is always on, so old
   call sites always call; here the true level is looked at, and the site, which has the old layout,
   is described anew at each call: by the table of sites it gets its old number. Nothing of the new
   fast path is reached with an old site. */
#ifndef PROF_TESTS_SITE_1_H
#define PROF_TESTS_SITE_1_H

#include <stdint.h>

typedef struct site_1 {
  uint64_t state;
  const char *file;
  const char *function;
  uint32_t line;
  uint32_t level;
  uint64_t values;
} site_1;

#endif
