/* Tells captures of processes that were killed until when these were alive. */
#ifndef PROF_TOOLS_RUN_SEEN_H
#define PROF_TOOLS_RUN_SEEN_H

#include "captures.h"
#include "child.h"

/* family: has seen the processes, or NULL. end: of the process that was started. */
void run_last_seen_report(const run_captures *captures, const run_process_tree *process_tree,
                          const run_child_end *end);

#endif
