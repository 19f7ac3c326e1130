/* Files that tools write into the working directory, where other runs may write theirs at once. */
#ifndef PROF_TOOLS_RUN_LOOSE_H
#define PROF_TOOLS_RUN_LOOSE_H

#include <time.h>

#include "family.h"
#include "text.h"

typedef struct run_loose {
  int lock;                 /* a shared lock of the directory, or -1 */
  struct timespec begun;    /* the run */
  run_words before;         /* the names that were there */
  const run_family *family; /* of the run, or NULL */
} run_loose;

void run_loose_begin(run_loose *loose);
void run_loose_end(run_loose *loose);

bool run_loose_is_new(const run_loose *loose, const char *name);
/* True: another run that collects such files runs in the directory. */
bool run_loose_has_rival(const run_loose *loose);
/* The file has the name PID_..., was written since the begin, and the process is of this run. */
bool run_loose_is_own(const run_loose *loose, const char *folder, const char *name);

#endif
