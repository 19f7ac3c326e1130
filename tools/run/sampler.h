/* A process beside the workload samples devices, by prof's own sampler. It gets SIGTERM when the
   workload or our process has ended. */
#ifndef PROF_TOOLS_RUN_SAMPLER_H
#define PROF_TOOLS_RUN_SAMPLER_H

#include <sys/types.h>

#include "stack.h"

/* ---- sampling.c: the settings of gpu_info_power_profiler and gpu_info_vram_profiler ---- */

typedef struct run_sampling {
  const char *devices; /* "all", or numbers in their order with commas between: "0,1" */
  const char *mode;    /* "power", "vram", or "all": of the tool prof */
  uint64_t interval_ns;
  bool is_dual;     /* the workload runs twice, on the devices 0 and 1 */
  const char *file; /* of the samples: a path, or a name in the run's folder */
} run_sampling;

/* Reads the variables of a tool that samples. DEVICE, SAMPLING_RATE, MODE, DUAL-GCD, DUAL_GCD and
   OUTPUT_FILE have precedence over those with POWER_ or VRAM_ in front. Ends the process with one
   message if a value is wrong. */
run_sampling run_sampling_read(const run_tool *tool);

/* Of `--sample SECONDS` of the tool prof: all meters, into a file of that path and a capture. */
const run_sampling *run_sampling_of_prof(const char *seconds, const char *file);

/* True: the text is a number of seconds that a sampler takes. */
bool run_sampling_reads(const char *seconds, uint64_t *interval_ns_out);

/* Removes these variables from each tool that samples, because the workload must not get them. Sets
   tool->sampling. */
void run_samplings_prepare(run_stack *stack);

/* ---- sampler.c: the process ---- */

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
