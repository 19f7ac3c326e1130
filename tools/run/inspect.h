/* What captures have. They are read in a process of its own: a file that is truncated meanwhile, or
   a damaged one, ends that process alone. */
#ifndef PROF_TOOLS_RUN_INSPECT_H
#define PROF_TOOLS_RUN_INSPECT_H

#include "text.h"

typedef struct run_inspection {
  char process[256]; /* its name, or "" */
  uint32_t pid;
  uint64_t start_ns; /* of CLOCK_MONOTONIC */
  int32_t rank;
  bool has_ranks;                        /* there is more than one */
  bool is_live, is_elsewhere, was_clean; /* as in prof_trace_info */
  bool has_rows;                         /* scopes, or losses */
  bool has_events;                       /* events, or losses */
  char error[1024];                      /* why it cannot be read, or "" */
} run_inspection;

/* One for each path, in their order. */
run_inspection *run_inspect(const run_words *paths);

#endif
