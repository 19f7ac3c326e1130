/* See workspace.h. */
#include "workspace.h"

#include <prof/op.h>

static __thread prof_i_workspace *innermost_workspace __attribute__((tls_model("initial-exec")));
static bool
    workspace_is_hooked; /* any thread, relaxed: only ever set, and nothing else hangs on it */

void prof_i_workspace_begin(prof_i_workspace *workspace) {
  *workspace = (prof_i_workspace){.outer = innermost_workspace};
  innermost_workspace = workspace;
}

void prof_i_workspace_begin_part(prof_i_workspace *part, prof_i_workspace *whole) {
  *part = (prof_i_workspace){.outer = innermost_workspace, .whole = whole};
  innermost_workspace = part;
}

void prof_i_workspace_end(prof_i_workspace *workspace) { innermost_workspace = workspace->outer; }

static uint64_t saturating_sum(uint64_t a, uint64_t b) { return a + b < b ? UINT64_MAX : a + b; }
static uint64_t saturating_difference(uint64_t a, uint64_t b) { return a - (b < a ? b : a); }

static void alloc_in_whole(prof_i_workspace *w, uint64_t bytes) {
  uint64_t now = __atomic_load_n(&w->now_bytes, __ATOMIC_RELAXED),
           peak = __atomic_load_n(&w->peak_bytes, __ATOMIC_RELAXED);
  __atomic_store_n(&w->was_reported, true, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(&w->now_bytes, &now, saturating_sum(now, bytes), true,
                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    continue;
  now = saturating_sum(now, bytes);
  while (now > peak && !__atomic_compare_exchange_n(&w->peak_bytes, &peak, now, true,
                                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    continue;
}

static void free_in_whole(prof_i_workspace *w, uint64_t bytes) {
  uint64_t now = __atomic_load_n(&w->now_bytes, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(&w->now_bytes, &now, saturating_difference(now, bytes), true,
                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    continue;
}

bool prof_i_workspace_is_hooked(void) {
  return __atomic_load_n(&workspace_is_hooked, __ATOMIC_RELAXED);
}

void prof_op_workspace_alloc(uint64_t bytes) {
  prof_i_workspace *const w = innermost_workspace;
  if (!prof_i_workspace_is_hooked()) __atomic_store_n(&workspace_is_hooked, true, __ATOMIC_RELAXED);
  if (!w) return;
  w->was_reported = true;
  w->now_bytes = saturating_sum(w->now_bytes, bytes);
  if (w->now_bytes > w->peak_bytes) w->peak_bytes = w->now_bytes;
  if (w->whole) alloc_in_whole(w->whole, bytes);
}

void prof_op_workspace_free(uint64_t bytes) {
  prof_i_workspace *const w = innermost_workspace;
  if (!w) return;
  /* of before the run: not the run's */
  const uint64_t own_bytes = bytes < w->now_bytes ? bytes : w->now_bytes;
  w->now_bytes -= own_bytes;
  if (w->whole) free_in_whole(w->whole, own_bytes);
}
