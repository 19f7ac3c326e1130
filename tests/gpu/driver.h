/* What tests/gpu and bench/gpu call of CUDA's driver, declared here, so that a C compiler builds
   them. tests/device/headers/gpu.cpp compares each line with <cuda.h>. Handles are void pointers;
   all return a CUresult. */
#ifndef TESTS_GPU_DRIVER_H
#define TESTS_GPU_DRIVER_H

#include <stddef.h>

#define GPU_FUNCTIONS(X)                                                                          \
  X(cuInit, (unsigned flags))                                                                     \
  X(cuDriverGetVersion, (int *out))                                                               \
  X(cuDeviceGetCount, (int *out))                                                                 \
  X(cuDeviceGet, (int *out, int ordinal))                                                         \
  X(cuDeviceGetName, (char *out, int room, int device))                                           \
  X(cuDeviceTotalMem_v2, (size_t * out, int device))                                              \
  X(cuDeviceGetUuid_v2, (void *out, int device))                                                  \
  X(cuDeviceGetAttribute, (int *out, int what, int device))                                       \
  X(cuDevicePrimaryCtxRetain, (void **out, int device))                                           \
  X(cuCtxCreate_v2, (void **out, unsigned flags, int device))                                     \
  X(cuCtxDestroy_v2, (void *context))                                                             \
  X(cuCtxGetCurrent, (void **out))                                                                \
  X(cuCtxSetCurrent, (void *context))                                                             \
  X(cuModuleLoadData, (void **out, const void *image))                                            \
  X(cuModuleGetFunction, (void **out, void *module, const char *name))                            \
  X(cuLaunchKernel, (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,           \
                     unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes, \
                     void *stream, void **parameters, void **extra))                              \
  X(cuMemGetInfo_v2, (size_t * free_out, size_t * all_out))                                       \
  X(cuMemAlloc_v2, (unsigned long long *out, size_t bytes))                                       \
  X(cuMemFree_v2, (unsigned long long at))                                                        \
  X(cuMemcpyHtoDAsync_v2, (unsigned long long to, const void *from, size_t bytes, void *stream))  \
  X(cuMemcpyDtoHAsync_v2, (void *to, unsigned long long from, size_t bytes, void *stream))        \
  X(cuMemcpyDtoDAsync_v2,                                                                         \
    (unsigned long long to, unsigned long long from, size_t bytes, void *stream))                 \
  X(cuMemsetD8Async, (unsigned long long to, unsigned char value, size_t bytes, void *stream))    \
  X(cuStreamCreate, (void **out, unsigned flags))                                                 \
  X(cuStreamDestroy_v2, (void *stream))                                                           \
  X(cuStreamSynchronize, (void *stream))                                                          \
  X(cuStreamGetCtx, (void *stream, void **out))                                                   \
  X(cuStreamIsCapturing, (void *stream, int *out))                                                \
  X(cuStreamBeginCapture_v2, (void *stream, int mode))                                            \
  X(cuStreamEndCapture, (void *stream, void **graph_out))                                         \
  X(cuThreadExchangeStreamCaptureMode, (int *mode))                                               \
  X(cuGraphInstantiateWithFlags, (void **out, void *graph, unsigned long long flags))             \
  X(cuGraphLaunch, (void *graph, void *stream))                                                   \
  X(cuEventCreate, (void **out, unsigned flags))                                                  \
  X(cuEventRecord, (void *event, void *stream))                                                   \
  X(cuEventQuery, (void *event))                                                                  \
  X(cuEventSynchronize, (void *event))                                                            \
  X(cuEventElapsedTime, (float *ms_out, void *a, void *b))                                        \
  X(cuEventDestroy_v2, (void *event))                                                             \
  X(cuGetErrorName, (int error, const char **out))                                                \
  X(cuGetErrorString, (int error, const char **out))

#endif
