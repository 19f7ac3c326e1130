/* Declarations of what prof uses of CUDA's driver and of NVML. So no vendor's header is needed to
   build. tests/device/headers/cuda.cpp compares each line of the driver's with <cuda.h>. Includes
   nothing else of prof. */
#ifndef PROF_CUDA_API_H
#define PROF_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

typedef struct prof_i_cu_context_object *prof_i_cu_context;
typedef struct prof_i_cu_stream_object *prof_i_cu_stream;
typedef struct prof_i_cu_event_object *prof_i_cu_event;
typedef int32_t prof_i_cu_device;
typedef struct prof_i_cu_uuid {
  uint8_t bytes[16];
} prof_i_cu_uuid;

/* X(need, name, symbol, arguments): all return a CUresult. The symbol is what <cuda.h> makes of the
   name. Of an OPTIONAL one the pointer may be NULL. */
#define PROF_I_CU_FUNCTIONS(X)                                                                     \
  X(NEEDED, cuDriverGetVersion, cuDriverGetVersion, (int32_t * version_out))                       \
  X(NEEDED, cuDeviceGetCount, cuDeviceGetCount, (int32_t * count_out))                             \
  X(NEEDED, cuDeviceGet, cuDeviceGet, (prof_i_cu_device * device_out, int32_t ordinal))            \
  X(NEEDED, cuDeviceGetName, cuDeviceGetName,                                                      \
    (char *name_out, int32_t room, prof_i_cu_device device))                                       \
  X(NEEDED, cuDeviceGetAttribute, cuDeviceGetAttribute,                                            \
    (int32_t * value_out, int32_t what, prof_i_cu_device device))                                  \
  X(NEEDED, cuDeviceTotalMem, cuDeviceTotalMem_v2, (size_t * bytes_out, prof_i_cu_device device))  \
  X(OPTIONAL, cuDeviceGetUuid, cuDeviceGetUuid_v2,                                                 \
    (prof_i_cu_uuid * uuid_out, prof_i_cu_device device))                                          \
  X(NEEDED, cuCtxGetDevice, cuCtxGetDevice, (prof_i_cu_device * device_out))                       \
  X(NEEDED, cuCtxGetApiVersion, cuCtxGetApiVersion,                                                \
    (prof_i_cu_context context, uint32_t * version_out))                                           \
  X(OPTIONAL, cuCtxGetId, cuCtxGetId, (prof_i_cu_context context, unsigned long long *number_out)) \
  X(NEEDED, cuCtxPushCurrent, cuCtxPushCurrent_v2, (prof_i_cu_context context))                    \
  X(NEEDED, cuCtxPopCurrent, cuCtxPopCurrent_v2, (prof_i_cu_context * context_out))                \
  X(NEEDED, cuStreamGetCtx, cuStreamGetCtx,                                                        \
    (prof_i_cu_stream stream, prof_i_cu_context * context_out))                                    \
  X(OPTIONAL, cuStreamGetDevice, cuStreamGetDevice,                                                \
    (prof_i_cu_stream stream, prof_i_cu_device * device_out))                                      \
  X(NEEDED, cuStreamIsCapturing, cuStreamIsCapturing,                                              \
    (prof_i_cu_stream stream, int32_t * status_out))                                               \
  X(OPTIONAL, cuThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode,                \
    (int32_t * mode))                                                                              \
  X(NEEDED, cuEventCreate, cuEventCreate, (prof_i_cu_event * event_out, uint32_t flags))           \
  X(NEEDED, cuEventRecord, cuEventRecord, (prof_i_cu_event event, prof_i_cu_stream stream))        \
  X(NEEDED, cuEventQuery, cuEventQuery, (prof_i_cu_event event))                                   \
  X(NEEDED, cuEventDestroy, cuEventDestroy_v2, (prof_i_cu_event event))                            \
  X(NEEDED, cuEventElapsedTime, cuEventElapsedTime,                                                \
    (float *ms_out, prof_i_cu_event start, prof_i_cu_event end))                                   \
  X(NEEDED, cuGetErrorName, cuGetErrorName, (int32_t error, const char **name_out))                \
  X(NEEDED, cuGetErrorString, cuGetErrorString, (int32_t error, const char **text_out))

