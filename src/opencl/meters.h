/* What devices say of their memory. Of those with cl_amd_device_attribute_query: nobody else tells
   what is free. */
#ifndef PROF_OPENCL_METERS_H
#define PROF_OPENCL_METERS_H

#include <prof/backend.h>

/* As the back end's table has them; of the devices that are listed. NO_DEVICE: there are not so
   many. */
int prof_i_opencl_meters_metric(uint32_t number, prof_backend_metric *out);
int prof_i_opencl_meters_sample(const prof_backend_metric *metrics, uint32_t count,
                                int64_t *values_out, uint64_t *known_out);

#endif
