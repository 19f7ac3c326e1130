/* Finds out which clock an OpenCL device's times are of. Many drivers use a clock that the host can
   read as well, but none says which. A marker shows it: its QUEUED lies between two readings of
   that clock. Markers with such readings are samples. */
#ifndef PROF_OPENCL_CLOCK_H
#define PROF_OPENCL_CLOCK_H

#include <prof/backend.h>
#include <pthread.h>
#include <stdbool.h>

#include "api.h"

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

#endif
