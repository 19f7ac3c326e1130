/* See names.h. */
#include "names.h"

#include <stdio.h>

#include "dtype_names.h"

void prof_i_device_name(prof_device device, char to[PROF_I_DEVICE_NAME_BYTES]) {
  const char *kind = NULL;
  switch (device.type) {
    case PROF_DEVICE_CPU:
      kind = "CPU";
      break;
    case PROF_DEVICE_CUDA:
    case PROF_DEVICE_ROCM:
      kind = "GPU";
      break;
    case PROF_DEVICE_OPENCL:
      kind = "OpenCL";
      break;
    case PROF_DEVICE_VULKAN:
      kind = "Vulkan";
      break;
    case PROF_DEVICE_METAL:
      kind = "Metal";
      break;
    case PROF_DEVICE_EXT_DEV:
      kind = "Extension device";
      break;
    case PROF_DEVICE_ONEAPI:
      kind = "oneAPI";
      break;
  }
  if (kind != NULL)
    snprintf(to, PROF_I_DEVICE_NAME_BYTES, "%s %d", kind, device.index);
  else
    snprintf(to, PROF_I_DEVICE_NAME_BYTES, "Device type %d, %d", device.type, device.index);
}

const char *prof_i_value_dtype(const prof_trace_arg *arg) {
  if (arg->type != PROF_ARG_TENSOR) return "";
#define CASE(dtype, name) \
  case dtype:             \
    return name;
  switch (arg->value.tensor.dtype) { PROF_I_DTYPE_NAMES(CASE) }
#undef CASE
  return "";
}
