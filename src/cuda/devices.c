/* See devices.h. */
#include "devices.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "library.h"

enum { DEVICES_MAX = 64 };

static struct {
  prof_i_cu_device all[DEVICES_MAX]; /* not changed once they are listed */
  uint32_t count;
} cuda_device_list;

int prof_i_cuda_devices_list(void) {
  int32_t count = 0;
  const int32_t error = prof_i_cuda.cuDeviceGetCount(&count);
  if (error == PROF_I_CU_ERROR_NOT_INITIALIZED)
    return prof_i_backend_fail_text(
        PROF_BACKEND_NOT_READY,
        "the program has not begun to use CUDA (cuInit), or that failed: prof doctor says why");
  if (error != 0) return prof_i_cuda_fail_call("cuDeviceGetCount", error);
  cuda_device_list.count = 0;
  for (int32_t i = 0; i < count && cuda_device_list.count < DEVICES_MAX; i++)
    if (prof_i_cuda.cuDeviceGet(&cuda_device_list.all[cuda_device_list.count], i) == 0)
      cuda_device_list.count++;
  return cuda_device_list.count
             ? PROF_BACKEND_OK
             : prof_i_backend_fail_text(
                   PROF_BACKEND_NO_DEVICE,
                   "cuDeviceGetCount: 0 devices (CUDA_VISIBLE_DEVICES may hide some)");
}

uint32_t prof_i_cuda_devices_count(void) { return cuda_device_list.count; }

uint32_t prof_i_cuda_device_number(prof_i_cu_device device) {
  for (uint32_t i = 0; i < cuda_device_list.count; i++)
    if (cuda_device_list.all[i] == device) return i;
  return UINT32_MAX;
}

/* ---- of a stream ---- */

/* Drivers before 12.8: what was current before is so again. */
static int32_t get_device_by_context(prof_i_cu_stream stream, prof_i_cu_device *device_out) {
  prof_i_cu_context context = NULL, popped;
  int32_t error = prof_i_cuda.cuStreamGetCtx(stream, &context);
  if (error == 0) error = prof_i_cuda.cuCtxPushCurrent(context);
  if (error != 0) return error;
  error = prof_i_cuda.cuCtxGetDevice(device_out);
  prof_i_cuda.cuCtxPopCurrent(&popped);
  return error;
}

uint32_t prof_i_cuda_stream_device(prof_i_cu_stream stream) {
  prof_i_cu_device device = -1;
  const bool is_told = prof_i_cuda.cuStreamGetDevice != NULL;
  const int32_t error = is_told ? prof_i_cuda.cuStreamGetDevice(stream, &device)
                                : get_device_by_context(stream, &device);
  if (error != 0) {
    prof_i_cuda_fail_call(is_told ? "cuStreamGetDevice" : "cuStreamGetCtx", error);
    return UINT32_MAX;
  }
  const uint32_t number = prof_i_cuda_device_number(device);
  if (number == UINT32_MAX)
    prof_i_backend_fail_text(PROF_BACKEND_INVALID,
                             "the stream's device is not one of those that were listed");
  return number;
}

/* ---- describing ---- */

static uint32_t cuda_attribute(prof_i_cu_device device, int32_t what) {
  int32_t value = 0;
  return prof_i_cuda.cuDeviceGetAttribute(&value, what, device) == 0 && value > 0 ? (uint32_t)value
                                                                                  : 0;
}

void prof_i_cuda_device_describe(uint32_t number, prof_backend_device *out) {
  const prof_i_cu_device device = cuda_device_list.all[number];
  int32_t version = 0;
  size_t bytes = 0;
  *out = (prof_backend_device){.size = out->size};
  if (prof_i_cuda.cuDeviceGetName(out->name, (int32_t)sizeof out->name, device) != 0)
    out->name[0] = '\0';
  snprintf(out->arch, sizeof out->arch, "sm_%u%u",
           cuda_attribute(device, PROF_I_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) % 1000,
           cuda_attribute(device, PROF_I_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) % 1000);
  if (prof_i_cuda.cuDriverGetVersion(&version) == 0)
    snprintf(out->driver, sizeof out->driver, "CUDA %d.%d", version / 1000, version % 1000 / 10);
  if (prof_i_cuda.cuDeviceTotalMem(&bytes, device) == 0) out->memory_bytes = bytes;
  if (prof_i_cuda.cuDeviceGetUuid) prof_i_cuda.cuDeviceGetUuid((prof_i_cu_uuid *)out->uuid, device);
  out->units = cuda_attribute(device, PROF_I_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  out->clock_khz = cuda_attribute(device, PROF_I_CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  out->pci_domain = cuda_attribute(device, PROF_I_CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
  out->pci_bus = cuda_attribute(device, PROF_I_CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
  out->pci_device = cuda_attribute(device, PROF_I_CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
}
