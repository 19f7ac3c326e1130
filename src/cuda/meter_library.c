/* See meter_library.h. */
#include "meter_library.h"

#include "../device/vendor.h"

static const char *const nvml_names[] = {"libnvidia-ml.so.1", NULL};
static const prof_i_vendor_symbol nvml_symbols[] = {
#define SYMBOL(need, name, arguments) \
  {#name, offsetof(prof_i_nvml_functions, name), PROF_I_VENDOR_##need},
    PROF_I_NVML_FUNCTIONS(SYMBOL) SYMBOL(NEEDED, nvmlErrorString, )
#undef SYMBOL
};

prof_i_nvml_functions prof_i_nvml;

static const prof_i_vendor_library nvml_library = {
    .names = nvml_names,
    .symbols = nvml_symbols,
    .symbol_count = sizeof nvml_symbols / sizeof *nvml_symbols,
    .functions = &prof_i_nvml,
    .oldest_text = ""};

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

/* What the user can do. */
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

int prof_i_nvml_is_loaded(void) { return prof_i_vendor_library_is_loaded(&nvml_library); }

int prof_i_nvml_open(void) { return prof_i_vendor_library_open(&nvml_library, NULL); }

int prof_i_nvml_init(void) {
  const int32_t error = prof_i_nvml.nvmlInit_v2();
  return error == 0 ? PROF_BACKEND_OK : prof_i_nvml_fail_call("nvmlInit_v2", error);
}
