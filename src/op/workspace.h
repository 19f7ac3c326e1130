/* What an operator's allocator requests during a run, on its thread: the peak above the level at
   the run's begin. Operators that run at once on threads have a part each. The whole is what all
   parts hold, in the order of their calls, so its peak was really held. */
#ifndef PROF_OP_WORKSPACE_H
#define PROF_OP_WORKSPACE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct prof_i_workspace {
  struct prof_i_workspace *outer; /* of a measurement inside of which this one is made */
  struct prof_i_workspace *whole; /* of which this is a part; or NULL */
  /* of a whole: any part's thread, relaxed; read when the parts have ended */
  uint64_t now_bytes, peak_bytes;
  bool was_reported; /* the same */
} prof_i_workspace;

/* From now on this thread's calls count for it, until the end. Nested. */
void prof_i_workspace_begin(prof_i_workspace *workspace);
void prof_i_workspace_end(prof_i_workspace *workspace);

/* The same of a part. What it still holds at its end stays in the whole. */
void prof_i_workspace_begin_part(prof_i_workspace *part, prof_i_workspace *whole);

/* True if any thread ever called prof_op_workspace_alloc(), in a measurement or not. Then the
   operators' allocator reports, and a run without a report requested nothing. */
bool prof_i_workspace_is_hooked(void);

#endif
