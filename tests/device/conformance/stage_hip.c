/* HIP on an emulated runtime (tests/device/vendors): no device is behind it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "../../../src/hip/internal.h"
#include "../vendors/hip.h"
#include "stage.h"

static struct {
  int (*make_stream)(void **out);
  int (*end_stream)(void *stream);
  int (*finish)(void *stream);
  void (*work)(void *stream, uint64_t ns);
} hip;

static const char *why_not(void) {
  void *const library = dlopen(PROF_TEST_LIBAMDHIP64, RTLD_NOW);
  if (!library) return dlerror();
  setenv("PROF_BACKEND_ROCPROFILER", PROF_TEST_LIBROCPROFILER, 1);
#define FIND(member, symbol) *(void **)&hip.member = dlsym(library, symbol)
  FIND(make_stream, "hipStreamCreate");
  FIND(end_stream, "hipStreamDestroy");
  FIND(finish, "hipStreamSynchronize");
  FIND(work, "emulated_hip_work");
  return NULL;
}

static uint64_t create(void) {
  void *stream = NULL;
  hip.make_stream(&stream);
  return (uint64_t)(uintptr_t)stream;
}
static void destroy(uint64_t stream) { hip.end_stream((void *)(uintptr_t)stream); }
static void work(uint64_t stream, uint64_t least_us) {
  hip.work((void *)(uintptr_t)stream, least_us * 1000);
}
static void wait_for(uint64_t stream) { hip.finish((void *)(uintptr_t)stream); }

static const conformance_stage stage = {"hip (emulated runtime)",
                                        &prof_i_hip_backend,
                                        {PROF_DEVICE_ROCM, 0},
                                        why_not,
                                        create,
                                        destroy,
                                        work,
                                        wait_for,
                                        0,
                                        0xdead0,
                                        NULL};
const conformance_stage *conformance_stage_get(void) { return &stage; }
