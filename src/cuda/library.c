/* See library.h. */
#include "library.h"

static const char *const cuda_names[] = {"libcuda.so.1", NULL};
static const prof_i_vendor_symbol cuda_symbols[] = {
#define SYMBOL(need, name, symbol, arguments) \
  {#symbol, offsetof(prof_i_cuda_functions, name), PROF_I_VENDOR_##need},
    PROF_I_CU_FUNCTIONS(SYMBOL)
#undef SYMBOL
};

prof_i_cuda_functions prof_i_cuda;

static const prof_i_vendor_library cuda_library = {
    .names = cuda_names,
    .symbols = cuda_symbols,
    .symbol_count = sizeof cuda_symbols / sizeof *cuda_symbols,
    .functions = &prof_i_cuda,
    .oldest_text = ": CUDA 10.0's driver is the oldest that serves"};

int prof_i_cuda_library_is_loaded(void) { return prof_i_vendor_library_is_loaded(&cuda_library); }

int prof_i_cuda_library_open(void) { return prof_i_vendor_library_open(&cuda_library, NULL); }

/* ---- errors ---- */

static struct { int32_t error_code; /* fatal; 0: none so far. Relaxed */ } cuda_fatal;

static bool is_cuda_fatal(int32_t error) {
  switch (error) {
#define CASE(name, value) case value:
    PROF_I_CU_FATAL_ERRORS(CASE)
#undef CASE
    return true;
    default:
      return false;
  }
}

static int result_of_cuda(int32_t error) {
  if (error >= PROF_I_CU_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
      error <= PROF_I_CU_ERROR_STREAM_CAPTURE_WRONG_THREAD)
    return PROF_BACKEND_CAPTURING;
  switch (error) {
    case PROF_I_CU_ERROR_OUT_OF_MEMORY:
      return PROF_BACKEND_NO_MEMORY;
    case PROF_I_CU_ERROR_NO_DEVICE:
      return PROF_BACKEND_NO_DEVICE;
    case PROF_I_CU_ERROR_INVALID_CONTEXT:
    case PROF_I_CU_ERROR_CONTEXT_IS_DESTROYED:
    case PROF_I_CU_ERROR_INVALID_HANDLE:
      return PROF_BACKEND_INVALID;
    case PROF_I_CU_ERROR_NOT_PERMITTED:
      return PROF_BACKEND_PERMISSION;
    case PROF_I_CU_ERROR_SYSTEM_DRIVER_MISMATCH:
    case PROF_I_CU_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
      return PROF_BACKEND_VERSION;
    default:
      return PROF_BACKEND_VENDOR;
  }
}

int prof_i_cuda_fail_call(const char *function, int32_t error) {
  const char *name = NULL, *text = NULL;
  prof_i_cuda.cuGetErrorName(error, &name);
  prof_i_cuda.cuGetErrorString(error, &text);
  if (is_cuda_fatal(error)) __atomic_store_n(&cuda_fatal.error_code, error, __ATOMIC_RELAXED);
  return prof_i_backend_fail(result_of_cuda(error), "%s: %s (%d)%s%s%s", function,
                             name ? name : "an error", error, text ? ", " : "", text ? text : "",
                             is_cuda_fatal(error) ? ": no more CUDA in this process" : "");
}

int prof_i_cuda_check_fatal(void) {
  const int32_t error = __atomic_load_n(&cuda_fatal.error_code, __ATOMIC_RELAXED);
  return error == 0 ? PROF_BACKEND_OK : prof_i_cuda_fail_call("an earlier call", error);
}
