/* Queues of the first OpenCL device there is, with CL_QUEUE_PROFILING_ENABLE; work is a kernel that
   counts. */
#define _GNU_SOURCE
#include "../../../src/opencl/internal.h"
#include "stage.h"

#if !__has_include(<CL/cl.h>)

static const char *why_not(void) { return "<CL/cl.h> is missing: apt-get install opencl-headers"; }
static const conformance_stage stage = {
    "opencl", NULL, {PROF_DEVICE_OPENCL, 0}, why_not, NULL, NULL, NULL, NULL, 0, 0, NULL};

#else

#define CL_TARGET_OPENCL_VERSION 200
#include <CL/cl.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#if defined(__SANITIZE_THREAD__)
#define WITH_TSAN 1
#else
#define WITH_TSAN 0
#endif

#define FUNCTIONS(X)                    \
  X(clGetPlatformIDs)                   \
  X(clGetDeviceIDs)                     \
  X(clCreateContext)                    \
  X(clCreateCommandQueueWithProperties) \
  X(clReleaseCommandQueue)              \
  X(clCreateProgramWithSource)          \
  X(clBuildProgram)                     \
  X(clCreateKernel)                     \
  X(clSetKernelArg)                     \
  X(clCreateBuffer)                     \
  X(clEnqueueNDRangeKernel)             \
  X(clFlush)                            \
  X(clFinish)
static struct {
#define MEMBER(name) __typeof__(&(name)) name;
  FUNCTIONS(MEMBER)
} cl;

static cl_device_id device_id;
static cl_context context;
static cl_kernel kernel;
static cl_mem out;
/* the kernel's arguments are one thread's at a time */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t rounds_a_us;

/* The machine's own drivers, and kernels built once: the first call sets it for later processes. */
static void prepare_environment(void) {
  char folder[512];
  const char *const build = getenv("PROF_TEST_BUILD_DIR");
  unsetenv("OCL_ICD_VENDORS"); /* tests/CMakeLists.txt: the other tests do without them */
  snprintf(folder, sizeof folder, "%s/pocl-cache", build ? build : "/tmp");
  mkdir(folder, 0700);
  setenv("POCL_CACHE_DIR", folder, 0);
}

static const char *why_not(void) {
  cl_platform_id platform;
  prepare_environment();
  void *const library = dlopen("libOpenCL.so.1", RTLD_NOW);
  if (WITH_TSAN)
    return "ThreadSanitizer does not see how an OpenCL driver's threads wait for each other";
  if (!library)
    return "libOpenCL.so.1 is missing: apt-get install ocl-icd-libopencl1 pocl-opencl-icd";
#define FIND(name)                            \
  *(void **)&cl.name = dlsym(library, #name); \
  if (!cl.name) return "libOpenCL.so.1 is older than OpenCL 2.0";
  FUNCTIONS(FIND)
  if (cl.clGetPlatformIDs(1, &platform, NULL) == CL_SUCCESS &&
      cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device_id, NULL) == CL_SUCCESS)
    return NULL;
  return "there is no OpenCL device: apt-get install pocl-opencl-icd";
}

static void put(cl_command_queue queue, cl_uint rounds) {
  const size_t one = 1;
  pthread_mutex_lock(&lock);
  cl.clSetKernelArg(kernel, 1, sizeof rounds, &rounds);
  if (cl.clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, &one, 0, NULL, NULL) != CL_SUCCESS)
    abort();
  pthread_mutex_unlock(&lock);
  cl.clFlush(queue);
}

static uint64_t now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

/* How many rounds take a us at the most: the fastest of many short runs, twice that. Short, so that
   one of them is whole beside busy neighbours. */
static void measure(cl_command_queue queue) {
  enum { ROUNDS = 1 << 17, RUNS = 60 };
  uint64_t best = UINT64_MAX;
  for (int i = 0; i < RUNS; i++) {
    const uint64_t begun = now_us();
    put(queue, ROUNDS);
    cl.clFinish(queue);
    if (now_us() - begun < best) best = now_us() - begun;
  }
  rounds_a_us = 2 * ROUNDS / (best ? best : 1) + 1;
}

static void prepare(void) {
  const char *source =
      "kernel void spin(global uint *out, uint rounds) { uint x = rounds; for (uint i = 0; i < "
      "rounds; i++) x = x * 1664525u + (x >> 7); *out = x; }";
  cl_int error;
  context = cl.clCreateContext(NULL, 1, &device_id, NULL, NULL, &error);
  const cl_program program =
      context ? cl.clCreateProgramWithSource(context, 1, &source, NULL, &error) : NULL;
  if (!program || cl.clBuildProgram(program, 1, &device_id, "", NULL, NULL) != CL_SUCCESS) abort();
  kernel = cl.clCreateKernel(program, "spin", &error);
  out = cl.clCreateBuffer(context, CL_MEM_READ_WRITE, 64, NULL, &error);
  cl.clSetKernelArg(kernel, 0, sizeof out, &out);
}

static uint64_t create(void) {
  static const cl_queue_properties profiling[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE,
                                                  0};
  cl_int error;
  if (!context) prepare();
  const cl_command_queue queue =
      cl.clCreateCommandQueueWithProperties(context, device_id, profiling, &error);
  if (!queue) abort();
  if (!rounds_a_us) measure(queue);
  return (uintptr_t)queue;
}

static cl_command_queue queue_of(uint64_t stream) { return (cl_command_queue)(uintptr_t)stream; }
static void destroy(uint64_t stream) { cl.clReleaseCommandQueue(queue_of(stream)); }
static void work(uint64_t stream, uint64_t least_us) {
  put(queue_of(stream), (cl_uint)(rounds_a_us * least_us));
}
static void wait_for(uint64_t stream) { cl.clFinish(queue_of(stream)); }

static const conformance_stage stage = {"opencl",
                                        &prof_i_opencl_backend,
                                        {PROF_DEVICE_OPENCL, 0},
                                        why_not,
                                        create,
                                        destroy,
                                        work,
                                        wait_for,
                                        0,
                                        0,
                                        NULL};

#endif

const conformance_stage *conformance_stage_get(void) { return &stage; }
