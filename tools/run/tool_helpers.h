/* Which processes belong to the tools of a stack, not to its workload. */
#ifndef PROF_TOOLS_RUN_HELPERS_H
#define PROF_TOOLS_RUN_HELPERS_H

#include "process_tree.h"
#include "stack.h"

/* workload: the name of its program, which is no helper. */
bool run_is_tool_helper(const run_stack *stack, const char *workload, const run_process *member);

#endif
