/* A CUDA program's own way to its device, for what is checked and measured on one: the driver
   opened at run time, and a kernel of PTX text. On the emulated driver (tests/device/vendors) the
   same runs without a device. */
#ifndef TESTS_GPU_GPU_H
#define TESTS_GPU_GPU_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "busy.h"
#include "driver.h"

static struct {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration's */
#define GPU_MEMBER(name, arguments) int(*name) arguments;
  GPU_FUNCTIONS(GPU_MEMBER)
#undef GPU_MEMBER
  void *context, *busy; /* of device 0; the kernel */
  char name[96];
  int version;
  bool is_emulated;
} gpu;

/* Into the current context. */
static inline int gpu_load(void **kernel_out) {
  void *module;
  const int error = gpu.cuModuleLoadData(&module, gpu_busy_image);
  return error ? error : gpu.cuModuleGetFunction(kernel_out, module, "busy_for");
}

/* Why there is none; NULL: it can be used. */
static inline const char *gpu_begin(void) {
  static char why[160];
  int device, error;
  void *const library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) return dlerror();
#define GPU_FIND(name, arguments)              \
  *(void **)&gpu.name = dlsym(library, #name); \
  if (!gpu.name) return "the driver has no " #name "()";
  GPU_FUNCTIONS(GPU_FIND)
#undef GPU_FIND
#define GPU_TRY(call)                                        \
  if ((error = (call)) != 0) {                               \
    snprintf(why, sizeof why, "%s: error %d", #call, error); \
    return why;                                              \
  }
  GPU_TRY(gpu.cuInit(0))
  GPU_TRY(gpu.cuDriverGetVersion(&gpu.version))
  GPU_TRY(gpu.cuDeviceGet(&device, 0))
  GPU_TRY(gpu.cuDeviceGetName(gpu.name, sizeof gpu.name, device))
  GPU_TRY(gpu.cuDevicePrimaryCtxRetain(&gpu.context, device))
  GPU_TRY(gpu.cuCtxSetCurrent(gpu.context))
  GPU_TRY(gpu_load(&gpu.busy))
#undef GPU_TRY
  gpu.is_emulated = dlsym(library, "emulated_cuda_state") != NULL;
  return NULL;
}

/* What every program here prints first. */
static inline void gpu_describe(void) {
  printf("device: %s%s, CUDA %d.%d\n", gpu.name, gpu.is_emulated ? " (no device is behind it)" : "",
         gpu.version / 1000, gpu.version % 1000 / 10);
}

static inline int gpu_launch_of(void *kernel, void *stream, uint64_t ns) {
  void *parameters[] = {&ns};
  return gpu.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}

static inline int gpu_launch(void *stream, uint64_t ns) {
  return gpu_launch_of(gpu.busy, stream, ns);
}

static inline void *gpu_stream(void) {
  void *stream = NULL;
  if (gpu.cuStreamCreate(&stream, 1) != 0) abort(); /* CU_STREAM_NON_BLOCKING */
  return stream;
}

static inline uint64_t gpu_handle(const void *stream) { return (uint64_t)(uintptr_t)stream; }

#endif
