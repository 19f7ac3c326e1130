/* Declarations of what prof uses of NVML, the NVIDIA driver's library of meters, and the library of
   the process. tests/device/headers/nvml.cpp compares each line with <nvml.h>. Opened when a
   sampler starts or the status is queried. */
#ifndef PROF_CUDA_METER_LIBRARY_H
#define PROF_CUDA_METER_LIBRARY_H

#include <stdint.h>

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
