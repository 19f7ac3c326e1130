/* See workspace.h. */
#include "workspace.h"

#include <prof/op.h>

static __thread prof_i_workspace *innermost __attribute__((tls_model("initial-exec")));

void prof_i_workspace_begin(prof_i_workspace *workspace) {
  *workspace = (prof_i_workspace){.outer = innermost};
  innermost = workspace;
}

void prof_i_workspace_end(prof_i_workspace *workspace) { innermost = workspace->outer; }

void prof_op_workspace_alloc(uint64_t bytes) {
  prof_i_workspace *const w = innermost;
  if (!w) return;
  w->was_told = true;
  w->now_bytes = w->now_bytes + bytes < bytes ? UINT64_MAX : w->now_bytes + bytes;
  if (w->now_bytes > w->peak_bytes) w->peak_bytes = w->now_bytes;
}

void prof_op_workspace_free(uint64_t bytes) {
  prof_i_workspace *const w = innermost;
  if (w) w->now_bytes -= bytes < w->now_bytes ? bytes : w->now_bytes; /* of before the run: not the run's */
}
