/* See error.h. */
#include "error.h"

#include "api.h"

static const char *opencl_error_name(int32_t error) {
  switch (error) {
#define NAME(name, value) \
  case (value):           \
    return "CL_" #name;
    PROF_I_CL_ERRORS(NAME)
#undef NAME
    default:
      return "an error";
  }
}

static int result_of_opencl(int32_t error) {
  switch (error) {
    case PROF_I_CL_OUT_OF_RESOURCES:
    case PROF_I_CL_OUT_OF_HOST_MEMORY:
      return PROF_BACKEND_NO_MEMORY;
    case PROF_I_CL_INVALID_COMMAND_QUEUE:
      return PROF_BACKEND_INVALID;
    case PROF_I_CL_PROFILING_INFO_NOT_AVAILABLE:
      return PROF_BACKEND_UNSUPPORTED;
    case PROF_I_CL_DEVICE_NOT_FOUND:
    case PROF_I_CL_PLATFORM_NOT_FOUND_KHR:
      return PROF_BACKEND_NO_DEVICE;
    default:
      return PROF_BACKEND_VENDOR;
  }
}

int prof_i_opencl_fail_call(const char *function, int32_t error) {
  return prof_i_backend_fail(result_of_opencl(error), "%s: %s (%d)", function,
                             opencl_error_name(error), error);
}
