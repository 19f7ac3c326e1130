/* See library.h. */
#include "library.h"

#include "devices.h"

static const char *const hip_names[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                        NULL};
static const prof_i_vendor_symbol hip_symbols[] = {
#define SYMBOL(need, name, arguments) \
  {#name, offsetof(prof_i_hip_functions, name), PROF_I_VENDOR_##need},
#define SYMBOL_TEXT(name, arguments) SYMBOL(NEEDED, name, arguments)
    PROF_I_HIP_FUNCTIONS(SYMBOL) PROF_I_HIP_TEXTS(SYMBOL_TEXT)
#undef SYMBOL_TEXT
#undef SYMBOL
};

prof_i_hip_functions prof_i_hip;

static const prof_i_vendor_library hip_library = {
    .names = hip_names,
    .absent_text = "libamdhip64.so.7, .6 and .5 are not there",
    .symbols = hip_symbols,
    .symbol_count = sizeof hip_symbols / sizeof *hip_symbols,
    .functions = &prof_i_hip,
    .oldest_text = ": HIP 5 is the oldest that serves"};

int prof_i_hip_library_is_loaded(void) { return prof_i_vendor_library_is_loaded(&hip_library); }

int prof_i_hip_library_open(void) { return prof_i_vendor_library_open(&hip_library, NULL); }

/* ---- errors ---- */

static struct { int32_t error_code; /* fatal; 0: none so far. Relaxed */ } hip_fatal;

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
