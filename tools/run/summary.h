/* The command, its time, its status and its files, as text and as JSON. */
#ifndef PROF_TOOLS_RUN_SUMMARY_H
#define PROF_TOOLS_RUN_SUMMARY_H

#include "child.h"

typedef struct run_summary {
  const char *command; /* the workload, as a shell reads it */
  run_end end;
  run_words scripts; /* lines: "pre-script of NAME: TEXT: status N" */
  run_words files;   /* paths; a folder's ends in / */
} run_summary;

void run_summary_add_script(run_summary *summary, const char *of, bool is_before, const char *text,
                            int status);
void run_summary_add_file(run_summary *summary, const char *path);
/* Its files, if there are any. */
void run_summary_add_folder(run_summary *summary, const char *path);

/* On stderr. */
void run_summary_print(const run_summary *summary);
/* FOLDER/summary.json, or summary.2.json, ... */
void run_summary_write(const run_summary *summary, const char *folder);

#endif
