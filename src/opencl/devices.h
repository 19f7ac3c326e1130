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
