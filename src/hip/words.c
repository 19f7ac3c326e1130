/* See words.h. */
#include "words.h"

#include <stddef.h>

#include "api.h"
#include "devices.h"
#include "library.h"

static int result_of(int32_t error) {
  if (error >= PROF_I_HIP_ErrorStreamCaptureUnsupported && error <= PROF_I_HIP_ErrorStreamCaptureWrongThread) return PROF_BACKEND_CAPTURING;
  switch (error) {
    case PROF_I_HIP_ErrorOutOfMemory: return PROF_BACKEND_NO_MEMORY;
    case PROF_I_HIP_ErrorNoDevice: return PROF_BACKEND_NO_DEVICE;
    case PROF_I_HIP_ErrorInvalidDevice:
    case PROF_I_HIP_ErrorInvalidContext:
    case PROF_I_HIP_ErrorContextIsDestroyed:
    case PROF_I_HIP_ErrorInvalidHandle: return PROF_BACKEND_INVALID;
    default: return PROF_BACKEND_VENDOR;
  }
}

int prof_i_hip_fail_call(const char *function, int32_t error) {
  prof_i_hip_forget_error();
  const char *const name = prof_i_hip.hipGetErrorName(error), *const text = prof_i_hip.hipGetErrorString(error);
  return prof_i_words_fail(result_of(error), "%s: %s (%d)%s%s", function, name ? name : "an error", error, text ? ", " : "", text ? text : "");
}
