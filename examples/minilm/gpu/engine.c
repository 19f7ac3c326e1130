/* See parts.h: the device's memory, and its kernels. SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "parts.h"

static const char *const kernel_names[GPU_KERNEL_COUNT] = {
#define GPU_KERNEL_NAME(name) #name,
    GPU_KERNELS(GPU_KERNEL_NAME)
#undef GPU_KERNEL_NAME
};

int gpu_refuse(const gpu_engine *e, const char *what, int error, failure *why) {
  const char *name = e->vendor->error_name(e, error);
  return failure_set(why, "%s: %s: %s (error %d)", e->vendor->name, what,
                     name != NULL ? name : "unknown", error);
}

static void *reserve(void *user, size_t bytes) {
  const gpu_engine *e = user;
  void *memory = NULL;
  return e->vendor->use(e) == 0 && e->run.allocate(&memory, bytes) == 0 ? memory : NULL;
}

static void release(void *user, void *memory) {
  const gpu_engine *e = user;
  if (e->vendor->use(e) == 0) e->run.free(memory);
}

static void destroy(engine *face) {
  gpu_engine *e = (gpu_engine *)face;
  if (e->module != NULL && e->vendor->use(e) == 0) e->run.unload_module(e->module);
  e->vendor->close(e);
}

static int load_kernels(gpu_engine *e, failure *why) {
  char *code = NULL;
  size_t bytes = 0;
  if (gpu_compile(&e->compiler, e->option[0] != '\0' ? e->option : NULL, &code, &bytes, why) != 0)
    return -1;
  int error = e->run.load_module(&e->module, code);
  free(code);
  if (error != 0) return gpu_refuse(e, "the compiled kernels", error, why);
  for (int k = 0; k < GPU_KERNEL_COUNT; k++) {
    error = e->run.find_kernel(&e->kernels[k], e->module, kernel_names[k]);
    if (error != 0) return gpu_refuse(e, kernel_names[k], error, why);
  }
  return 0;
}

static int open_parts(gpu_engine *e, failure *why) {
  if (e->vendor->open(e, why) != 0) return -1;
  int error = e->vendor->use(e);
  if (error == 0) error = e->run.device_name(e->name, GPU_NAME_BYTES, 0);
  return error == 0 ? load_kernels(e, why) : gpu_refuse(e, "the first device", error, why);
}

int gpu_engine_open(gpu_engine *e, const gpu_vendor *vendor, engine **engine_out, failure *why) {
  if (e == NULL) return failure_set(why, "no memory for the engine");
  e->vendor = vendor;
  e->memory =
      (pool_source){.device = {vendor->type, 0}, .reserve = reserve, .release = release, .user = e};
  e->face = (engine){
      .name = vendor->name, .description = e->name, .memory = &e->memory, .destroy = destroy};
  gpu_lane_fill(&e->face);
  if (open_parts(e, why) != 0) {
    destroy(&e->face);
    return -1;
  }
  *engine_out = &e->face;
  return 0;
}
