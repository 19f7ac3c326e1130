/* Numbers of the rows of each thread; see tids.h. */
#include "tids.h"

#include <stdbool.h>
#include <stdlib.h>

#include "../core/log.h"

enum {
  KERNEL_STEP =
      10000000, /* the kernel's numbers go up to 2^22, so a lane's number is no other thread's */
  MADE_STEP = 6000000,
  FAR_STEP = 768, /* the lanes past 255 */
  FAR_COUNT = 200000
};
static const uint64_t made_first = 2600000000; /* past 255 lanes of the kernel's numbers */
static const uint64_t far_first = 4140000000;  /* past as many of those; tools/import has both */

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
static void assign(prof_i_tids *tids, const numbered *sorted, uint32_t count, uint64_t pid) {
  for (uint32_t i = 0; i < count; i++) {
    const uint64_t tid = sorted[i].tid;
    const uint32_t index = sorted[i].index;
    const int is_kernels = tid > 0 && tid < KERNEL_STEP && (i == 0 || sorted[i - 1].tid != tid);
    tids[index] = is_kernels
                      ? (prof_i_tids){.first = tid, .step = KERNEL_STEP, .pid = pid}
                      : (prof_i_tids){
                            .first = made_first + index % MADE_STEP, .step = MADE_STEP, .pid = pid};
    tids[index].number = tid;
  }
}

/* The trace's threads are in the order in which they came. */
static prof_i_tids stream_tids(const prof_i_tids *before, uint32_t count,
                               const prof_trace_thread *thread) {
  prof_i_tids tids = {.first = PROF_I_STREAM_FIRST, .step = KERNEL_STEP, .number = thread->stream};
  tids.pid = prof_i_tids_device_pid(thread->device);
  for (uint32_t i = 0; i < count; i++) tids.first += before[i].pid == tids.pid;
  if (tids.number > KERNEL_STEP) tids.number = KERNEL_STEP;
  return tids;
}

/* By device, then by number. */
static uint64_t stream_key(const prof_i_tids *tids) {
  return tids->pid * (KERNEL_STEP + 1) + tids->number;
}

/* sorted: the streams, by their keys. */
static void keep_numbers(prof_i_tids *tids, const numbered *sorted, uint32_t count) {
  for (uint32_t begin = 0, end = 0; begin < count; begin = end) {
    const uint64_t pid = tids[sorted[begin].index].pid;
    bool is_known = true;
    for (; end < count && tids[sorted[end].index].pid == pid; end++)
      is_known = is_known && tids[sorted[end].index].number < KERNEL_STEP &&
                 (end == begin || sorted[end - 1].tid != sorted[end].tid);
    for (uint32_t i = begin; i < end && !is_known; i++)
      tids[sorted[i].index].number = tids[sorted[i].index].first;
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
  uint32_t host_count = 0, stream_count = 0;
  prof_trace_info info = {.size = sizeof info};
  prof_trace_info_get(trace, &info);
  for (uint32_t i = 0; i < thread_count; i++) {
    prof_trace_thread thread = {.size = sizeof thread};
    prof_trace_thread_get(trace, i, &thread);
    if (!thread.is_stream) {
      sorted[host_count++] = (numbered){thread.tid, i};
      continue;
    }
    tids[i] = stream_tids(tids, i, &thread);
    sorted[thread_count - ++stream_count] = (numbered){stream_key(&tids[i]), i};
  }
  numbered *const streams = sorted + host_count;
  qsort(sorted, host_count, sizeof *sorted, compare);
  qsort(streams, stream_count, sizeof *sorted, compare);
  assign(tids, sorted, host_count, info.pid);
  keep_numbers(tids, streams, stream_count);
  free(sorted);
  for (uint32_t i = 0; i < thread_count; i++)
    tids[i].far = far_first + (uint64_t)(i % FAR_COUNT) * FAR_STEP;
  *tids_out = tids;
  return PROF_OK;
}
