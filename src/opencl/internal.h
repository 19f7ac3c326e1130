/* OpenCL's back end, for the list of those that are built in, and its meters. */
#ifndef PROF_OPENCL_INTERNAL_H
#define PROF_OPENCL_INTERNAL_H

#include <prof/backend.h>

#include "../device/vendor.h"
#include "api.h"
#include "clock.h"

/* backend.c: scopes by markers on the program's queues. */
extern const prof_backend prof_i_opencl_backend;

/* meters.c: memory in use, of listed devices that have cl_amd_device_attribute_query: no other
   query says what is free. As prof_backend's. NO_DEVICE: there are not so many meters. */
int prof_i_opencl_meters_metric(uint32_t number, prof_backend_metric *out);
int prof_i_opencl_meters_sample(const prof_backend_metric *metrics, uint32_t count,
                                int64_t *values_out, uint64_t *known_out);

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
