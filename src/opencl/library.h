/* The OpenCL loader's library and its errors. Opened when a caller asks for it. */
#ifndef PROF_OPENCL_LIBRARY_H
#define PROF_OPENCL_LIBRARY_H

#include "../device/vendor.h"
#include "api.h"

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

#endif
