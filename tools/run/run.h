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
} run_request;

/* Prints what would run, line by line, on stdout. */
void run_print(const run_request *request);

/* Runs the workload. Returns its status, as in a shell, or RUN_FAILED. */
int run_go(const run_request *request, double *seconds_out);

/* Runs the workload `count` times, one after another, each in its own folder run-1, run-2, ...
   Returns the first status that is not 0. */
int run_repeat(const run_request *request, unsigned count);

#endif
