/* Numbers and names of the rows that viewers show: of threads, streams and devices. Also the names
   of element types. */
#ifndef PROF_EXPORT_NAMES_H
#define PROF_EXPORT_NAMES_H

#include <prof/trace.h>
#include <stdbool.h>

/* ---- names ---- */

/* Room for what PROF_ARGS_FORMAT gives; more is cut. A recorded list has at most 16 KiB, but a
   width may ask for anything. */
enum { PROF_I_FORMAT_BYTES = 64 << 10 };

/* A tensor's element type as torch.profiler spells it, "float", "long int"; "" when unknown or no
   tensor. */
const char *prof_i_value_dtype(const prof_trace_arg *arg);

/* "GPU 0", "OpenCL 1": NUL-terminated. */
enum { PROF_I_DEVICE_NAME_BYTES = 48 };
void prof_i_device_name(prof_device device, char to[PROF_I_DEVICE_NAME_BYTES]);

/* ---- numbers of threads and streams ---- */

/* The number of a row is the kernel's where it can be, and never one number for two rows. */

/* A thread's own row, and how far from it each row for what overlaps is. All stay below 2^32, past
   which viewers take them for 0. A stream is a row of its device's process, numbered as the streams
   of the device first ran; not from 0, which HolisticTraceAnalysis takes for no device's. */
enum { PROF_I_STREAM_FIRST = 1 };
typedef struct prof_i_tids {
  uint64_t first;
  uint64_t step;
  uint64_t pid;
  uint64_t far; /* the row of lane 256, behind which those of the lanes past it stand */
  /* The trace's own number of the thread or stream, which prof import takes back. Equal to `first`
     for all streams of a device if two of them have one number, or one has an address. */
  uint64_t number;
  bool is_stream;
  bool is_elsewhere; /* a thread of another process than the capture's */
  /* Of such a process: its number in the trace. `pid` is another one if a viewer would take it for
     a device, or for none. */
  int64_t process;
} prof_i_tids;

static inline uint64_t prof_i_tids_row(const prof_i_tids *tids, uint32_t lane) {
  enum { NEAR_LANES = 256 };
  return lane < NEAR_LANES ? tids->first + lane * tids->step : tids->far + (lane - NEAR_LANES);
}

/* A number that no process has: the kernel's go up to 2^22. prof import reads the type out of it.
   Devices of high numbers stand behind all others, so that theirs is no other type's. */
static inline uint64_t prof_i_tids_device_pid(prof_device device) {
  enum { FIRST = 5000000, STEP = 1000, FAR_FIRST = 8000000, FAR_TYPES = 32, FAR_COUNT = 100000 };
  const uint64_t type = (uint32_t)device.type, index = (uint32_t)device.index;
  if (index < STEP) return FIRST + (type * STEP + index) % 1000000;
  return FAR_FIRST + index % FAR_COUNT * FAR_TYPES + type % FAR_TYPES;
}

/* The same in a file of several captures, where each has devices of its own. The numbers are below
   2^32, and above those that merge.c makes for processes. */
static inline uint64_t prof_i_tids_merged_pid(uint32_t capture, prof_device device) {
  enum { TYPES = 64, INDEXES = 4096 };
  const uint64_t type = (uint32_t)device.type % TYPES, index = (uint32_t)device.index % INDEXES;
  if (capture == 0) return prof_i_tids_device_pid(device);
  return (1ull << 31) + ((uint64_t)capture * TYPES + type) * INDEXES + index;
}

/* The name without the process that prof import put before it: the process has a row of its own. */
const char *prof_i_tids_name_in_process(const prof_trace *trace, uint32_t thread, const char *name);

/* One for each of the trace's threads; the caller gives it to free(). PROF_E_NO_MEMORY with its
   text. */
int prof_i_tids_create(const prof_trace *trace, uint32_t thread_count, prof_i_tids **tids_out);

#endif
