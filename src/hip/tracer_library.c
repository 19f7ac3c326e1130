/* The library rocprofiler-sdk, and its errors. Opened when records are wanted. */
#include "internal.h"

#include "../device/vendor.h"

prof_i_rocp_functions prof_i_rocp;

static const char *const rocp_names[] = {"librocprofiler-sdk.so.1", "librocprofiler-sdk.so.0",
                                         "/opt/rocm/lib/librocprofiler-sdk.so.1",
                                         "/opt/rocm/lib/librocprofiler-sdk.so.0", NULL};
static const prof_i_vendor_symbol rocp_symbols[] = {
#define SYMBOL(need, name, arguments) \
  {#name, offsetof(prof_i_rocp_functions, name), PROF_I_VENDOR_##need},
#define SYMBOL_TEXT(name, arguments) SYMBOL(NEEDED, name, arguments)
    PROF_I_ROCP_FUNCTIONS(SYMBOL) PROF_I_ROCP_TEXTS(SYMBOL_TEXT)
#undef SYMBOL_TEXT
#undef SYMBOL
};

static const prof_i_vendor_library rocp_library = {
    .names = rocp_names,
    .symbols = rocp_symbols,
    .symbol_count = sizeof rocp_symbols / sizeof *rocp_symbols,
    .functions = &prof_i_rocp,
    .oldest_text = ": ROCm 6.2 is the oldest that serves"};

int prof_i_rocp_library_open(const prof_backend_host *host) {
  const char *const wanted = host->option("ROCPROFILER");
  prof_i_library_error why = {0};
  const char *name;
  void *library = prof_i_vendor_library_find_loaded(&rocp_library, &name);
  if (!library && wanted && *wanted) {
    library = prof_i_library_try(wanted, &why);
    if (!library) return prof_i_backend_fail_library("PROF_BACKEND_ROCPROFILER: ", &why);
  }
  if (!library) library = prof_i_vendor_library_find_installed(&rocp_library, &name, &why);
  if (!library && why.is_broken) return prof_i_backend_fail_library("", &why);
  if (!library)
    return prof_i_backend_fail_text(
        PROF_BACKEND_ABSENT,
        "install rocprofiler-sdk (ROCm 6.2 or later): librocprofiler-sdk.so.1 and .0 are not "
        "there; the older roctracer is not used. LD_LIBRARY_PATH may have its folder, or "
        "PROF_BACKEND_ROCPROFILER the file");
  return prof_i_vendor_library_use(&rocp_library, library, "librocprofiler-sdk");
}

int prof_i_rocp_fail_call(const char *function, int32_t status) {
  const char *const text = prof_i_rocp.rocprofiler_get_status_string(status);
  return prof_i_backend_fail(PROF_BACKEND_VENDOR, "%s: %s (%d)", function, text ? text : "an error",
                             status);
}
