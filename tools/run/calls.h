/* Calls of libraries as events of a capture, library_trace.prof. */
#ifndef PROF_TOOLS_RUN_CALLS_H
#define PROF_TOOLS_RUN_CALLS_H

#include "call_event.h"
#include "origin.h"

typedef struct run_calls run_calls;

/* Recording begins at the first call, so that no process of the workload inherits it. */
run_calls *run_calls_create(const char *path);

/* Adds a call, at the current time, to the row of its process. stream: for lines of unknown
   processes. */
void run_calls_add(run_calls *calls, run_call_event *form, const run_origin *origin, int stream);

/* Writes the capture, and frees all. False: there was no call, and there is no file. Prints errors
   and losses. */
bool run_calls_finish(run_calls *calls);

#endif
