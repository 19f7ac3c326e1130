/* OpenCL's meters: memory in use. */
#include "internal.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { KIB = 1024, LEAST_US = 1000, EXTENSIONS_BYTES = 16384 };

static const char memory_extension[] = "cl_amd_device_attribute_query";

static bool read_meter_info(const prof_i_opencl_device *device, uint32_t what, void *to,
                            size_t bytes) {
  return prof_i_opencl.clGetDeviceInfo(device->id, what, bytes, to, NULL) == 0;
}

/* Names separated by spaces. Without the extension the query's number may mean something else. */
static bool has_extension(const prof_i_opencl_device *device) {
  static char words[EXTENSIONS_BYTES]; /* one thread at a time asks for meters */
  const size_t bytes = sizeof memory_extension - 1;
  memset(words, 0, sizeof words);
  if (!read_meter_info(device, PROF_I_CL_DEVICE_EXTENSIONS, words, sizeof words - 1)) return false;
  for (const char *at = words; (at = strstr(at, memory_extension)) != NULL; at += bytes)
    if ((at == words || at[-1] == ' ') && (at[bytes] == ' ' || at[bytes] == '\0')) return true;
  return false;
}

/* The driver gives one or two numbers: all free memory, and the largest free block. */
static bool read_used_bytes(const prof_i_opencl_device *device, int64_t *used_out) {
  size_t free_kib[2] = {0};
  uint64_t all = 0;
  if (!read_meter_info(device, PROF_I_CL_DEVICE_GLOBAL_MEM_SIZE, &all, sizeof all) ||
      !read_meter_info(device, PROF_I_CL_DEVICE_GLOBAL_FREE_MEMORY_AMD, free_kib, sizeof free_kib))
    return false;
  if (all > INT64_MAX || free_kib[0] > all / KIB) return false; /* nonsense */
  *used_out = (int64_t)(all - (uint64_t)free_kib[0] * KIB);
  return true;
}

int prof_i_opencl_meters_metric(uint32_t number, prof_backend_metric *out) {
  const prof_i_opencl_device *device;
  uint32_t met = 0;
  for (uint32_t i = 0; (device = prof_i_opencl_device_at(i)) != NULL; i++) {
    int64_t unused;
    if (!has_extension(device) || !read_used_bytes(device, &unused) || met++ != number) continue;
    prof_backend_metric metric = {.size = out->size, .device = i, .least_us = LEAST_US, .scale = 1};
    snprintf(metric.name, sizeof metric.name, "memory used");
    snprintf(metric.unit, sizeof metric.unit, "B");
    return prof_i_vendor_copy_metric(out, &metric);
  }
  return prof_i_backend_fail(PROF_BACKEND_NO_DEVICE, "no device %u says what of its memory is free",
                             number);
}

int prof_i_opencl_meters_sample(const prof_backend_metric *metrics, uint32_t count,
                                int64_t *values_out, uint64_t *known_out) {
  *known_out = 0;
  for (uint32_t i = 0; i < count; i++) {
    const prof_i_opencl_device *const device = prof_i_opencl_device_at(metrics[i].device);
    if (device && read_used_bytes(device, &values_out[i])) *known_out |= UINT64_C(1) << i;
  }
  return PROF_BACKEND_OK;
}
