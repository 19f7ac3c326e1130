/* What OpenCL's errors say, in words. */
#ifndef PROF_OPENCL_ERROR_H
#define PROF_OPENCL_ERROR_H

#include <prof/backend.h>

#include "../device/backend_error.h"

/* "clEnqueueMarker: CL_OUT_OF_RESOURCES (-5)", and the result that fits. */
int prof_i_opencl_fail_call(const char *function, int32_t error);

#endif
