/* Files that tools write into the working directory, where other runs may write theirs at once. */
#ifndef PROF_TOOLS_RUN_LOOSE_H
#define PROF_TOOLS_RUN_LOOSE_H

#include <time.h>

#include "process_tree.h"
#include "text.h"

typedef struct run_stray_files {
  int lock;                             /* a shared lock of the directory, or -1 */
  struct timespec begun;                /* the run */
  run_words before;                     /* the names that were there */
  const run_process_tree *process_tree; /* of the run, or NULL */
} run_stray_files;

void run_stray_files_begin(run_stray_files *stray_files);
void run_stray_files_end(run_stray_files *stray_files);

bool run_stray_file_is_new(const run_stray_files *stray_files, const char *name);
/* True: another run that collects such files runs in the directory. */
bool run_stray_files_has_rival(const run_stray_files *stray_files);
/* The file has the name PID_..., was written since the begin, and the process is of this run. */
bool run_stray_file_is_own(const run_stray_files *stray_files, const char *folder,
                           const char *name);

#endif
