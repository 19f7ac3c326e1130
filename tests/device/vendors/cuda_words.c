/* The emulated driver's words for its errors: cuda.c. */
#include <stddef.h>

#define CU __attribute__((visibility("default")))

enum { SUCCESS = 0, INVALID_VALUE = 1, NOT_INITIALIZED = 3, INVALID_CONTEXT = 201, INVALID_HANDLE = 400, CAPTURE_UNSUPPORTED = 900, CAPTURE_IMPLICIT = 906 };

static const struct {
  int error;
  const char *name, *text;
} words[] = {{2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"}, {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"}, {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "system has unsupported display driver / cuda driver combination"},
             {804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", "forward compatibility was attempted on non supported HW"}, {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"}, {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"}, {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
             {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"}, {CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
             {CAPTURE_IMPLICIT, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "operation would make the legacy stream depend on a capturing blocking stream"}};

static int word_of(int error, const char **out, int is_name) {
  *out = NULL;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (words[i].error == error) *out = is_name ? words[i].name : words[i].text;
  return *out ? SUCCESS : INVALID_VALUE;
}
CU int cuGetErrorName(int error, const char **out);
CU int cuGetErrorName(int error, const char **out) { return word_of(error, out, 1); }
CU int cuGetErrorString(int error, const char **out);
CU int cuGetErrorString(int error, const char **out) { return word_of(error, out, 0); }
