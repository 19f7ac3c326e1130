/* Tells captures of processes that were killed until when these were alive. */
#ifndef PROF_TOOLS_RUN_SEEN_H
#define PROF_TOOLS_RUN_SEEN_H

#include "captures.h"
#include "child.h"

/* family: has seen the processes, or NULL. end: of the process that was started. */
void run_seen_tell(const run_captures *captures, const run_family *family, const run_end *end);

#endif
