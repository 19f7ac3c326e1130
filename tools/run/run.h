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

  /* of the tool prof */
  unsigned level; /* that it records at */
  bool has_memory;
  bool is_repeated;              /* by run_repeat(), which prints a table of all runs */
  bool has_next;                 /* and this is not the last of them */
  struct run_retained *retained; /* takes the captures for that; or NULL */
  bool has_devices;
  bool is_packed;                  /* captures that are kept are packed */
  const char *sample;              /* seconds, or NULL: devices are not sampled */
  const char *file;                /* -o FILE: a pattern, or NULL */
  run_words table_options;         /* of its table */
  run_words python_options;        /* of `python -m prof run`: the workload must be in Python */
  const char *prof_option;         /* the first option that needs the tool prof, or NULL */
  const struct run_python *python; /* the tool prof runs the workload in Python; or NULL */
  bool lacks_package; /* the workload is in Python, which cannot import the package prof */
} run_request;

/* Prints what would run, line by line, on stdout, and on stderr what prevents it. Returns 0, or the
   status that the run would have. */
int run_stack_print(const run_request *request);

/* Runs the workload. Returns its status, as in a shell, or RUN_FAILED. *seconds_out is below 0 if
   the workload was not run. */
int run_stack_execute(const run_request *request, double *seconds_out);

#endif
