/* Numbers and names of the rows that viewers show, and names of element types. See names.h. */
#include "names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/error.h"
#include "../reader/capture.h"
#include "dtype_names.h"

/* ---- names ---- */

void prof_i_device_name(prof_device device, char to[PROF_I_DEVICE_NAME_BYTES]) {
  const char *kind = NULL;
  switch (device.type) {
    case PROF_DEVICE_CPU:
      kind = "CPU";
      break;
    case PROF_DEVICE_CUDA:
    case PROF_DEVICE_ROCM:
      kind = "GPU";
      break;
    case PROF_DEVICE_OPENCL:
      kind = "OpenCL";
      break;
    case PROF_DEVICE_VULKAN:
      kind = "Vulkan";
      break;
    case PROF_DEVICE_METAL:
      kind = "Metal";
      break;
    case PROF_DEVICE_EXT_DEV:
      kind = "Extension device";
      break;
    case PROF_DEVICE_ONEAPI:
      kind = "oneAPI";
      break;
  }
  if (kind != NULL)
    snprintf(to, PROF_I_DEVICE_NAME_BYTES, "%s %d", kind, device.index);
  else
    snprintf(to, PROF_I_DEVICE_NAME_BYTES, "Device type %d, %d", device.type, device.index);
}

const char *prof_i_value_dtype(const prof_trace_arg *arg) {
  if (arg->type != PROF_ARG_TENSOR) return "";
#define CASE(dtype, name) \
  case dtype:             \
    return name;
  switch (arg->value.tensor.dtype) { PROF_I_DTYPE_NAMES(CASE) }
#undef CASE
  return "";
}

/* ---- numbers of threads and streams ---- */

enum {
  /* the kernel's numbers go up to 2^22, so a lane's number is no other thread's */
  KERNEL_STEP = 10000000,
  MADE_STEP = 6000000,
  FAR_STEP = 768, /* the lanes past 255 */
  FAR_COUNT = 200000,
  DEVICE_PIDS_FIRST = 5000000, /* see prof_i_tids_device_pid() */
  MADE_PIDS_FIRST = 6000000
};
static const uint64_t assigned_tid_first = 2600000000; /* past 255 lanes of the kernel's numbers */
static const uint64_t far_first = 4140000000; /* past as many of those; tools/import has both */

typedef struct thread_number {
  int64_t process; /* of a thread */
  uint64_t tid;
  uint32_t index;
} thread_number;

static int tid_compare(const void *left, const void *right) {
  const thread_number *const a = left, *const b = right;
  if (a->process != b->process) return a->process < b->process ? -1 : 1;
  if (a->tid != b->tid) return a->tid < b->tid ? -1 : 1;
  return a->index < b->index ? -1 : 1;
}

/* Of one process. The kernel gives numbers of dead threads away. If several threads have one
   number, all but the first get one that is made up. So do threads with a number that the kernel
   does not give. */
static void assign_tids(prof_i_tids *tids, const thread_number *sorted, uint32_t count,
                        uint64_t pid) {
  for (uint32_t i = 0; i < count; i++) {
    const uint64_t tid = sorted[i].tid;
    const uint32_t index = sorted[i].index;
    const int is_kernels = tid > 0 && tid < KERNEL_STEP && (i == 0 || sorted[i - 1].tid != tid);
    prof_i_tids *const to = &tids[index];
    to->first = is_kernels ? tid : assigned_tid_first + index % MADE_STEP;
    to->step = is_kernels ? KERNEL_STEP : MADE_STEP;
    to->pid = pid;
    to->number = tid;
  }
}

/* sorted: the threads, by their processes. */
static void assign_all_tids(prof_i_tids *tids, const thread_number *sorted, uint32_t count,
                            uint64_t own) {
  uint64_t made = MADE_PIDS_FIRST;
  for (uint32_t begin = 0, end = 0; begin < count; begin = end) {
    const int64_t process = sorted[begin].process;
    while (end < count && sorted[end].process == process) end++;
    uint64_t pid = own;
    if (tids[sorted[begin].index].is_elsewhere)
      pid = process > 0 && process < DEVICE_PIDS_FIRST ? (uint64_t)process : made++;
    assign_tids(tids, sorted + begin, end - begin, pid);
  }
}

/* The trace's threads are in the order in which they came. */
static prof_i_tids stream_tids(const prof_i_tids *before, uint32_t count,
                               const prof_trace_thread *thread) {
  prof_i_tids tids = {.first = PROF_I_STREAM_FIRST,
                      .step = KERNEL_STEP,
                      .number = thread->stream,
                      .is_stream = true};
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
static void keep_numbers(prof_i_tids *tids, const thread_number *sorted, uint32_t count) {
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

/* The bytes of "(NAME)", of which prof import keeps the first 24 at most. 0: it is another text. */
static size_t process_prefix_bytes(const char *at, prof_i_text name) {
  enum { KEPT_TID_MIN = 20, KEPT_TID_MAX = 24 };
  for (size_t kept = name.bytes < KEPT_TID_MAX ? name.bytes : KEPT_TID_MAX; kept > 0; kept--) {
    if (at[0] == '(' && strncmp(at + 1, name.data, kept) == 0 && at[1 + kept] == ')')
      return kept + 2;
    if (kept < KEPT_TID_MIN) break;
  }
  return 0;
}

const char *prof_i_tids_name_in_process(const prof_trace *trace, uint32_t thread,
                                        const char *name) {
  const prof_i_process_record process = prof_i_trace_process(trace, thread);
  char begin[40];
  if (!process.serial || process.pid <= 0 || process.pid >= DEVICE_PIDS_FIRST) return name;
  const int bytes = snprintf(begin, sizeof begin, "process %lld", (long long)process.pid);
  if (strncmp(name, begin, (size_t)bytes) != 0) return name;
  const char *at = name + bytes;
  if (*at == ' ') {
    const size_t called = process_prefix_bytes(at + 1, process.name);
    if (!called) return name;
    at += 1 + called;
  }
  if (*at == '\0') return at;
  return strncmp(at, ", ", 2) == 0 ? at + 2 : name;
}

int prof_i_tids_create(const prof_trace *trace, uint32_t thread_count, prof_i_tids **tids_out) {
  prof_i_tids *const tids = calloc((size_t)thread_count + 1, sizeof *tids);
  thread_number *const sorted = calloc((size_t)thread_count + 1, sizeof *sorted);
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
      const prof_i_process_record process = prof_i_trace_process(trace, i);
      tids[i].is_elsewhere = process.serial != 0;
      tids[i].process = process.pid;
      sorted[host_count++] = (thread_number){process.pid, thread.tid, i};
      continue;
    }
    tids[i] = stream_tids(tids, i, &thread);
    sorted[thread_count - ++stream_count] = (thread_number){0, stream_key(&tids[i]), i};
  }
  thread_number *const streams = sorted + host_count;
  qsort(sorted, host_count, sizeof *sorted, tid_compare);
  qsort(streams, stream_count, sizeof *sorted, tid_compare);
  assign_all_tids(tids, sorted, host_count, info.pid);
  keep_numbers(tids, streams, stream_count);
  free(sorted);
  for (uint32_t i = 0; i < thread_count; i++)
    tids[i].far = far_first + (uint64_t)(i % FAR_COUNT) * FAR_STEP;
  *tids_out = tids;
  return PROF_OK;
}
