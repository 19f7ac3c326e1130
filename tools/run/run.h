/* One run of a workload under a stack of tools, from set-up to collection. */
#ifndef PROF_TOOLS_RUN_RUN_H
#define PROF_TOOLS_RUN_RUN_H

#include "child.h"
#include "library.h"

typedef struct run_request {
  run_stack stack;
  run_words workload;
  const char *folder; /* of the files, or "." */
  bool has_folder;    /* -o was given: a log and a summary are written */
  bool is_quiet;      /* no summary on stderr */
  unsigned level;     /* that prof records at */
  bool has_memory;
  bool is_repeated; /* by run_repeat(), which prints a table of all runs */
} run_request;

/* Prints what would run, line by line, on stdout. */
void run_print(const run_request *request);

/* Runs the workload. Returns its status, as in a shell, or RUN_FAILED. *seconds_out is below 0 if
   the workload was not run. */
int run_go(const run_request *request, double *seconds_out);

#endif
