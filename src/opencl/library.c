/* See library.h. */
#include "library.h"

#include <sys/auxv.h>

#define OPENCL_FILE "libOpenCL.so.1"
static const char *const opencl_names[] = {OPENCL_FILE, NULL};
static const prof_i_vendor_symbol opencl_symbols[] = {
#define SYMBOL(need, name, arguments) \
  {#name, offsetof(prof_i_opencl_functions, name), PROF_I_VENDOR_##need},
    PROF_I_CL_FUNCTIONS(SYMBOL)
#undef SYMBOL
};

prof_i_opencl_functions prof_i_opencl;

static const prof_i_vendor_library opencl_library = {
    .names = opencl_names,
    .symbols = opencl_symbols,
    .symbol_count = sizeof opencl_symbols / sizeof *opencl_symbols,
    .functions = &prof_i_opencl,
    .oldest_text = ""};

/* The environment may name drivers and layers, and the loader loads them. It must not do so in a
   program that has more rights than its user, unless the program itself opens the loader. */
static int check_rights(void) {
  return getauxval(AT_SECURE) ? prof_i_backend_fail_text(
                                    PROF_BACKEND_PERMISSION,
                                    "this program has rights that its user has not: " OPENCL_FILE
                                    " is not opened for it")
                              : PROF_BACKEND_OK;
}

int prof_i_opencl_library_open(void) {
  const int result = prof_i_vendor_library_open(&opencl_library, check_rights);
  if (result != PROF_BACKEND_OK || prof_i_opencl.clEnqueueMarkerWithWaitList ||
      prof_i_opencl.clEnqueueMarker)
    return result;
  return prof_i_backend_fail_text(PROF_BACKEND_VERSION, OPENCL_FILE " has no clEnqueueMarker()");
}

/* ---- errors ---- */

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
