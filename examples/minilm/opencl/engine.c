/* See engine.h. SPDX-License-Identifier: MIT */
#include "engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opencl/kernels_text.h" /* kernels.cl, by CMakeLists.txt */
#include "parts.h"

enum { PLATFORMS_MAX = 16, LOG_BYTES = 1 << 16, LOG_SHOWN = 300 };

const char *const opencl_kernel_names[OPENCL_KERNEL_COUNT] = {
#define OPENCL_KERNEL_NAME(name) #name,
    OPENCL_KERNELS(OPENCL_KERNEL_NAME)
#undef OPENCL_KERNEL_NAME
};

static void *reserve(void *user, size_t bytes) {
  opencl_engine *e = user;
  return e->cl.clSVMAlloc(e->context, CL_MEM_READ_WRITE, bytes, POOL_ALIGNMENT);
}

static void release(void *user, void *memory) {
  opencl_engine *e = user;
  e->cl.clSVMFree(e->context, memory);
}

static void destroy(engine *face) {
  opencl_engine *e = (opencl_engine *)face;
  if (e->program != NULL) e->cl.clReleaseProgram(e->program);
  if (e->context != NULL) e->cl.clReleaseContext(e->context);
  free(e);
}

/* The first device of the first platform that has one: OpenCL device 0 for prof, too. */
static int find_device(opencl_engine *e, failure *why) {
  cl_platform_id platforms[PLATFORMS_MAX];
  cl_uint count = 0;
  if (e->cl.clGetPlatformIDs(PLATFORMS_MAX, platforms, &count) != CL_SUCCESS) count = 0;
  if (count > PLATFORMS_MAX) count = PLATFORMS_MAX;
  for (cl_uint i = 0; i < count; i++)
    if (e->cl.clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 1, &e->device, NULL) == CL_SUCCESS)
      return 0;
  return failure_set(why,
                     "OpenCL has no device on this machine (apt-get install pocl-opencl-icd: the "
                     "processor as one)");
}

static int check_device(opencl_engine *e, failure *why) {
  cl_device_svm_capabilities svm = 0;
  e->cl.clGetDeviceInfo(e->device, CL_DEVICE_NAME, sizeof e->name - 1, e->name, NULL);
  e->cl.clGetDeviceInfo(e->device, CL_DEVICE_SVM_CAPABILITIES, sizeof svm, &svm, NULL);
  if (svm & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER) return 0;
  return failure_set(
      why, "the OpenCL device %s has no shared virtual memory, which came with OpenCL 2.0",
      e->name);
}

static int refuse_kernels(opencl_engine *e, cl_int error, failure *why) {
  char *log = calloc(1, LOG_BYTES);
  if (log == NULL) return failure_set(why, "no memory for what OpenCL's compiler says");
  e->cl.clGetProgramBuildInfo(e->program, e->device, CL_PROGRAM_BUILD_LOG, LOG_BYTES - 1, log,
                              NULL);
  failure_set(why, "the kernels do not compile for %s (error %d): %.*s", e->name, (int)error,
              LOG_SHOWN, log);
  free(log);
  return -1;
}

static int build_kernels(opencl_engine *e, failure *why) {
  const char *text = kernels_text;
  cl_int error = CL_SUCCESS;
  e->program = e->cl.clCreateProgramWithSource(e->context, 1, &text, NULL, &error);
  if (e->program == NULL) return opencl_refuse(why, "clCreateProgramWithSource", error);
  error = e->cl.clBuildProgram(e->program, 1, &e->device, "-cl-mad-enable", NULL, NULL);
  return error == CL_SUCCESS ? 0 : refuse_kernels(e, error, why);
}

static int open_parts(opencl_engine *e, failure *why) {
  cl_int error = CL_SUCCESS;
  if (opencl_open(&e->cl, why) != 0 || find_device(e, why) != 0 || check_device(e, why) != 0)
    return -1;
  e->context = e->cl.clCreateContext(NULL, 1, &e->device, NULL, NULL, &error);
  if (e->context == NULL) return opencl_refuse(why, "clCreateContext", error);
  return build_kernels(e, why);
}

int opencl_engine_open(engine **engine_out, failure *why) {
  opencl_engine *e = calloc(1, sizeof *e);
  if (e == NULL) return failure_set(why, "no memory for the engine");
  e->memory = (pool_source){
      .device = {PROF_DEVICE_OPENCL, 0}, .reserve = reserve, .release = release, .user = e};
  e->face =
      (engine){.name = "opencl", .description = e->name, .memory = &e->memory, .destroy = destroy};
  opencl_lane_fill(&e->face);
  if (open_parts(e, why) != 0) {
    destroy(&e->face);
    return -1;
  }
  *engine_out = &e->face;
  return 0;
}
