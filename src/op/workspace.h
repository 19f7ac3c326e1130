/* What an operator's allocator asks for during a run, on its thread: the peak above what was there when the run began. */
#ifndef PROF_OP_WORKSPACE_H
#define PROF_OP_WORKSPACE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct prof_i_workspace {
  struct prof_i_workspace *outer; /* of a measurement inside of which this one is made */
  uint64_t now_bytes, peak_bytes;
  bool was_told;
} prof_i_workspace;

/* From here on this thread's calls count for it, until the end. Nested. */
void prof_i_workspace_begin(prof_i_workspace *workspace);
void prof_i_workspace_end(prof_i_workspace *workspace);

#endif