/* The words of <cuda.h> without their CU_. */
#define PROF_I_CU_CONSTANTS(X)                     \
  X(EVENT_DEFAULT, 0)                              \
  X(STREAM_CAPTURE_STATUS_NONE, 0)                 \
  X(STREAM_CAPTURE_MODE_RELAXED, 2)                \
  X(DEVICE_ATTRIBUTE_CLOCK_RATE, 13)               \
  X(DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)     \
  X(DEVICE_ATTRIBUTE_PCI_BUS_ID, 33)               \
  X(DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 34)            \
  X(DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 50)            \
  X(DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75) \
  X(DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)

enum {
#define PROF_I_CU_CONSTANT(name, value) PROF_I_CU_##name = (value),
  PROF_I_CU_CONSTANTS(PROF_I_CU_CONSTANT)
#undef PROF_I_CU_CONSTANT
};

/* Errors that mean something of their own to prof: the words of CUresult without their CUDA_. */
#define PROF_I_CU_ERRORS(X)                    \
  X(ERROR_OUT_OF_MEMORY, 2)                    \
  X(ERROR_NOT_INITIALIZED, 3)                  \
  X(ERROR_DEINITIALIZED, 4)                    \
  X(ERROR_NO_DEVICE, 100)                      \
  X(ERROR_INVALID_CONTEXT, 201)                \
  X(ERROR_INVALID_HANDLE, 400)                 \
  X(ERROR_NOT_READY, 600)                      \
  X(ERROR_CONTEXT_IS_DESTROYED, 709)           \
  X(ERROR_NOT_PERMITTED, 800)                  \
  X(ERROR_SYSTEM_DRIVER_MISMATCH, 803)         \
  X(ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, 804) \
  X(ERROR_STREAM_CAPTURE_UNSUPPORTED, 900)     \
  X(ERROR_STREAM_CAPTURE_WRONG_THREAD, 908)

/* "To continue using CUDA, the process must be terminated and relaunched", says the header of
   these: all calls say the same from then on. Of a failed assertion (710) another context can be
   made. */
#define PROF_I_CU_FATAL_ERRORS(X)     \
  X(ERROR_ILLEGAL_ADDRESS, 700)       \
  X(ERROR_LAUNCH_TIMEOUT, 702)        \
  X(ERROR_HARDWARE_STACK_ERROR, 714)  \
  X(ERROR_ILLEGAL_INSTRUCTION, 715)   \
  X(ERROR_MISALIGNED_ADDRESS, 716)    \
  X(ERROR_INVALID_ADDRESS_SPACE, 717) \
  X(ERROR_INVALID_PC, 718)            \
  X(ERROR_LAUNCH_FAILED, 719)         \
  X(ERROR_MPS_CLIENT_TERMINATED, 810)

enum {
#define PROF_I_CU_ERROR(name, value) PROF_I_CU_##name = (value),
  PROF_I_CU_ERRORS(PROF_I_CU_ERROR) PROF_I_CU_FATAL_ERRORS(PROF_I_CU_ERROR)
#undef PROF_I_CU_ERROR
};

/* ---- NVML, the NVIDIA driver's library of meters ---- */

/* And the library of the process. tests/device/headers/nvml.cpp compares each line with <nvml.h>.
   Opened when a sampler starts or the status is queried. */

