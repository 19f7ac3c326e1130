/* The tool "prof": makes a workload and its children record, and prints their tables. */
#ifndef PROF_TOOLS_RUN_RECORD_H
#define PROF_TOOLS_RUN_RECORD_H

#include "run.h"

/* Adds variables to the tool. With them each process that links prof records into its own capture
   in the folder. Python's package does that itself, and the folder may be NULL. */
void run_record_prepare(run_tool *tool, const run_request *request, const char *folder);

/* Lists the captures in the folder, and removes empty ones. */
void run_record_captures(const char *folder, run_words *to);

/* Prints the table of all captures on stderr, with these options of `prof table`. If there are no
   captures, prints what to do. */
void run_record_report(const run_words *captures, const run_words *options);

#endif
