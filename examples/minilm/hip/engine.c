/* See engine.h: the libraries and the device. SPDX-License-Identifier: MIT */
#include "engine.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "parts.h"

enum { NAME_BYTES = 32 };

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))
#define SHARED_SYMBOL(name, arguments, cuda, hip) {#hip, offsetof(SHARED_STRUCT, name)},

static const char *error_name(const gpu_engine *e, int error) {
  return ((const hip_engine *)e)->hipGetErrorName(error);
}

static int use(const gpu_engine *e) { return ((const hip_engine *)e)->hipSetDevice(0); }

/* Of the runtime's major; up to HIP 6 the runtime has the compiler in itself, too. */
static int open_compiler(hip_engine *e, void *runtime, const char *name, failure *why) {
#define SHARED_STRUCT gpu_compiler
  static const gpu_symbol shared[] = {GPU_COMPILER(SHARED_SYMBOL)};
#undef SHARED_STRUCT
  const char *const names[] = {name, NULL};
  void *library = gpu_open_first(names, &name);
  if (library == NULL && dlsym(runtime, "hiprtcCreateProgram") == NULL)
    return failure_set(why,
                       "there is no hipRTC, which compiles the kernels: no %s (it comes with ROCm: "
                       "apt-get install hip-runtime-amd)",
                       name);
  return gpu_find(library != NULL ? library : runtime, name, shared, COUNT_OF(shared),
                  &e->gpu.compiler, why);
}

static int open_libraries(hip_engine *e, failure *why) {
#define SHARED_STRUCT gpu_runtime
  static const gpu_symbol shared[] = {GPU_RUNTIME(SHARED_SYMBOL)};
#undef SHARED_STRUCT
  static const gpu_symbol own[] = {{"hipSetDevice", offsetof(hip_engine, hipSetDevice)},
                                   {"hipGetErrorName", offsetof(hip_engine, hipGetErrorName)}};
  static const char *const names[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                      NULL};
  const char *name = NULL;
  void *runtime = gpu_open_first(names, &name);
  if (runtime == NULL)
    return failure_set(why,
                       "there is no HIP: no %s, nor an older one (it comes with ROCm: apt-get "
                       "install hip-runtime-amd, or Debian's libamdhip64-5)",
                       names[0]);
  if (gpu_find(runtime, name, shared, COUNT_OF(shared), &e->gpu.run, why) != 0 ||
      gpu_find(runtime, name, own, COUNT_OF(own), e, why) != 0)
    return -1;
  char compiler[NAME_BYTES];
  snprintf(compiler, sizeof compiler, "libhiprtc%s", name + sizeof "libamdhip64" - 1);
  return open_compiler(e, runtime, compiler, why);
}

static int find_device(hip_engine *e, failure *why) {
  int count = 0;
  int error = e->gpu.run.device_count(&count);
  if (error == HIP_ERROR_NO_DEVICE || error == HIP_ERROR_INVALID_DEVICE ||
      (error == 0 && count == 0))
    return failure_set(why,
                       "HIP has no device on this machine (is there /dev/kfd, and may this user "
                       "open it: the groups render and video? HIP_VISIBLE_DEVICES hides some)");
  if (error == 0) error = e->gpu.run.init(0);
  return error == 0 ? 0 : gpu_refuse(&e->gpu, "the first device", error, why);
}

static int open_parts(gpu_engine *face, failure *why) {
  hip_engine *e = (hip_engine *)face;
  return open_libraries(e, why) != 0 ? -1 : find_device(e, why);
}

static void close_parts(gpu_engine *face) { free(face); }

int hip_engine_open(engine **engine_out, failure *why) {
  static const gpu_vendor hip = {.name = "hip",
                                 .type = PROF_DEVICE_ROCM,
                                 .open = open_parts,
                                 .close = close_parts,
                                 .use = use,
                                 .error_name = error_name,
                                 .open_lane = hip_open_products,
                                 .close_lane = hip_close_products,
                                 .dense = hip_dense,
                                 .attention_scores = hip_attention_scores,
                                 .attention_mix = hip_attention_mix};
  hip_engine *e = calloc(1, sizeof *e);
  return e == NULL ? failure_set(why, "no memory for the engine")
                   : gpu_engine_open(&e->gpu, &hip, engine_out, why);
}
