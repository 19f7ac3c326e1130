/* The tool "prof": what makes a workload and its children record, and their tables. */
#ifndef PROF_TOOLS_RUN_RECORD_H
#define PROF_TOOLS_RUN_RECORD_H

#include "run.h"

/* Adds to the tool the variables with which each process that links prof records into a capture of
   its own in the folder. */
void run_record_prepare(run_tool *tool, const run_request *request, const char *folder);

/* The captures in the folder that hold anything; others are removed. */
void run_record_captures(const char *folder, run_words *to);

/* Prints the table of all captures on stderr; or what to do where there are none. */
void run_record_report(const run_words *captures);

#endif
