/* See nvml.h. */
#include "nvml.h"

#include <prof/backend.h>

#include "../base/library.h"
#include "../device/backend_error.h"

static const char nvml_file_name[] = "libnvidia-ml.so.1";

prof_i_nvml_functions prof_i_nvml;

/* The first function that is needed and not there; NULL: none is. */
static const char *resolve_nvml(void *library) {
  enum { OPTIONAL, NEEDED };
  const char *missing = NULL;
#define RESOLVE(need, name, arguments)                               \
  *(void **)&prof_i_nvml.name = prof_i_library_find(library, #name); \
  if ((need) == NEEDED && !prof_i_nvml.name && !missing) missing = #name;
  PROF_I_NVML_FUNCTIONS(RESOLVE)
#undef RESOLVE
  *(void **)&prof_i_nvml.nvmlErrorString = prof_i_library_find(library, "nvmlErrorString");
  return missing || prof_i_nvml.nvmlErrorString ? missing : "nvmlErrorString";
}

static int result_of_nvml(int32_t error) {
  switch (error) {
    case PROF_I_NVML_ERROR_NOT_SUPPORTED:
      return PROF_BACKEND_UNSUPPORTED;
    case PROF_I_NVML_ERROR_NO_PERMISSION:
      return PROF_BACKEND_PERMISSION;
    case PROF_I_NVML_ERROR_DRIVER_NOT_LOADED:
      return PROF_BACKEND_NO_DEVICE;
    case PROF_I_NVML_ERROR_LIB_RM_VERSION_MISMATCH:
      return PROF_BACKEND_VERSION;
    default:
      return PROF_BACKEND_VENDOR;
  }
}

/* What its user can do. */
static const char *advice_of_nvml(int32_t error) {
  switch (error) {
    case PROF_I_NVML_ERROR_NO_PERMISSION:
      return ": /dev/nvidiactl and /dev/nvidia0 are not this user's to open";
    case PROF_I_NVML_ERROR_LIB_RM_VERSION_MISMATCH:
      return ": the kernel's module is of another release than the library: restart the machine, "
             "or load the module anew";
    default:
      return "";
  }
}

int prof_i_nvml_fail_call(const char *function, int32_t error) {
  return prof_i_backend_fail(result_of_nvml(error), "%s: %s (%d)%s", function,
                             prof_i_nvml.nvmlErrorString(error), error, advice_of_nvml(error));
}

int prof_i_nvml_is_loaded(void) {
  const char *why;
  return prof_i_library_can_open() && prof_i_library_open(nvml_file_name, 1, &why) != NULL;
}

int prof_i_nvml_open(void) {
  prof_i_library_error why = {0};
  const char *unused;
  if (!prof_i_library_can_open())
    return prof_i_backend_fail(PROF_BACKEND_UNSUPPORTED,
                               "libprof.a opens no libraries; link libprof.so");
  void *library = prof_i_library_open(nvml_file_name, 1, &unused);
  if (!library) library = prof_i_library_try(nvml_file_name, &why);
  if (!library) return prof_i_backend_fail_library("", &why);
  const char *const missing = resolve_nvml(library);
  return missing
             ? prof_i_backend_fail(PROF_BACKEND_VERSION, "%s has no %s()", nvml_file_name, missing)
             : PROF_BACKEND_OK;
}

int prof_i_nvml_init(void) {
  const int32_t error = prof_i_nvml.nvmlInit_v2();
  return error == 0 ? PROF_BACKEND_OK : prof_i_nvml_fail_call("nvmlInit_v2", error);
}
