/* See engine.h: the libraries, the device and for what its kernels are compiled.
   SPDX-License-Identifier: MIT */
#include "engine.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "parts.h"

enum { NEWEST_MAJOR = 13, TOOLKITS = 3, ARCHITECTURES_MAX = 64 };

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))
#define SHARED_SYMBOL(name, arguments, cuda, hip) {#cuda, offsetof(SHARED_STRUCT, name)},
#define OWN_SYMBOL(name, arguments) {#name, offsetof(OWN_STRUCT, name)},

static const char *error_name(const gpu_engine *e, int error) {
  const char *name = NULL;
  ((const cuda_engine *)e)->driver.cuGetErrorName(error, &name);
  return name;
}

static int use(const gpu_engine *e) {
  return ((const cuda_engine *)e)->driver.cuCtxSetCurrent(((const cuda_engine *)e)->context);
}

/* ---- the libraries ---- */

static int open_driver(cuda_engine *e, failure *why) {
#define SHARED_STRUCT gpu_runtime
#define OWN_STRUCT cuda_driver
  static const gpu_symbol shared[] = {GPU_RUNTIME(SHARED_SYMBOL)},
                          own[] = {CUDA_DRIVER(OWN_SYMBOL)};
#undef SHARED_STRUCT
#undef OWN_STRUCT
  const char *const names[] = {"libcuda.so.1", NULL};
  const char *name = NULL;
  void *library = gpu_open_first(names, &name);
  if (library == NULL)
    return failure_set(why,
                       "there is no CUDA: %s (it comes with NVIDIA's driver, not with the toolkit)",
                       dlerror());
  return gpu_find(library, name, shared, COUNT_OF(shared), &e->gpu.run, why) != 0
             ? -1
             : gpu_find(library, name, own, COUNT_OF(own), &e->driver, why);
}

/* The toolkit's libraries have its major version in their names, the newest first; the driver does
   not serve one of a newer major than its own. NULL: none is there; the name is the first that was
   looked for. */
static void *open_toolkit(const cuda_engine *e, const char *const names[TOOLKITS + 1],
                          const char **name_out) {
  int version = 0;
  e->driver.cuDriverGetVersion(&version);
  int skipped = NEWEST_MAJOR - version / 1000;
  if (skipped < 0) skipped = 0;
  if (skipped >= TOOLKITS) skipped = TOOLKITS - 1;
  void *library = gpu_open_first(names + skipped, name_out);
  if (library == NULL) *name_out = names[skipped];
  return library;
}

static int open_compiler(cuda_engine *e, failure *why) {
#define SHARED_STRUCT gpu_compiler
#define OWN_STRUCT cuda_compiler
  static const gpu_symbol shared[] = {GPU_COMPILER(SHARED_SYMBOL)},
                          own[] = {CUDA_COMPILER(OWN_SYMBOL)};
#undef SHARED_STRUCT
#undef OWN_STRUCT
  static const char *const names[TOOLKITS + 1] = {"libnvrtc.so.13", "libnvrtc.so.12",
                                                  "libnvrtc.so.11.2", NULL};
  const char *name = NULL;
  void *library = open_toolkit(e, names, &name);
  if (library == NULL)
    return failure_set(why,
                       "there is no NVRTC, which compiles the kernels: no %s, nor an older one "
                       "(the CUDA toolkit; or pip install nvidia-cuda-nvrtc, of CUDA 12 "
                       "nvidia-cuda-nvrtc-cu12, and its folder into LD_LIBRARY_PATH)",
                       name);
  return gpu_find(library, name, shared, COUNT_OF(shared), &e->gpu.compiler, why) != 0
             ? -1
             : gpu_find(library, name, own, COUNT_OF(own), &e->compiler, why);
}

