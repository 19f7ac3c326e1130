/* The process beside the workload that samples devices, by prof's own sampler. It gets
   SIGTERM when the workload or our process has ended. */
#ifndef PROF_TOOLS_RUN_SAMPLER_H
#define PROF_TOOLS_RUN_SAMPLER_H

#include <sys/types.h>

#include "sampling.h"

typedef struct run_sampler {
  const char *name;    /* of the tool */
  const char *path;    /* of its file */
  const char *capture; /* the same as counters, or NULL */
  const run_sampling *sampling;
  pid_t pid;
  int news; /* the process writes to it */
} run_sampler;

typedef struct run_samplers {
  run_sampler *items;
  size_t made;  /* have their files */
  size_t count; /* run */
} run_samplers;

/* Why the tool cannot sample here, and what to do. NULL: it can. Opens the vendors' libraries in a
   temporary process. */
const char *run_sampler_refusal(const run_tool *tool);

/* Makes the files, one for each tool of the stack that samples. Relative paths begin at `folder`.
   With has_captures each tool also records its samples as counters, into a capture beside its file.
   Ends the process if a file cannot be made. */
void run_samplers_prepare(run_samplers *samplers, const run_stack *stack, const char *folder,
                          bool has_captures);

/* Starts all. Returns when all sample. On an error prints the reason, stops all, and returns
   false. */
bool run_samplers_start(run_samplers *samplers);

/* Ends all of them. Prints which ended early or failed. is_quiet: does not print missed samples. */
void run_samplers_stop(run_samplers *samplers, bool is_quiet);

#endif
