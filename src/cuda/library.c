/* See library.h. */
#include "library.h"

#include <prof/backend.h>

#include "../base/library.h"
#include "error.h"

static const char cuda_file_name[] = "libcuda.so.1";

prof_i_cuda_functions prof_i_cuda;

/* The first function that is needed and not there; NULL: none is. */
static const char *resolve_cuda(void *library) {
  enum { OPTIONAL, NEEDED };
  const char *missing = NULL;
#define RESOLVE(need, name, symbol, arguments)                         \
  *(void **)&prof_i_cuda.name = prof_i_library_find(library, #symbol); \
  if ((need) == NEEDED && !prof_i_cuda.name && !missing) missing = #symbol;
  PROF_I_CU_FUNCTIONS(RESOLVE)
#undef RESOLVE
  return missing;
}

int prof_i_cuda_library_is_loaded(void) {
  const char *why;
  return prof_i_library_can_open() && prof_i_library_open(cuda_file_name, 1, &why) != NULL;
}

int prof_i_cuda_library_open(void) {
  prof_i_library_error why = {0};
  const char *unused;
  if (!prof_i_library_can_open())
    return prof_i_backend_fail(PROF_BACKEND_UNSUPPORTED,
                               "libprof.a opens no libraries; link libprof.so");
  void *library = prof_i_library_open(cuda_file_name, 1, &unused);
  if (!library) library = prof_i_library_try(cuda_file_name, &why);
  if (!library) return prof_i_backend_fail_library("", &why);
  const char *const missing = resolve_cuda(library);
  return missing
             ? prof_i_backend_fail(PROF_BACKEND_VERSION,
                                   "%s has no %s(): CUDA 10.0's driver is the oldest that serves",
                                   cuda_file_name, missing)
             : PROF_BACKEND_OK;
}
