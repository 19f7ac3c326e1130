/* What the files of OpenCL's back end share: clocks and devices. */
#ifndef PROF_OPENCL_INTERNAL_H
#define PROF_OPENCL_INTERNAL_H

#include <prof/backend.h>
#include <pthread.h>
#include <stdbool.h>

#include "../device/vendor.h"
#include "api.h"

/* ---- clock.c ---- */

/* Finds out which clock an OpenCL device's times are of. Many drivers use a clock that the host can
   read as well, but none says which. A marker shows it: its QUEUED lies between two readings of
   that clock. Markers with such readings are samples. */

enum { PROF_I_OPENCL_HOST_CLOCKS = 4 };

/* All of the host's clocks at about one moment, in ns. */
typedef struct prof_i_opencl_host_reading {
  uint64_t ns[PROF_I_OPENCL_HOST_CLOCKS];
} prof_i_opencl_host_reading;

typedef struct prof_i_opencl_clock {
  pthread_mutex_t lock;     /* rank 4: all below. Nothing is called under it */
  uint64_t slack_ns;        /* how coarse the device's times are; written once */
  uint32_t matching_clocks; /* a bit for each of the host's clocks in which all samples have lain */
  uint32_t sample_count;
  bool has_timer;  /* the driver reads its device's clock, and has not been found wrong yet */
  uint64_t end_ns; /* of the last sample, by the device's clock: */
  uint64_t from_ns, to_ns; /* it was past between these two of CLOCK_MONOTONIC */
} prof_i_opencl_clock;

/* An enqueue that the clocks are read around. */
typedef struct prof_i_opencl_sample {
  prof_i_opencl_clock *clock; /* NULL: this is no sample */
  prof_i_opencl_host_reading before, after;
} prof_i_opencl_sample;

void prof_i_opencl_clock_init(prof_i_opencl_clock *clock, bool has_timer, uint64_t resolution_ns);

prof_i_opencl_host_reading prof_i_opencl_read_host_clocks(void);

/* True after the first sample. Before that the clock is unknown. Any thread. */
bool prof_i_opencl_clock_has_sample(prof_i_opencl_clock *clock);

/* Adds a sample whose event is past. Any thread. */
void prof_i_opencl_clock_add_sample(const prof_i_opencl_sample *sample, uint64_t queued_ns,
                                    uint64_t end_ns);

/* prof_backend.clock. UNSUPPORTED: the driver cannot read the clock, and it is not one of the
   host's. One thread at a time. */
int prof_i_opencl_clock_read(prof_i_opencl_clock *clock, prof_i_cl_device device,
                             prof_backend_pair *out);

/* backend.c: scopes by markers on the program's queues. */
extern const prof_backend prof_i_opencl_backend;

/* ---- devices.c ---- */

typedef struct prof_i_opencl_functions {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration's */
#define PROF_I_CL_MEMBER(need, name, arguments) int32_t(*name) arguments;
  PROF_I_CL_FUNCTIONS(PROF_I_CL_MEMBER)
#undef PROF_I_CL_MEMBER
} prof_i_opencl_functions;

/* Written only by prof_i_opencl_library_open(). Call these only after it returned OK. */
extern prof_i_opencl_functions prof_i_opencl __attribute__((visibility("hidden")));

/* See prof_i_vendor_library_open(). ABSENT, VERSION, UNSUPPORTED, PERMISSION. One thread at a
   time. */
int prof_i_opencl_library_open(void);

/* Keeps a text such as "clEnqueueMarker: CL_OUT_OF_RESOURCES (-5)", and returns the result that
   fits. */
int prof_i_opencl_fail_call(const char *function, int32_t error);

typedef struct prof_i_opencl_device {
  prof_i_cl_device id;
  uint32_t version; /* 302: OpenCL 3.2 */
  prof_i_opencl_clock clock;
} prof_i_opencl_device;

/* The number of platforms; 0 with a text. Touches no device. */
uint32_t prof_i_opencl_platforms_count(void);

/* NO_DEVICE. Once. */
int prof_i_opencl_devices_list(void);

/* By number; NULL: there are fewer. Any thread, as all below. */
prof_i_opencl_device *prof_i_opencl_device_at(uint32_t index);
uint32_t prof_i_opencl_device_number(const prof_i_opencl_device *device);

/* The listed device that this is, or is a part of; NULL: it was not listed. */
prof_i_opencl_device *prof_i_opencl_device_find(prof_i_cl_device id);

/* The device of the queue, or the device that it is a part of. NULL with a text: no queue, or its
   device was not listed. */
prof_i_opencl_device *prof_i_opencl_queue_device(prof_i_cl_queue queue);

/* True if the queue is of OpenCL 1.2 or later. An older driver's table of functions is too short
   for functions of 1.2. */
bool prof_i_opencl_devices_has_wait_lists(prof_i_cl_queue queue);

/* Describes it, except for the size. */
void prof_i_opencl_device_describe(const prof_i_opencl_device *device, prof_backend_device *out);

#endif
