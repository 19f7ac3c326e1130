/* The devices of all platforms, in the loader's order: their place in this list is their number,
   prof_device.index. Listed once, when the back end is opened. */
#ifndef PROF_OPENCL_DEVICES_H
#define PROF_OPENCL_DEVICES_H

#include "clock.h"

typedef struct prof_i_opencl_device {
  prof_i_cl_device id;
  uint32_t version; /* 302: OpenCL 3.2 */
  prof_i_opencl_clock clock;
} prof_i_opencl_device;

/* How many platforms there are: 0 with words why. Touches no device. */
uint32_t prof_i_opencl_platforms_count(void);

/* NO_DEVICE. Once. */
int prof_i_opencl_devices_list(void);

/* By number; NULL: there are not so many. Any thread, as all below. */
prof_i_opencl_device *prof_i_opencl_device_at(uint32_t index);
uint32_t prof_i_opencl_device_number(const prof_i_opencl_device *device);

/* The listed one that this is, or is a part of; NULL: there is none. */
prof_i_opencl_device *prof_i_opencl_device_find(prof_i_cl_device id);

/* The one that the queue is of, or is of a part of; NULL with words: no queue, or its device is not
   listed. */
prof_i_opencl_device *prof_i_opencl_queue_device(prof_i_cl_queue queue);

/* Is the queue of OpenCL 1.2 or later? An older driver's table of functions ends before those that
   came then. */
bool prof_i_opencl_devices_has_wait_lists(prof_i_cl_queue queue);

/* What there is to know of it, but for its size. */
void prof_i_opencl_device_describe(const prof_i_opencl_device *device, prof_backend_device *out);

#endif
