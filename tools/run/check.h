/* Checks a stack before anything runs. */
#ifndef PROF_TOOLS_RUN_CHECK_H
#define PROF_TOOLS_RUN_CHECK_H

#include "compose.h"

/* The path of a program as execvp() finds it, or NULL. */
char *run_program_find(const char *name);

/* Runs the words without streams. Whether they end with 0. */
bool run_ends_well(char **words);

/* Why the tool cannot work here, and what to do. NULL: nothing is known to prevent it. */
const char *run_tool_refusal(const run_tool *tool);

/* The name of the program that the tool's cmd runs, or "". */
const char *run_tool_program(const run_tool *tool);

/* Ends the process with one message if another tool of the stack traces devices, too. */
void run_check_devices(const run_stack *stack);

/* The same if another tool, or the program itself, replaces malloc(), too. */
void run_check_memory(const run_stack *stack, const char *program);

/* Prints each reason why the stack cannot run here. Returns the status that the run would have, or
   0. */
int run_check_all(const run_stack *stack, const run_words *workload);

/* Ends the process with one message if a tool cannot work, two tools need the same exclusive
   resource, or the workload's file is missing. */
void run_check(const run_stack *stack, const run_words *workload);

#endif
