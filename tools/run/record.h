/* The tool "prof": makes a workload and its children record. */
#ifndef PROF_TOOLS_RUN_RECORD_H
#define PROF_TOOLS_RUN_RECORD_H

#include "run.h"

/* Adds variables to the tool. With them each process that links prof records into its own capture
   in the folder. Python's package does that itself, and the folder may be NULL. */
void run_record_prepare(run_tool *tool, const run_request *request, const char *folder);

#endif
