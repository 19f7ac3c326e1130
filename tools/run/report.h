/* What follows the workload: collects the files of the tools, and prints and writes the reports. */
#ifndef PROF_TOOLS_RUN_REPORT_H
#define PROF_TOOLS_RUN_REPORT_H

#include "internal.h"
#include "library.h"
#include "process_tree.h"
#include "python.h"
#include "run.h"
#include "sampler.h"
#include "stray_files.h"
#include "summary.h"

/* The steps of a run. If one fails, those behind it follow all the same. */
typedef enum run_step {
  PREPARING,
  SETTING_UP,
  RUNNING,
  TEARING_DOWN,
  COLLECTING,
  REPORTING,
  REMOVING,
  DONE,
} run_step;

/* One run. */
typedef struct run_state {
  run_request request;
  run_step step;
  int status;
  const char *record_folder;    /* of captures of processes, which prof run asks for; or NULL */
  const char *file_folder;      /* with -o FILE: of all captures that become files; or NULL */
  const char *temporary_folder; /* the same, if it is removed at the end; or NULL */
  run_python_rest rest;         /* of a script in Python */
  run_libraries *libraries;     /* or NULL */
  const char *trace_path;       /* of library_trace.csv, or NULL */
  const char *log_path;         /* or NULL */
  run_calls *calls;             /* or NULL */
  const char *calls_path;
  run_logs *logs;              /* or NULL */
  run_stray_files stray_files; /* in the working directory */
  run_samplers samplers;
  run_process_tree *process_tree; /* or NULL */
  run_stream_watch watch;
  run_summary summary;
} run_state;

/* RUN_LIBRARY_x of which the tools trace the calls, as bits. */
unsigned run_libraries_of(const run_stack *stack);

/* The tools' files that exist at the end, and the captures. */
void run_collect(run_state *state);

/* Prints tables and the summary as far as they are wanted, and writes summary.json. */
void run_report(run_state *state);

/* Removes the temporary folder, if there is one that no process uses. */
void run_remove_temporary(const run_state *state);

#endif
