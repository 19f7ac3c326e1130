/* A program that uses CUDA, on the emulated driver: its own way to it. For tests that include
   cmocka.h before. */
#ifndef TESTS_DEVICE_CUDA_PROGRAM_H
#define TESTS_DEVICE_CUDA_PROGRAM_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "vendors/cuda.h"

#define FUNCTIONS(X)                                                                             \
  X(cuInit, (unsigned flags))                                                                    \
  X(cuCtxCreate_v2, (void **out, unsigned flags, int device))                                    \
  X(cuCtxDestroy_v2, (void *context))                                                            \
  X(cuCtxGetCurrent, (void **out))                                                               \
  X(cuCtxPushCurrent_v2, (void *context))                                                        \
  X(cuCtxPopCurrent_v2, (void **out))                                                            \
  X(cuStreamCreate, (void **out, unsigned flags))                                                \
  X(cuStreamDestroy_v2, (void *stream))                                                          \
  X(cuStreamSynchronize, (void *stream))                                                         \
  X(cuStreamBeginCapture_v2, (void *stream, int mode))                                           \
  X(cuStreamEndCapture, (void *stream, void **graph))                                            \
  X(cuLaunchKernel, (void *function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
                     unsigned, void *stream, void **parameters, void **extra))                   \
  X(cuMemcpyHtoDAsync_v2, (unsigned long long to, const void *from, size_t bytes, void *stream)) \
  X(cuMemcpyDtoHAsync_v2, (void *to, unsigned long long from, size_t bytes, void *stream))       \
  X(cuMemsetD8Async, (unsigned long long to, unsigned char value, size_t bytes, void *stream))   \
  X(cuGraphLaunch, (void *graph, void *stream))                                                  \
  X(cuMemAlloc_v2, (unsigned long long *out, size_t bytes))                                      \
  X(cuMemFree_v2, (unsigned long long at))                                                       \
  X(cuMemAllocManaged, (unsigned long long *out, size_t bytes, unsigned flags))                  \
  X(cuMemAllocHost_v2, (void **out, size_t bytes))                                               \
  X(cuMemFreeHost, (void *at))                                                                   \
  X(cuMemAllocAsync, (unsigned long long *out, size_t bytes, void *stream))                      \
  X(cuMemFreeAsync, (unsigned long long at, void *stream))                                       \
  X(emulated_cuda_runtime_launch, (void *kernel, void *stream))                                  \
  X(cuDevicePrimaryCtxRetain, (void **out, int device))                                          \
  X(cuDevicePrimaryCtxReset_v2, (int device))                                                    \
  X(cuCtxSetCurrent, (void *context))
static struct {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration's */
#define MEMBER(name, arguments) int(*name) arguments;
  FUNCTIONS(MEMBER)
  emulated_cuda *(*emulated_cuda_state)(void);
  void (*emulated_cuda_work)(void *stream, uint64_t ns);
  void *(*emulated_cuda_kernel)(const char *name, uint64_t ns);
  void *(*emulated_cuda_graph)(void *kernel, uint32_t count);
} cu;
static emulated_cuda *driver;

static inline void load_from(const char *path) {
  void *const library = dlopen(path, RTLD_NOW);
  if (!library) fail_msg("%s", dlerror());
#define FIND(name, arguments) *(void **)&cu.name = dlsym(library, #name);
  FUNCTIONS(FIND)
  FIND(emulated_cuda_state, ())
  FIND(emulated_cuda_work, ())
  FIND(emulated_cuda_kernel, ())
  FIND(emulated_cuda_graph, ())
  driver = cu.emulated_cuda_state();
}

static inline void load(void) {
  char path[512];
  snprintf(path, sizeof path, "%s/vendors/libcuda.so.1", getenv("PROF_TEST_PLUGIN_DIR"));
  load_from(path);
}

/* Loaded and begun by the program, with a context of that device, which is current. */
static inline void *begin_on(int index) {
  void *context;
  if (!driver) load();
  if (driver->init_count == 0) assert_int_equal(cu.cuInit(0), 0);
  assert_int_equal(cu.cuCtxCreate_v2(&context, 0, index), 0);
  return context;
}

static inline void *make_stream(void) {
  void *stream;
  assert_int_equal(cu.cuStreamCreate(&stream, 0), 0);
  return stream;
}

static inline uint64_t handle_of(void *stream) { return (uint64_t)(uintptr_t)stream; }

#endif
