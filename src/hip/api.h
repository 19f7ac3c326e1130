/* Declarations of what prof uses of AMD's HIP runtime and of ROCm SMI. So no vendor's header is
   needed to build. One binary serves HIP 5, 6 and 7. tests/device/headers/hip.cpp compares each
   line of HIP's with the real header. Device properties are not used: their struct differs between
   releases. Includes nothing else of prof. */
#ifndef PROF_HIP_API_H
#define PROF_HIP_API_H

#include <stddef.h>
#include <stdint.h>

typedef struct prof_i_hip_stream_object *prof_i_hip_stream;
typedef struct prof_i_hip_event_object *prof_i_hip_event;
typedef struct prof_i_hip_uuid {
  char bytes[16];
} prof_i_hip_uuid;

/* X(need, name, arguments): all return a hipError_t, but for those that return text (below). Of an
   OPTIONAL one the pointer may be NULL. */
#define PROF_I_HIP_FUNCTIONS(X)                                                         \
  X(NEEDED, hipRuntimeGetVersion, (int32_t * version_out))                              \
  X(OPTIONAL, hipPeekAtLastError, (void))                                               \
  X(OPTIONAL, hipGetLastError, (void))                                                  \
  X(NEEDED, hipGetDeviceCount, (int32_t * count_out))                                   \
  X(NEEDED, hipGetDevice, (int32_t * device_out))                                       \
  X(NEEDED, hipSetDevice, (int32_t device))                                             \
  X(NEEDED, hipDeviceGetName, (char *name_out, int32_t room, int32_t device))           \
  X(NEEDED, hipDeviceTotalMem, (size_t * bytes_out, int32_t device))                    \
  X(OPTIONAL, hipDeviceGetUuid, (prof_i_hip_uuid * uuid_out, int32_t device))           \
  X(NEEDED, hipDeviceGetAttribute, (int32_t * value_out, int32_t what, int32_t device)) \
  X(OPTIONAL, hipStreamGetDevice, (prof_i_hip_stream stream, int32_t * device_out))     \
  X(OPTIONAL, hipStreamIsCapturing, (prof_i_hip_stream stream, int32_t * status_out))   \
  X(OPTIONAL, hipThreadExchangeStreamCaptureMode, (int32_t * mode))                     \
  X(NEEDED, hipEventCreateWithFlags, (prof_i_hip_event * event_out, uint32_t flags))    \
  X(NEEDED, hipEventRecord, (prof_i_hip_event event, prof_i_hip_stream stream))         \
  X(NEEDED, hipEventQuery, (prof_i_hip_event event))                                    \
  X(NEEDED, hipEventDestroy, (prof_i_hip_event event))                                  \
  X(NEEDED, hipEventElapsedTime, (float *ms_out, prof_i_hip_event start, prof_i_hip_event end))

/* X(name, arguments): return text that stays. */
#define PROF_I_HIP_TEXTS(X)           \
  X(hipGetErrorName, (int32_t error)) \
  X(hipGetErrorString, (int32_t error))

/* The header's words without their hip. */
#define PROF_I_HIP_CONSTANTS(X)             \
  X(EventDefault, 0)                        \
  X(StreamCaptureStatusNone, 0)             \
  X(StreamCaptureModeRelaxed, 2)            \
  X(ErrorOutOfMemory, 2)                    \
  X(ErrorNotInitialized, 3)                 \
  X(ErrorDeinitialized, 4)                  \
  X(ErrorNoDevice, 100)                     \
  X(ErrorInvalidDevice, 101)                \
  X(ErrorInvalidContext, 201)               \
  X(ErrorInvalidHandle, 400)                \
  X(ErrorNotReady, 600)                     \
  X(ErrorContextIsDestroyed, 709)           \
  X(ErrorStreamCaptureUnsupported, 900)     \
  X(ErrorStreamCaptureWrongThread, 908)     \
  X(DeviceAttributeClockRate, 5)            \
  X(DeviceAttributeMultiprocessorCount, 63) \
  X(DeviceAttributePciBusId, 67)            \
  X(DeviceAttributePciDeviceId, 68)         \
  X(DeviceAttributePciDomainID, 69)

/* All calls say the same from then on: a kernel of the program's has gone wrong. */
#define PROF_I_HIP_FATAL_ERRORS(X) \
  X(ErrorECCNotCorrectable, 214)   \
  X(ErrorIllegalAddress, 700)      \
  X(ErrorLaunchTimeOut, 702)       \
  X(ErrorLaunchFailure, 719)

enum {
#define PROF_I_HIP_CONSTANT(name, value) PROF_I_HIP_##name = (value),
  PROF_I_HIP_CONSTANTS(PROF_I_HIP_CONSTANT) PROF_I_HIP_FATAL_ERRORS(PROF_I_HIP_CONSTANT)
#undef PROF_I_HIP_CONSTANT
};

/* ---- ROCm SMI, AMD's library of meters ---- */

/* It has energy, which the kernel's files do not have. tests/device/headers/rocm_smi.cpp compares
   each line with <rocm_smi/rocm_smi.h>. Opened only if the kernel lists a device of AMD's: without
   one it writes to stderr. */

/* X(name, arguments): all return an rsmi_status_t. */
#define PROF_I_RSMI_FUNCTIONS(X)                                 \
  X(rsmi_init, (uint64_t flags))                                 \
  X(rsmi_num_monitor_devices, (uint32_t * count_out))            \
  X(rsmi_dev_pci_id_get, (uint32_t index, uint64_t * place_out)) \
  X(rsmi_dev_energy_count_get,                                   \
    (uint32_t index, uint64_t * count_out, float *microjoules_out, uint64_t *timestamp_out))

#endif
