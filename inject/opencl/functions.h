/* Declarations of what the layer uses of OpenCL beyond src/opencl/api.h: constants, and places of
   functions in the table that a loader hands to layers. The test tests/device/test_opencl_api.cpp
   compares each line with the headers CL/cl.h and CL/cl_icd.h. */
#ifndef PROF_INJECT_OPENCL_FUNCTIONS_H
#define PROF_INJECT_OPENCL_FUNCTIONS_H

#include "../../src/opencl/api.h"

typedef struct prof_i_cl_context_object *prof_i_cl_context;
typedef struct prof_i_cl_kernel_object *prof_i_cl_kernel;
typedef struct prof_i_cl_program_object *prof_i_cl_program;
typedef struct prof_i_cl_memory_object *prof_i_cl_memory;
typedef void (*prof_i_cl_built)(prof_i_cl_program program, void *with);

/* X(place, name): called by the layer itself. */
#define PROF_I_CL_CALLED(X)    \
  X(12, clGetCommandQueueInfo) \
  X(39, clGetKernelInfo)       \
  X(42, clGetEventInfo)        \
  X(43, clRetainEvent)         \
  X(44, clReleaseEvent)        \
  X(45, clGetEventProfilingInfo)

/* X(place, name): hooked by the layer. */
#define PROF_I_CL_HOOKED(X)                  \
  X(9, clCreateCommandQueue)                 \
  X(30, clBuildProgram)                      \
  X(41, clWaitForEvents)                     \
  X(46, clFlush)                             \
  X(47, clFinish)                            \
  X(48, clEnqueueReadBuffer)                 \
  X(49, clEnqueueWriteBuffer)                \
  X(50, clEnqueueCopyBuffer)                 \
  X(51, clEnqueueReadImage)                  \
  X(52, clEnqueueWriteImage)                 \
  X(53, clEnqueueCopyImage)                  \
  X(54, clEnqueueCopyImageToBuffer)          \
  X(55, clEnqueueCopyBufferToImage)          \
  X(56, clEnqueueMapBuffer)                  \
  X(57, clEnqueueMapImage)                   \
  X(58, clEnqueueUnmapMemObject)             \
  X(59, clEnqueueNDRangeKernel)              \
  X(60, clEnqueueTask)                       \
  X(61, clEnqueueNativeKernel)               \
  X(86, clEnqueueReadBufferRect)             \
  X(87, clEnqueueWriteBufferRect)            \
  X(88, clEnqueueCopyBufferRect)             \
  X(98, clCompileProgram)                    \
  X(99, clLinkProgram)                       \
  X(102, clEnqueueFillBuffer)                \
  X(103, clEnqueueFillImage)                 \
  X(104, clEnqueueMigrateMemObjects)         \
  X(123, clCreateCommandQueueWithProperties) \
  X(129, clEnqueueSVMMemcpy)                 \
  X(130, clEnqueueSVMMemFill)                \
  X(131, clEnqueueSVMMap)                    \
  X(132, clEnqueueSVMUnmap)                  \
  X(139, clEnqueueSVMMigrateMem)

enum {
#define PROF_I_CL_PLACE(place, name) PROF_I_CL_PLACE_##name = (place),
  PROF_I_CL_CALLED(PROF_I_CL_PLACE) PROF_I_CL_HOOKED(PROF_I_CL_PLACE)
#undef PROF_I_CL_PLACE
      PROF_I_CL_PLACES = 140
};

/* X(name, value), without their CL_. */
#define PROF_I_CL_LAYER_CONSTANTS(X)        \
  X(LAYER_API_VERSION, 0x4240)              \
  X(LAYER_NAME, 0x4241)                     \
  X(LAYER_API_VERSION_100, 100)             \
  X(KERNEL_FUNCTION_NAME, 0x1190)           \
  X(QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 1) \
  X(QUEUE_ON_DEVICE, 4)                     \
  X(PROFILING_COMMAND_SUBMIT, 0x1281)       \
  X(MAP_READ, 1)                            \
  X(MAP_WRITE, 2)

enum {
#define PROF_I_CL_CONSTANT(name, value) PROF_I_CL_##name = (value),
  PROF_I_CL_LAYER_CONSTANTS(PROF_I_CL_CONSTANT)
#undef PROF_I_CL_CONSTANT
};

#endif
