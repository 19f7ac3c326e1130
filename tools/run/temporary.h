/* The temporary folder of a run without -o. It holds captures until their table is printed. */
#ifndef PROF_TOOLS_RUN_TEMPORARY_H
#define PROF_TOOLS_RUN_TEMPORARY_H

#include <stdbool.h>

/* Makes $TMPDIR/prof-run-XXXXXX. A lock on it tells other runs that it is in use, until our process
   and those it has forked have ended. Ends the process if that fails. */
const char *run_temporary_folder(void);

/* Gives up the lock, at the end of the run. */
void run_temporary_release(void);

/* The lock's descriptor, or -1 if there are no locks here. The caller closes it. */
int run_temporary_hand_over(void);

/* Removes the folder, and the files and empty folders in it. False with errno set: it stays. */
bool run_temporary_remove(const char *folder);

/* Removes such folders of our user, if their run was killed. Then nobody has the lock, no process
   that wrote a capture there still runs, and no process has the folder in its PROF_OUTPUT. */
void run_temporary_sweep(void);

#endif
