/* A CUDA program's own way to its device, for what is checked and measured on one: the driver opened at run time, one kernel that is busy for so many ns by the device's clock, and lines that tools/gpu-check gathers. On the emulated driver (tests/device/vendors) the
   same runs without a device. */
#ifndef TESTS_GPU_GPU_H
#define TESTS_GPU_GPU_H

#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define GPU_FUNCTIONS(X)                                                                                                                                                             \
  X(cuInit, (unsigned flags)) X(cuDriverGetVersion, (int *out)) X(cuDeviceGet, (int *out, int ordinal)) X(cuDeviceGetName, (char *out, int room, int device))                         \
  X(cuDevicePrimaryCtxRetain, (void **out, int device)) X(cuCtxSetCurrent, (void *context)) X(cuCtxCreate_v2, (void **out, unsigned flags, int device)) X(cuCtxDestroy_v2, (void *context)) \
  X(cuModuleLoadData, (void **out, const void *image)) X(cuModuleGetFunction, (void **out, void *module, const char *name))                                                           \
  X(cuStreamCreate, (void **out, unsigned flags)) X(cuStreamSynchronize, (void *stream)) X(cuStreamDestroy_v2, (void *stream))                                                        \
  X(cuLaunchKernel, (void *function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *stream, void **parameters, void **extra))                            \
  X(cuMemAlloc_v2, (unsigned long long *out, size_t bytes)) X(cuMemFree_v2, (unsigned long long at))                                                                                  \
  X(cuMemcpyHtoDAsync_v2, (unsigned long long to, const void *from, size_t bytes, void *stream)) X(cuMemcpyDtoHAsync_v2, (void *to, unsigned long long from, size_t bytes, void *stream)) \
  X(cuMemsetD8Async, (unsigned long long to, unsigned char value, size_t bytes, void *stream))                                                                                        \
  X(cuEventCreate, (void **out, unsigned flags)) X(cuEventRecord, (void *event, void *stream)) X(cuEventElapsedTime, (float *ms, void *a, void *b)) X(cuEventSynchronize, (void *event))  \
  X(cuEventDestroy_v2, (void *event))                                                                                                                                                 \
  X(cuStreamBeginCapture_v2, (void *stream, int mode)) X(cuStreamEndCapture, (void *stream, void **graph)) X(cuGraphInstantiateWithFlags, (void **out, void *graph, unsigned long long flags)) \
  X(cuGraphLaunch, (void *graph, void *stream))

static struct {
#define GPU_MEMBER(name, arguments) int(*name) arguments; /* NOLINT(bugprone-macro-parentheses): a declaration's */
  GPU_FUNCTIONS(GPU_MEMBER)
#undef GPU_MEMBER
  void *context, *busy; /* of device 0; the kernel */
  char name[96];
  int version;
} gpu;

/* Why there is none; NULL: it can be used. */
static inline const char *gpu_begin(void) {
  /* busy_for(ns): one thread looks at the device's clock until so much has passed. */
  static const char image[] =
      ".version 6.4\n.target sm_52\n.address_size 64\n.visible .entry busy_for(.param .u64 busy_for_0) {\n .reg .pred %p<2>;\n .reg .b64 %rd<6>;\n ld.param.u64 %rd1, [busy_for_0];\n mov.u64 %rd2, %globaltimer;\n"
      "again:\n mov.u64 %rd3, %globaltimer;\n sub.s64 %rd4, %rd3, %rd2;\n setp.lt.u64 %p1, %rd4, %rd1;\n @%p1 bra again;\n ret;\n}\n";
  static char why[160];
  void *module;
  int device, error;
  void *const library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) return dlerror();
#define GPU_FIND(name, arguments)                     \
  *(void **)&gpu.name = dlsym(library, #name);        \
  if (!gpu.name) return "the driver has no " #name "()";
  GPU_FUNCTIONS(GPU_FIND)
#undef GPU_FIND
#define GPU_TRY(call)                                                   \
  if ((error = gpu.call) != 0) {                                        \
    snprintf(why, sizeof why, "%s: error %d", #call, error);            \
    return why;                                                         \
  }
  GPU_TRY(cuInit(0))
  GPU_TRY(cuDriverGetVersion(&gpu.version))
  GPU_TRY(cuDeviceGet(&device, 0))
  GPU_TRY(cuDeviceGetName(gpu.name, sizeof gpu.name, device))
  GPU_TRY(cuDevicePrimaryCtxRetain(&gpu.context, device))
  GPU_TRY(cuCtxSetCurrent(gpu.context))
  GPU_TRY(cuModuleLoadData(&module, image))
  GPU_TRY(cuModuleGetFunction(&gpu.busy, module, "busy_for"))
#undef GPU_TRY
  return NULL;
}

static inline int gpu_launch(void *stream, uint64_t ns) {
  void *parameters[] = {&ns};
  return gpu.cuLaunchKernel(gpu.busy, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}

static inline void *gpu_stream(void) {
  void *stream = NULL;
  if (gpu.cuStreamCreate(&stream, 1) != 0) abort(); /* CU_STREAM_NON_BLOCKING */
  return stream;
}

static inline double gpu_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static inline int gpu_by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Of values that are put in order. share: 0.5 is the median. */
static inline double gpu_quantile(double *values, size_t count, double share) {
  qsort(values, count, sizeof *values, gpu_by_size);
  return count ? values[(size_t)((double)(count - 1) * share + 0.5)] : 0;
}

#endif
