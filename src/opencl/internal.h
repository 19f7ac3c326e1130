/* OpenCL's back end, for the list of those that are built in, and its meters. */
#ifndef PROF_OPENCL_INTERNAL_H
#define PROF_OPENCL_INTERNAL_H

#include <prof/backend.h>

/* backend.c: scopes by markers on the program's queues. */
extern const prof_backend prof_i_opencl_backend;

/* meters.c: memory in use, of listed devices that have cl_amd_device_attribute_query: no other
   query says what is free. As prof_backend's. NO_DEVICE: there are not so many meters. */
int prof_i_opencl_meters_metric(uint32_t number, prof_backend_metric *out);
int prof_i_opencl_meters_sample(const prof_backend_metric *metrics, uint32_t count,
                                int64_t *values_out, uint64_t *known_out);

#endif
