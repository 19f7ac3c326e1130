/* See library.h. */
#include "library.h"

#include <sys/auxv.h>

#include "../base/library.h"
#include "error.h"

static const char opencl_file_name[] = "libOpenCL.so.1";

prof_i_opencl_functions prof_i_opencl;

/* The first function that is needed and not there; NULL: none is. */
static const char *resolve_opencl(void *library) {
  enum { OPTIONAL, NEEDED };
  const char *missing = NULL;
#define RESOLVE(need, name, arguments)                                 \
  *(void **)&prof_i_opencl.name = prof_i_library_find(library, #name); \
  if ((need) == NEEDED && !prof_i_opencl.name && !missing) missing = #name;
  PROF_I_CL_FUNCTIONS(RESOLVE)
#undef RESOLVE
  if (!prof_i_opencl.clEnqueueMarkerWithWaitList && !prof_i_opencl.clEnqueueMarker && !missing)
    missing = "clEnqueueMarker";
  return missing;
}

int prof_i_opencl_library_open(void) {
  const char *unused;
  prof_i_library_error why = {0};
  if (!prof_i_library_can_open())
    return prof_i_backend_fail(PROF_BACKEND_UNSUPPORTED,
                               "libprof.a opens no libraries; link libprof.so");
  void *library = prof_i_library_open(opencl_file_name, 1, &unused);
  /* The environment may name a loader's drivers and layers: it loads them into no program that has
     more rights than its user, unless that does so itself. */
  if (!library && getauxval(AT_SECURE))
    return prof_i_backend_fail(
        PROF_BACKEND_PERMISSION,
        "this program has rights that its user has not: %s is not opened for it", opencl_file_name);
  if (!library) library = prof_i_library_try(opencl_file_name, &why);
  if (!library) return prof_i_backend_fail_library("", &why);
  const char *const missing = resolve_opencl(library);
  return missing ? prof_i_backend_fail(PROF_BACKEND_VERSION, "%s has no %s()", opencl_file_name,
                                       missing)
                 : PROF_BACKEND_OK;
}