static int open_products(cuda_engine *e, failure *why) {
#define OWN_STRUCT cuda_products
  static const gpu_symbol own[] = {CUDA_PRODUCTS(OWN_SYMBOL)};
#undef OWN_STRUCT
  static const char *const names[TOOLKITS + 1] = {"libcublas.so.13", "libcublas.so.12",
                                                  "libcublas.so.11", NULL};
  const char *name = NULL;
  void *library = open_toolkit(e, names, &name);
  if (library == NULL)
    return failure_set(why,
                       "there is no cuBLAS, which multiplies the matrices: no %s, nor an older one "
                       "(the CUDA toolkit; or pip install nvidia-cublas, of CUDA 12 "
                       "nvidia-cublas-cu12, and its folder into LD_LIBRARY_PATH)",
                       name);
  return gpu_find(library, name, own, COUNT_OF(own), &e->products, why);
}

/* ---- the device ---- */

static int find_device(cuda_engine *e, failure *why) {
  int count = 0;
  int error = e->gpu.run.init(0);
  if (error == 0) error = e->gpu.run.device_count(&count);
  if (error == CUDA_NO_DEVICE || (error == 0 && count == 0))
    return failure_set(why,
                       "CUDA has no device on this machine (does nvidia-smi list one? "
                       "CUDA_VISIBLE_DEVICES hides some)");
  if (error == 0) error = e->driver.cuDevicePrimaryCtxRetain(&e->context, 0);
  return error == 0 ? 0 : gpu_refuse(&e->gpu, "the first device", error, why);
}

/* Code of the device itself where the compiler knows it; else the newest that is older than the
   device, as PTX, which the driver compiles further. */
static int choose_code(cuda_engine *e, failure *why) {
  int major = 0, minor = 0, count = 0, best = 0, architectures[ARCHITECTURES_MAX];
  e->driver.cuDeviceGetAttribute(&major, CUDA_CAPABILITY_MAJOR, 0);
  e->driver.cuDeviceGetAttribute(&minor, CUDA_CAPABILITY_MINOR, 0);
  if (e->compiler.nvrtcGetNumSupportedArchs(&count) != 0 || count > ARCHITECTURES_MAX ||
      e->compiler.nvrtcGetSupportedArchs(architectures) != 0)
    count = 0;
  const int device = 10 * major + minor;
  for (int i = 0; i < count; i++)
    if (architectures[i] <= device && architectures[i] > best) best = architectures[i];
  if (best == 0)
    return failure_set(why,
                       "NVRTC compiles for nothing as old as this device (compute capability "
                       "%d.%d): an older CUDA's does",
                       major, minor);
  snprintf(e->gpu.option, GPU_OPTION_BYTES, "--gpu-architecture=%s_%d",
           best == device ? "sm" : "compute", best);
  if (best != device) return 0;
  e->gpu.compiler.code_bytes = e->compiler.nvrtcGetCUBINSize;
  e->gpu.compiler.code = e->compiler.nvrtcGetCUBIN;
  return 0;
}

static int open_parts(gpu_engine *face, failure *why) {
  cuda_engine *e = (cuda_engine *)face;
  if (open_driver(e, why) != 0 || find_device(e, why) != 0) return -1;
  return open_compiler(e, why) != 0 || open_products(e, why) != 0 ? -1 : choose_code(e, why);
}

static void close_parts(gpu_engine *face) {
  cuda_engine *e = (cuda_engine *)face;
  if (e->context != NULL) e->driver.cuDevicePrimaryCtxRelease_v2(0);
  free(e);
}

int cuda_engine_open(engine **engine_out, failure *why) {
  static const gpu_vendor cuda = {.name = "cuda",
                                  .type = PROF_DEVICE_CUDA,
                                  .open = open_parts,
                                  .close = close_parts,
                                  .use = use,
                                  .error_name = error_name,
                                  .open_lane = cuda_open_products,
                                  .close_lane = cuda_close_products,
                                  .dense = cuda_dense,
                                  .attention_scores = cuda_attention_scores,
                                  .attention_mix = cuda_attention_mix};
  cuda_engine *e = calloc(1, sizeof *e);
  return e == NULL ? failure_set(why, "no memory for the engine")
                   : gpu_engine_open(&e->gpu, &cuda, engine_out, why);
}
