/* The scripts of a stack: set-up and tear-down. */
#ifndef PROF_TOOLS_RUN_SCRIPTS_H
#define PROF_TOOLS_RUN_SCRIPTS_H

#include "child.h"
#include "summary.h"

/* As text for a shell: `bash PATH ARGUMENTS`, or `PATH ARGUMENTS` of a program or of an executable
   script in another language. */
const char *run_script_text(const run_script *script);

/* Set-up, from the outermost tool to the innermost. Stops at the first script that fails, or if a
   signal has requested the end. Returns its status. */
int run_scripts_before(const run_stack *stack, const run_stream_watch *watch, run_summary *summary);

/* Tear-down, from the innermost to the outermost, whatever the workload's status. */
void run_scripts_after(const run_stack *stack, const run_stream_watch *watch, run_summary *summary);
/* True: there are any. */
bool run_scripts_follow(const run_stack *stack);

#endif
