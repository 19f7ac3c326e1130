/* What this engine needs of CUDA's driver and of AMD's HIP runtime, and of their compilers at run
   time. They have the same functions by two names, opened at run time, with no vendor's header.
   tests/device compares each line with the real headers. Handles are opaque pointers, and so is
   the device's memory. SPDX-License-Identifier: MIT */
#ifndef MINILM_GPU_LIBRARY_H
#define MINILM_GPU_LIBRARY_H

#include <stddef.h>

#include "../failure.h"

/* X(name, arguments, CUDA's symbol, HIP's). All return an error; 0 means no error. */
#define GPU_RUNTIME(X)                                                                            \
  X(init, (unsigned flags), cuInit, hipInit)                                                      \
  X(device_count, (int *count_out), cuDeviceGetCount, hipGetDeviceCount)                          \
  X(device_name, (char *name_out, int room, int device), cuDeviceGetName, hipDeviceGetName)       \
  X(allocate, (void **memory_out, size_t bytes), cuMemAlloc_v2, hipMalloc)                        \
  X(free, (void *memory), cuMemFree_v2, hipFree)                                                  \
  X(allocate_pinned, (void **memory_out, size_t bytes, unsigned flags), cuMemHostAlloc,           \
    hipHostMalloc)                                                                                \
  X(free_pinned, (void *memory), cuMemFreeHost, hipHostFree)                                      \
  X(copy_to_device, (void *to, const void *from, size_t bytes, void *stream),                     \
    cuMemcpyHtoDAsync_v2, hipMemcpyHtoDAsync)                                                     \
  X(copy_to_host, (void *to, void *from, size_t bytes, void *stream), cuMemcpyDtoHAsync_v2,       \
    hipMemcpyDtoHAsync)                                                                           \
  X(create_stream, (void **stream_out, unsigned flags), cuStreamCreate, hipStreamCreateWithFlags) \
  X(destroy_stream, (void *stream), cuStreamDestroy_v2, hipStreamDestroy)                         \
  X(wait_for_stream, (void *stream), cuStreamSynchronize, hipStreamSynchronize)                   \
  X(load_module, (void **module_out, const void *code), cuModuleLoadData, hipModuleLoadData)      \
  X(unload_module, (void *module), cuModuleUnload, hipModuleUnload)                               \
  X(find_kernel, (void **kernel_out, void *module, const char *name), cuModuleGetFunction,        \
    hipModuleGetFunction)                                                                         \
  X(launch,                                                                                       \
    (void *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,           \
     unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream, void **arguments,   \
     void **extra),                                                                               \
    cuLaunchKernel, hipModuleLaunchKernel)

/* code: CUDA's is PTX here; its engine puts CUBIN's in its place where that serves the device. */
#define GPU_COMPILER(X)                                                                          \
  X(create,                                                                                      \
    (void **program_out, const char *text, const char *name, int header_count,                   \
     const char *const *headers, const char *const *header_names),                               \
    nvrtcCreateProgram, hiprtcCreateProgram)                                                     \
  X(destroy, (void **program), nvrtcDestroyProgram, hiprtcDestroyProgram)                        \
  X(compile, (void *program, int option_count, const char *const *options), nvrtcCompileProgram, \
    hiprtcCompileProgram)                                                                        \
  X(log_bytes, (void *program, size_t *bytes_out), nvrtcGetProgramLogSize,                       \
    hiprtcGetProgramLogSize)                                                                     \
  X(log, (void *program, char *log_out), nvrtcGetProgramLog, hiprtcGetProgramLog)                \
  X(code_bytes, (void *program, size_t *bytes_out), nvrtcGetPTXSize, hiprtcGetCodeSize)          \
  X(code, (void *program, char *code_out), nvrtcGetPTX, hiprtcGetCode)

/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration's */
#define GPU_MEMBER(name, arguments, cuda, hip) int(*name) arguments;
typedef struct gpu_runtime {
  GPU_RUNTIME(GPU_MEMBER)
} gpu_runtime;

typedef struct gpu_compiler {
  GPU_COMPILER(GPU_MEMBER)
} gpu_compiler;
#undef GPU_MEMBER

/* Opens the first of these that is there, for good: drivers do not survive being closed. NULL: none
   is; dlerror() tells of the last. */
void *gpu_open_first(const char *const *names, const char **name_out);

/* A function, and the place of its pointer in a struct of them. */
typedef struct gpu_symbol {
  const char *name;
  size_t place;
} gpu_symbol;

/* Refused: the library has not all of them. */
int gpu_find(void *library, const char *library_name, const gpu_symbol *symbols, size_t count,
             void *functions_out, failure *why);

#endif
