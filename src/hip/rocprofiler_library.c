/* See rocprofiler_library.h. */
#include "rocprofiler_library.h"

#include <stddef.h>

#include "../base/library.h"
#include "error.h"

prof_i_rocp_functions prof_i_rocp;

static const char *const rocp_names[] = {"librocprofiler-sdk.so.1", "librocprofiler-sdk.so.0",
                                         "/opt/rocm/lib/librocprofiler-sdk.so.1",
                                         "/opt/rocm/lib/librocprofiler-sdk.so.0"};
enum { ROCP_NAMES = sizeof rocp_names / sizeof *rocp_names };

static void *find_loaded_rocp(void) {
  const char *unused;
  void *library = NULL;
  for (int i = 0; i < ROCP_NAMES && !library; i++)
    library = prof_i_library_open(rocp_names[i], 1, &unused);
  return library;
}

static void *find_installed_rocp(prof_i_library_error *why) {
  void *library = NULL;
  for (int i = 0; i < ROCP_NAMES && !library; i++) library = prof_i_library_try(rocp_names[i], why);
  return library;
}

/* The first function that is needed and not there; NULL: none is. */
static const char *resolve_rocp(void *library) {
  enum { OPTIONAL, NEEDED };
  const char *missing = NULL;
#define RESOLVE(need, name, arguments)                               \
  *(void **)&prof_i_rocp.name = prof_i_library_find(library, #name); \
  if ((need) == NEEDED && !prof_i_rocp.name && !missing) missing = #name;
#define RESOLVE_TEXT(name, arguments) RESOLVE(NEEDED, name, arguments)
  PROF_I_ROCP_FUNCTIONS(RESOLVE)
  PROF_I_ROCP_TEXTS(RESOLVE_TEXT)
#undef RESOLVE_TEXT
#undef RESOLVE
  return missing;
}

int prof_i_rocp_library_open(const prof_backend_host *host) {
  const char *const wanted = host->option("ROCPROFILER");
  prof_i_library_error why = {0};
  void *library = find_loaded_rocp();
  if (!library && wanted && *wanted) {
    library = prof_i_library_try(wanted, &why);
    if (!library) return prof_i_backend_fail_library("PROF_BACKEND_ROCPROFILER: ", &why);
  }
  if (!library) library = find_installed_rocp(&why);
  if (!library && why.is_broken) return prof_i_backend_fail_library("", &why);
  if (!library)
    return prof_i_backend_fail_text(
        PROF_BACKEND_ABSENT,
        "install rocprofiler-sdk (ROCm 6.2 or later): librocprofiler-sdk.so.1 and .0 are not "
        "there; the older roctracer is not used. LD_LIBRARY_PATH may have its folder, or "
        "PROF_BACKEND_ROCPROFILER the file");
  const char *const missing = resolve_rocp(library);
  return missing
             ? prof_i_backend_fail(
                   PROF_BACKEND_VERSION,
                   "librocprofiler-sdk has no %s(): ROCm 6.2 is the oldest that serves", missing)
             : PROF_BACKEND_OK;
}

int prof_i_rocp_fail_call(const char *function, int32_t status) {
  const char *const text = prof_i_rocp.rocprofiler_get_status_string(status);
  return prof_i_backend_fail(PROF_BACKEND_VENDOR, "%s: %s (%d)", function, text ? text : "an error",
                             status);
}
