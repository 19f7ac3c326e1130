/* What a small HIP program uses beside what src/hip/api.h has, declared here once: hip_on_cuda.c
   defines both lists, hip_checks.c calls them. */
#ifndef TESTS_GPU_HIP_H
#define TESTS_GPU_HIP_H

#include <stddef.h>
#include <stdint.h>

#include "../../src/hip/api.h"

/* X(name, arguments): all return a hipError_t. */
#define HIP_PROGRAM_FUNCTIONS(X)                                                                  \
  X(hipModuleLoadData, (void **module_out, const void *image))                                    \
  X(hipModuleGetFunction, (void **function_out, void *module, const char *name))                  \
  X(hipModuleLaunchKernel,                                                                        \
    (void *function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z, uint32_t block_x,         \
     uint32_t block_y, uint32_t block_z, uint32_t shared_bytes, prof_i_hip_stream stream,         \
     void **parameters, void **extra))                                                            \
  X(hipStreamCreate, (prof_i_hip_stream * stream_out))                                            \
  X(hipStreamDestroy, (prof_i_hip_stream stream))                                                 \
  X(hipStreamSynchronize, (prof_i_hip_stream stream))                                             \
  X(hipStreamBeginCapture, (prof_i_hip_stream stream, int32_t mode))                              \
  X(hipStreamEndCapture, (prof_i_hip_stream stream, void **graph_out))                            \
  X(hipGraphInstantiateWithFlags, (void **executable_out, void *graph, unsigned long long flags)) \
  X(hipGraphLaunch, (void *executable, prof_i_hip_stream stream))                                 \
  X(hipEventSynchronize, (prof_i_hip_event event))                                                \
  X(hipMemGetInfo, (size_t * free_out, size_t * all_out))                                         \
  X(hipMalloc, (void **at_out, size_t bytes))                                                     \
  X(hipFree, (void *at))                                                                          \
  X(hipMemcpyHtoDAsync, (void *to, const void *from, size_t bytes, prof_i_hip_stream stream))     \
  X(hipMemcpyDtoHAsync, (void *to, void *from, size_t bytes, prof_i_hip_stream stream))           \
  X(hipMemsetD8Async, (void *to, unsigned char value, size_t bytes, prof_i_hip_stream stream))

#endif
