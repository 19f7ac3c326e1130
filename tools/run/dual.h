/* DUAL-GCD: the workload twice at once, on the devices 0 and 1. */
#ifndef PROF_TOOLS_RUN_DUAL_H
#define PROF_TOOLS_RUN_DUAL_H

#include "stack.h"

/* The words that run the workload. They call run_dual() if a tool of the stack needs it. */
run_words run_dual_workload(const run_stack *stack, const run_words *workload);

/* The hidden command `prof run-dual WORDS...`: runs the words twice at once. One process has
   the first device of HIP_VISIBLE_DEVICES and CUDA_VISIBLE_DEVICES, the other the second. Waits for
   both, and returns the first status that is not 0. */
int run_dual(int argc, char **argv);

#endif
