/* OpenCL's table: see <prof/backend.h>. The stream is the cl_command_queue. */
#ifndef PROF_OPENCL_BACKEND_H
#define PROF_OPENCL_BACKEND_H

#include <prof/backend.h>

extern const prof_backend prof_i_opencl_backend;

#endif
