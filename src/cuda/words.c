/* See words.h. */
#include "words.h"

#include <stddef.h>

#include "api.h"
#include "library.h"

static int result_of(int32_t error) {
  if (error >= PROF_I_CU_ERROR_STREAM_CAPTURE_UNSUPPORTED && error <= PROF_I_CU_ERROR_STREAM_CAPTURE_WRONG_THREAD) return PROF_BACKEND_CAPTURING;
  switch (error) {
    case PROF_I_CU_ERROR_OUT_OF_MEMORY: return PROF_BACKEND_NO_MEMORY;
    case PROF_I_CU_ERROR_NO_DEVICE: return PROF_BACKEND_NO_DEVICE;
    case PROF_I_CU_ERROR_INVALID_CONTEXT:
    case PROF_I_CU_ERROR_CONTEXT_IS_DESTROYED:
    case PROF_I_CU_ERROR_INVALID_HANDLE: return PROF_BACKEND_INVALID;
    case PROF_I_CU_ERROR_NOT_PERMITTED: return PROF_BACKEND_PERMISSION;
    case PROF_I_CU_ERROR_SYSTEM_DRIVER_MISMATCH: return PROF_BACKEND_VERSION;
    default: return PROF_BACKEND_VENDOR;
  }
}

int prof_i_cuda_fail_call(const char *function, int32_t error) {
  const char *name = NULL, *text = NULL;
  prof_i_cuda.cuGetErrorName(error, &name);
  prof_i_cuda.cuGetErrorString(error, &text);
  return prof_i_words_fail(result_of(error), "%s: %s (%d)%s%s", function, name ? name : "an error", error, text ? ", " : "", text ? text : "");
}