typedef struct prof_i_nvml_device_object *prof_i_nvml_device;
typedef struct prof_i_nvml_memory {
  unsigned long long total, free, used;
} prof_i_nvml_memory;
typedef struct prof_i_nvml_memory_2 {
  uint32_t version;
  unsigned long long total, reserved, free, used;
} prof_i_nvml_memory_2;
typedef struct prof_i_nvml_utilization {
  uint32_t gpu, memory; /* % */
} prof_i_nvml_utilization;

/* X(need, name, arguments): all return an nvmlReturn_t. Of an OPTIONAL one the pointer may be
   NULL. */
#define PROF_I_NVML_FUNCTIONS(X)                                                                   \
  X(NEEDED, nvmlInit_v2, (void))                                                                   \
  X(NEEDED, nvmlSystemGetDriverVersion, (char *version_out, uint32_t room))                        \
  X(NEEDED, nvmlDeviceGetCount_v2, (uint32_t * count_out))                                         \
  X(NEEDED, nvmlDeviceGetHandleByIndex_v2, (uint32_t index, prof_i_nvml_device * device_out))      \
  X(NEEDED, nvmlDeviceGetName, (prof_i_nvml_device device, char *name_out, uint32_t room))         \
  X(NEEDED, nvmlDeviceGetUUID, (prof_i_nvml_device device, char *uuid_out, uint32_t room))         \
  X(NEEDED, nvmlDeviceGetPowerUsage, (prof_i_nvml_device device, uint32_t * mw_out))               \
  X(OPTIONAL, nvmlDeviceGetTotalEnergyConsumption,                                                 \
    (prof_i_nvml_device device, unsigned long long *mj_out))                                       \
  X(NEEDED, nvmlDeviceGetMemoryInfo, (prof_i_nvml_device device, prof_i_nvml_memory * memory_out)) \
  X(OPTIONAL, nvmlDeviceGetMemoryInfo_v2,                                                          \
    (prof_i_nvml_device device, prof_i_nvml_memory_2 * memory_out))                                \
  X(NEEDED, nvmlDeviceGetUtilizationRates,                                                         \
    (prof_i_nvml_device device, prof_i_nvml_utilization * utilization_out))                        \
  X(NEEDED, nvmlDeviceGetClockInfo,                                                                \
    (prof_i_nvml_device device, uint32_t which, uint32_t * mhz_out))                               \
  X(OPTIONAL, nvmlDeviceGetTemperature,                                                            \
    (prof_i_nvml_device device, uint32_t sensor, uint32_t * celsius_out))                          \
  X(OPTIONAL, nvmlDeviceGetCurrentClocksThrottleReasons,                                           \
    (prof_i_nvml_device device, unsigned long long *reasons_out))                                  \
  X(OPTIONAL, nvmlDeviceGetMaxMigDeviceCount, (prof_i_nvml_device device, uint32_t * count_out))   \
  X(OPTIONAL, nvmlDeviceGetMigDeviceHandleByIndex,                                                 \
    (prof_i_nvml_device device, uint32_t index, prof_i_nvml_device * instance_out))

enum {
  PROF_I_NVML_CLOCK_SM = 1,
  PROF_I_NVML_CLOCK_MEM = 2,
  PROF_I_NVML_TEMPERATURE_GPU = 0,
  PROF_I_NVML_ERROR_NOT_SUPPORTED = 3,
  PROF_I_NVML_ERROR_NO_PERMISSION = 4,
  PROF_I_NVML_ERROR_DRIVER_NOT_LOADED = 9,
  PROF_I_NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18
};
#define PROF_I_NVML_MEMORY_2 ((uint32_t)sizeof(prof_i_nvml_memory_2) | 2u << 24)

typedef struct prof_i_nvml_functions {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration's */
#define PROF_I_NVML_MEMBER(need, name, arguments) int32_t(*name) arguments;
  PROF_I_NVML_FUNCTIONS(PROF_I_NVML_MEMBER)
#undef PROF_I_NVML_MEMBER
  const char *(*nvmlErrorString)(int32_t error);
} prof_i_nvml_functions;

#endif
