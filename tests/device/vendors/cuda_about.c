/* What the emulated CUDA driver says of its devices, and of its errors in the real one's words. No
   device is behind it. */
#include "cuda.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define CU __attribute__((visibility("default")))

enum { SUCCESS = 0, INVALID_VALUE = 1 };

CU int cuDeviceGetName(char *name, int room, int device);
CU int cuDeviceGetName(char *name, int room, int device) {
  snprintf(name, (size_t)room, "Emulated CUDA %d%s", device,
           emulated_cuda_state()->is_divided ? " MIG 1g.10gb" : "");
  return SUCCESS;
}

CU int cuDeviceGetAttribute(int *value, int what, int device);
CU int cuDeviceGetAttribute(int *value, int what, int device) {
  *value = what == 75   ? 9
           : what == 76 ? 0
           : what == 16 ? 132
           : what == 13 ? 1980000
           : what == 33 ? 0x1b + device
                        : 0;
  return SUCCESS;
}

CU int cuDeviceTotalMem_v2(size_t *bytes, int device);
CU int cuDeviceTotalMem_v2(size_t *bytes, int device) {
  *bytes = (size_t)(80 + device) << 30;
  return SUCCESS;
}

CU int cuDeviceGetUuid_v2(unsigned char *uuid, int device);
CU int cuDeviceGetUuid_v2(unsigned char *uuid, int device) {
  const emulated_cuda *const about = emulated_cuda_state();
  memset(uuid, (about->uuid ? about->uuid : 0x10) + device, 16);
  return SUCCESS;
}

static const struct {
  int error;
  const char *name, *text;
} words[] = {{1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
             {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
             {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
             {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
             {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
             {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
             {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
              "system has unsupported display driver / cuda driver combination"},
             {804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
              "forward compatibility was attempted on non supported HW"},
             {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
              "operation not permitted when stream is capturing"},
             {906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
              "operation would make the legacy stream depend on a capturing blocking stream"}};

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
