/* CUDA on an emulated driver (tests/device/vendors): no device is behind it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#include "../../../src/cuda/internal.h"
#include "../vendors/cuda.h"
#include "stage.h"

static struct {
  int (*init)(unsigned flags);
  int (*make_context)(void **out, unsigned flags, int device);
  int (*make_current)(void *context);
  int (*pop)(void **out);
  int (*make_stream)(void **out, unsigned flags);
  int (*end_stream)(void *stream);
  int (*finish)(void *stream);
  void (*work)(void *stream, uint64_t ns);
  void *context;
} cuda;

static const char *why_not(void) {
  void *const library = dlopen(PROF_TEST_LIBCUDA, RTLD_NOW);
  if (!library || !dlopen(PROF_TEST_LIBCUPTI, RTLD_NOW)) return dlerror();
#define FIND(member, symbol) *(void **)&cuda.member = dlsym(library, symbol)
  FIND(init, "cuInit");
  FIND(make_context, "cuCtxCreate_v2");
  FIND(make_current, "cuCtxPushCurrent_v2");
  FIND(pop, "cuCtxPopCurrent_v2");
  FIND(make_stream, "cuStreamCreate");
  FIND(end_stream, "cuStreamDestroy_v2");
  FIND(finish, "cuStreamSynchronize");
  FIND(work, "emulated_cuda_work");
  void *popped;
  if (cuda.init(0) != 0 || cuda.make_context(&cuda.context, 0, 0) != 0 || cuda.pop(&popped) != 0)
    return "the emulated driver does not begin";
  return NULL;
}

static uint64_t create(void) {
  void *stream = NULL, *popped;
  cuda.make_current(cuda.context);
  cuda.make_stream(&stream, 0);
  cuda.pop(&popped);
  return (uint64_t)(uintptr_t)stream;
}
static void destroy(uint64_t stream) { cuda.end_stream((void *)(uintptr_t)stream); }
static void work(uint64_t stream, uint64_t least_us) {
  cuda.work((void *)(uintptr_t)stream, least_us * 1000);
}
static void wait_for(uint64_t stream) { cuda.finish((void *)(uintptr_t)stream); }

static const conformance_stage stage = {"cuda (emulated driver)",
                                        &prof_i_cuda_backend,
                                        {PROF_DEVICE_CUDA, 0},
                                        why_not,
                                        create,
                                        destroy,
                                        work,
                                        wait_for,
                                        0,
                                        0,
                                        NULL};
const conformance_stage *conformance_stage_get(void) { return &stage; }
