/* See library.h. SPDX-License-Identifier: MIT */
#include "library.h"

#include <dlfcn.h>
#include <stddef.h>

static const char library_name[] = "libOpenCL.so.1";

/* Those that somebody who runs this may meet; the rest have their number. */
static const struct {
  cl_int error;
  const char *text;
} errors[] = {{CL_DEVICE_NOT_AVAILABLE, "CL_DEVICE_NOT_AVAILABLE"},
              {CL_MEM_OBJECT_ALLOCATION_FAILURE, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
              {CL_OUT_OF_RESOURCES, "CL_OUT_OF_RESOURCES"},
              {CL_OUT_OF_HOST_MEMORY, "CL_OUT_OF_HOST_MEMORY"},
              {CL_INVALID_WORK_GROUP_SIZE, "CL_INVALID_WORK_GROUP_SIZE"},
              {CL_INVALID_QUEUE_PROPERTIES, "CL_INVALID_QUEUE_PROPERTIES"}};

int opencl_refuse(failure *why, const char *what, cl_int error) {
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
    if (errors[i].error == error) return failure_set(why, "OpenCL: %s: %s", what, errors[i].text);
  return failure_set(why, "OpenCL: %s: error %d", what, (int)error);
}

int opencl_open(opencl *cl_out, failure *why) {
  void *library = dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL)
    return failure_set(
        why, "there is no OpenCL: %s (apt-get install ocl-icd-libopencl1 pocl-opencl-icd)",
        dlerror());
#define OPENCL_FIND(name)                          \
  *(void **)&cl_out->name = dlsym(library, #name); \
  if (cl_out->name == NULL)                        \
    return failure_set(why, "%s has no %s: it is older than OpenCL 2.0", library_name, #name);
  OPENCL_FUNCTIONS(OPENCL_FIND)
#undef OPENCL_FIND
  return 0;
}
