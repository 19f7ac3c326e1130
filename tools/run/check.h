/* What is wrong with a stack before anything runs. */
#ifndef PROF_TOOLS_RUN_CHECK_H
#define PROF_TOOLS_RUN_CHECK_H

#include "compose.h"

/* The path of a program as execvp() finds it, or NULL. */
char *run_program_find(const char *name);

/* Why the tool cannot work here, with what to do; NULL: it can, as far as can be seen. */
const char *run_tool_why_not(const run_tool *tool);

/* Ends the process with one message where a tool cannot work, two tools need what holds one alone,
   or the workload's file is not there. */
void run_check(const run_stack *stack, const run_words *workload);

#endif
