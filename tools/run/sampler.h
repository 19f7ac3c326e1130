/* The process beside the workload that samples devices, by prof's own sampler. It has TERM when the
   workload has ended, or when we are gone. */
#ifndef PROF_TOOLS_RUN_SAMPLER_H
#define PROF_TOOLS_RUN_SAMPLER_H

#include <sys/types.h>

#include "sampling.h"

typedef struct run_sampler {
  const char *name; /* of the tool */
  const char *path; /* of its file */
  const char *capture; /* the same as counters, or NULL */
  pid_t pid;
  int news; /* the process writes to it */
} run_sampler;

typedef struct run_samplers {
  run_sampler *items;
  size_t count;
} run_samplers;

/* Why the tool cannot sample here, with what to do; NULL: it can. A process of its own opens the
   vendors' libraries and ends again. */
const char *run_sampler_why_not(const run_tool *tool);

/* One for each tool of the stack that samples; folder: of relative paths. The files are new.
   Returns when all sample. What goes wrong is said; then none samples, and false is returned.
   has_captures: each records its samples as counters, into a capture beside its file. */
bool run_samplers_start(run_samplers *samplers, const run_stack *stack, const char *folder,
                        bool has_captures);

/* Ends all of them. Says which ended before, or failed. is_quiet: says nothing of missed
   samples. */
void run_samplers_stop(run_samplers *samplers, bool is_quiet);

#endif
