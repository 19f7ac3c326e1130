/* A program that uses HIP, on the emulated runtime: its own way to it. For tests that include
   cmocka.h before. */
#ifndef TESTS_DEVICE_HIP_PROGRAM_H
#define TESTS_DEVICE_HIP_PROGRAM_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "vendors/hip.h"

#define FUNCTIONS(X)                                                                            \
  X(hipGetLastError, (void))                                                                    \
  X(hipSetDevice, (int device))                                                                 \
  X(hipGetDevice, (int *device))                                                                \
  X(hipStreamCreate, (void **out))                                                              \
  X(hipStreamDestroy, (void *stream))                                                           \
  X(hipStreamSynchronize, (void *stream))                                                       \
  X(hipStreamBeginCapture, (void *stream, int mode))                                            \
  X(hipStreamEndCapture, (void *stream, void **graph))                                          \
  X(hipModuleLaunchKernel, (void *function, unsigned, unsigned, unsigned, unsigned, unsigned,   \
                            unsigned, unsigned, void *stream, void **parameters, void **extra)) \
  X(hipMemcpyHtoDAsync, (void *to, const void *from, size_t bytes, void *stream))               \
  X(hipMemcpyDtoHAsync, (void *to, const void *from, size_t bytes, void *stream))
static struct {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration's */
#define MEMBER(name, arguments) int(*name) arguments;
  FUNCTIONS(MEMBER)
  emulated_hip *(*emulated_hip_state)(void);
  void (*emulated_hip_work)(void *stream, uint64_t ns);
  void *(*emulated_hip_kernel)(const char *name, uint64_t ns);
} hip;
static emulated_hip *runtime;

static inline void load(const char *file) {
  char path[512];
  snprintf(path, sizeof path, "%s/vendors/%s", getenv("PROF_TEST_PLUGIN_DIR"), file);
  void *const library = dlopen(path, RTLD_NOW);
  if (!library) fail_msg("%s", dlerror());
#define FIND(name, arguments) *(void **)&hip.name = dlsym(library, #name);
  FUNCTIONS(FIND)
  FIND(emulated_hip_state, ())
  FIND(emulated_hip_work, ())
  FIND(emulated_hip_kernel, ())
  runtime = hip.emulated_hip_state();
}

static inline void *make_stream(int on) {
  void *stream;
  assert_int_equal(hip.hipSetDevice(on), 0);
  assert_int_equal(hip.hipStreamCreate(&stream), 0);
  return stream;
}

static inline uint64_t handle_of(void *stream) { return (uint64_t)(uintptr_t)stream; }

#endif
