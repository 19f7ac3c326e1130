/* OpenCL as a program has it that opens it at run time: its functions, the first device, a context.
   For tests that want a real one, whichever the machine has: PoCL where there is no other. */
#ifndef TESTS_DEVICE_OPENCL_H
#define TESTS_DEVICE_OPENCL_H

#define CL_TARGET_OPENCL_VERSION 200
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* What a driver keeps to the end of the process is not ours to find. */
const char *__lsan_default_suppressions(void); /* NOLINT: the name is the sanitizer's */
const char *__lsan_default_suppressions(void) {
  return "leak:libpocl\nleak:libOpenCL\nleak:libLLVM\nleak:libclang\nleak:libhwloc\n";
}

#define FUNCTIONS(X)                    \
  X(clGetPlatformIDs)                   \
  X(clGetPlatformInfo)                  \
  X(clGetDeviceIDs)                     \
  X(clCreateContext)                    \
  X(clReleaseContext)                   \
  X(clCreateCommandQueueWithProperties) \
  X(clCreateCommandQueue)               \
  X(clReleaseCommandQueue)              \
  X(clGetCommandQueueInfo)              \
  X(clCreateProgramWithSource)          \
  X(clBuildProgram)                     \
  X(clReleaseProgram)                   \
  X(clCreateKernel)                     \
  X(clReleaseKernel)                    \
  X(clSetKernelArg)                     \
  X(clCreateBuffer)                     \
  X(clReleaseMemObject)                 \
  X(clEnqueueNDRangeKernel)             \
  X(clEnqueueMarkerWithWaitList)        \
  X(clFlush)                            \
  X(clFinish)                           \
  X(clEnqueueWriteBuffer)               \
  X(clEnqueueReadBuffer)                \
  X(clEnqueueCopyBuffer)                \
  X(clEnqueueFillBuffer)                \
  X(clEnqueueMapBuffer)                 \
  X(clEnqueueUnmapMemObject)            \
  X(clWaitForEvents)                    \
  X(clGetEventInfo)                     \
  X(clCreateUserEvent)                  \
  X(clSetUserEventStatus)               \
  X(clReleaseEvent)                     \
  X(clGetEventProfilingInfo)            \
  X(clCreateSubDevices)                 \
  X(clReleaseDevice)

static struct {
#define MEMBER(name) __typeof__(&(name)) name;
  FUNCTIONS(MEMBER)
} cl;

static cl_device_id device_id;
static cl_context context;
static cl_program program;
static bool is_pocl;

/* NULL: all is there; else what is not. */
static inline const char *find_opencl(void) {
  char text[256] = "";
  cl_platform_id platform = NULL;
  void *const library = dlopen("libOpenCL.so.1", RTLD_NOW);
  if (!library)
    return "libOpenCL.so.1 is missing: apt-get install ocl-icd-libopencl1 pocl-opencl-icd";
#define FIND(name)                            \
  *(void **)&cl.name = dlsym(library, #name); \
  if (!cl.name) return "libOpenCL.so.1 is older than OpenCL 2.0";
  FUNCTIONS(FIND)
  if (cl.clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS ||
      cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device_id, NULL) != CL_SUCCESS)
    return "there is no OpenCL device: apt-get install pocl-opencl-icd";
  cl.clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof text, text, NULL);
  is_pocl = strstr(text, "Portable Computing Language") != NULL;
  return NULL;
}

/* The machine's own drivers, and kernels built once. */
static inline void prepare_opencl(void) {
  char folder[512];
  const char *const build = getenv("PROF_TEST_BUILD_DIR");
  unsetenv("OCL_ICD_VENDORS"); /* tests/CMakeLists.txt: the other tests do without them */
  snprintf(folder, sizeof folder, "%s/pocl-cache", build ? build : "/tmp");
  mkdir(folder, 0700);
  setenv("POCL_CACHE_DIR", folder, 0);
}

#endif
