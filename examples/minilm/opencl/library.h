/* OpenCL as this runtime uses it, opened at run time: a machine without it can run everything else.
   The names are <CL/cl.h>'s. SPDX-License-Identifier: MIT */
#ifndef MINILM_OPENCL_LIBRARY_H
#define MINILM_OPENCL_LIBRARY_H

#define CL_TARGET_OPENCL_VERSION 200
#include <CL/cl.h>

#include "../failure.h"

#define OPENCL_FUNCTIONS(X)             \
  X(clGetPlatformIDs)                   \
  X(clGetDeviceIDs)                     \
  X(clGetDeviceInfo)                    \
  X(clCreateContext)                    \
  X(clReleaseContext)                   \
  X(clSVMAlloc)                         \
  X(clSVMFree)                          \
  X(clCreateProgramWithSource)          \
  X(clBuildProgram)                     \
  X(clGetProgramBuildInfo)              \
  X(clReleaseProgram)                   \
  X(clCreateKernel)                     \
  X(clReleaseKernel)                    \
  X(clSetKernelArg)                     \
  X(clSetKernelArgSVMPointer)           \
  X(clCreateCommandQueueWithProperties) \
  X(clReleaseCommandQueue)              \
  X(clEnqueueNDRangeKernel)             \
  X(clEnqueueSVMMemcpy)                 \
  X(clFlush)                            \
  X(clFinish)

typedef struct opencl {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a name cannot have any */
#define OPENCL_MEMBER(name) __typeof__(&(name)) name;
  OPENCL_FUNCTIONS(OPENCL_MEMBER)
#undef OPENCL_MEMBER
} opencl;

/* Opens the library for good: drivers do not survive being closed. Refused: it is missing or too
   old. */
int opencl_open(opencl *cl_out, failure *why);

/* -1, and why: what was called, and the error. */
int opencl_refuse(failure *why, const char *what, cl_int error);

#endif
