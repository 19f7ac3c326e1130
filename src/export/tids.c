/* Numbers of the rows of each thread; see tids.h. */
#include "tids.h"

#include <stdlib.h>

#include "../core/log.h"

enum {
  KERNEL_STEP = 10000000, /* the kernel's numbers go up to 2^22, so a lane's number is no other thread's */
  MADE_STEP = 6000000
};
static const uint64_t made_first = 2600000000; /* past all lanes of the kernel's numbers */

typedef struct numbered {
  uint64_t tid;
  uint32_t index;
} numbered;

static int compare(const void *left, const void *right) {
  const numbered *const a = left, *const b = right;
  if (a->tid != b->tid) return a->tid < b->tid ? -1 : 1;
  return a->index < b->index ? -1 : 1;
}

/* A number that comes again, for the kernel gives those of dead threads away, is made up for all but the first that had it; so is
   one that the kernel does not give. */
static void assign(prof_i_tids *tids, const numbered *sorted, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    const uint64_t tid = sorted[i].tid;
    const uint32_t index = sorted[i].index;
    const int is_kernels = tid > 0 && tid < KERNEL_STEP && (i == 0 || sorted[i - 1].tid != tid);
    tids[index] = is_kernels ? (prof_i_tids){tid, KERNEL_STEP} : (prof_i_tids){made_first + index % MADE_STEP, MADE_STEP};
  }
}

int prof_i_tids_make(const prof_trace *trace, uint32_t thread_count, prof_i_tids **tids_out) {
  prof_i_tids *const tids = calloc((size_t)thread_count + 1, sizeof *tids);
  numbered *const sorted = calloc((size_t)thread_count + 1, sizeof *sorted);
  if (tids == NULL || sorted == NULL) {
    free(tids);
    free(sorted);
    return prof_i_fail(PROF_E_NO_MEMORY, "no memory for the names of %u threads", thread_count);
  }
  for (uint32_t i = 0; i < thread_count; i++) {
    prof_trace_thread thread = {.size = sizeof thread};
    prof_trace_thread_get(trace, i, &thread);
    sorted[i] = (numbered){thread.tid, i};
  }
  qsort(sorted, thread_count, sizeof *sorted, compare);
  assign(tids, sorted, thread_count);
  free(sorted);
  *tids_out = tids;
  return PROF_OK;
}
