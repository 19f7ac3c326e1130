/* The captures of runs that --repeat has done, for one table at the end. */
#ifndef PROF_TOOLS_RUN_KEPT_H
#define PROF_TOOLS_RUN_KEPT_H

#include "captures.h"

typedef struct run_retained {
  const char *folder;      /* temporary, of those without -o; NULL: there are none */
  int lock;                /* of the folder, or -1 */
  run_words paths;         /* of captures */
  const char *why_nothing; /* of the last run without captures */
  run_words elsewhere;     /* of these paths: files that the folder did not take */
  size_t missing;          /* captures that the table does not have */
  const char *why_missing; /* the first of them, and the reason */
  uint64_t bytes;          /* of the temporary files */
  size_t count, left_out;  /* of runs that recorded, and of those after the limit */
} run_retained;

/* Takes the captures of one run. why_nothing: a line if there are none. is_temporary: moves the
   files. */
void run_retained_add(run_retained *retained, const run_captures *captures, const char *why_nothing,
                      bool is_temporary);

/* Prints on stderr one table of all, or why there is nothing. options: of `prof table`. */
void run_retained_print(const run_retained *retained, const run_words *options);

/* Removes the folder. */
void run_retained_remove(run_retained *retained);

#endif
