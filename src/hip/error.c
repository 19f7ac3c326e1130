/* See error.h. */
#include "error.h"

#include <stdbool.h>
#include <stddef.h>

#include "api.h"
#include "devices.h"
#include "library.h"

static struct {
  int32_t error_code; /* the error after which there is none other; 0: none so far. Relaxed */
} hip_fatal;

static bool is_hip_fatal(int32_t error) {
  switch (error) {
#define CASE(name, value) case value:
    PROF_I_HIP_FATAL_ERRORS(CASE)
#undef CASE
    return true;
    default:
      return false;
  }
}

static int result_of_hip(int32_t error) {
  if (error >= PROF_I_HIP_ErrorStreamCaptureUnsupported &&
      error <= PROF_I_HIP_ErrorStreamCaptureWrongThread)
    return PROF_BACKEND_CAPTURING;
  switch (error) {
    case PROF_I_HIP_ErrorOutOfMemory:
      return PROF_BACKEND_NO_MEMORY;
    case PROF_I_HIP_ErrorNoDevice:
      return PROF_BACKEND_NO_DEVICE;
    case PROF_I_HIP_ErrorInvalidDevice:
    case PROF_I_HIP_ErrorInvalidContext:
    case PROF_I_HIP_ErrorContextIsDestroyed:
    case PROF_I_HIP_ErrorInvalidHandle:
      return PROF_BACKEND_INVALID;
    default:
      return PROF_BACKEND_VENDOR;
  }
}

int prof_i_hip_fail_call(const char *function, int32_t error) {
  if (is_hip_fatal(error))
    __atomic_store_n(&hip_fatal.error_code, error, __ATOMIC_RELAXED);
  else
    prof_i_hip_clear_error();
  const char *const name = prof_i_hip.hipGetErrorName(error), *const text =
                                                                  prof_i_hip.hipGetErrorString(
                                                                      error);
  return prof_i_backend_fail(result_of_hip(error), "%s: %s (%d)%s%s%s", function,
                             name ? name : "an error", error, text ? ", " : "", text ? text : "",
                             is_hip_fatal(error) ? ": no more HIP in this process" : "");
}

int prof_i_hip_check_fatal(void) {
  const int32_t error = __atomic_load_n(&hip_fatal.error_code, __ATOMIC_RELAXED);
  return error == 0 ? PROF_BACKEND_OK : prof_i_hip_fail_call("an earlier call", error);
}
