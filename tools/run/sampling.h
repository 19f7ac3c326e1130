/* The settings of the tools gpu_info_power_profiler and gpu_info_vram_profiler. */
#ifndef PROF_TOOLS_RUN_SAMPLING_H
#define PROF_TOOLS_RUN_SAMPLING_H

#include "stack.h"

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

#endif
