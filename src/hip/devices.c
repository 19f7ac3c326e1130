/* See devices.h. */
#define _GNU_SOURCE
#include "devices.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "library.h"

enum { PATH_BYTES = 512 };

static struct {
  uint32_t count;    /* not changed once they are listed */
  bool keeps_errors; /* the same: HIP 7 */
} hip_device_list;

void prof_i_hip_clear_error(void) {
  if (!hip_device_list.keeps_errors && prof_i_hip.hipGetLastError) prof_i_hip.hipGetLastError();
}

bool prof_i_hip_has_error(void) {
  return !hip_device_list.keeps_errors && prof_i_hip.hipPeekAtLastError &&
         prof_i_hip.hipPeekAtLastError() != 0;
}

/* Puts PROF_SYSFS_ROOT before a system path: see meters.c. */
static void device_path_of(char to[PATH_BYTES], const char *name) {
  const char *const root = secure_getenv("PROF_SYSFS_ROOT");
  if (snprintf(to, PATH_BYTES, "%s%s", root ? root : "", name) >= PATH_BYTES) to[0] = '\0';
}

static bool device_file_exists(const char *name) {
  char path[PATH_BYTES];
  device_path_of(path, name);
  return access(path, F_OK) == 0;
}

static int refuse_group(const char *path, const char *why) {
  struct stat about;
  const uint32_t group = stat(path, &about) == 0 ? about.st_gid : 0;
  return prof_i_backend_fail(
      PROF_BACKEND_PERMISSION,
      "%s: %s: this user is not in its group, %u (render, or video): usermod "
      "-aG, and log in again; for a container, --group-add",
      path, why, group);
}

/* OK: one of them can be opened. Each device has one beside /dev/kfd. */
static int check_render_nodes(void) {
  char folder[PATH_BYTES], path[2 * PATH_BYTES], refused[2 * PATH_BYTES] = "";
  int result = PROF_BACKEND_NO_DEVICE, error = 0;
  device_path_of(folder, "/dev/dri");
  DIR *const all = opendir(folder);
  for (const struct dirent *entry; all && (entry = readdir(all)) != NULL;) {
    if (strncmp(entry->d_name, "renderD", sizeof "renderD" - 1) != 0) continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    if (access(path, R_OK | W_OK) == 0)
      result = PROF_BACKEND_OK;
    else
      memcpy(refused, path, sizeof refused), error = errno;
  }
  if (all) closedir(all);
  if (result == PROF_BACKEND_OK) return result;
  return error ? refuse_group(refused, strerror(error))
               : prof_i_backend_fail(PROF_BACKEND_NO_DEVICE,
                                     "%s has no renderD*, which HIP needs beside /dev/kfd: the "
                                     "container was not given it",
                                     folder);
}

/* The runtime says "no device" of all of these. */
static int fail_no_hip_device(void) {
  char path[PATH_BYTES];
  device_path_of(path, "/dev/kfd");
  if (access(path, F_OK) != 0)
    return prof_i_backend_fail(PROF_BACKEND_NO_DEVICE,
                               "%s is not there: no AMD GPU, its kernel module (amdgpu) is not "
                               "loaded, or the container was not given the device",
                               path);
  if (access(path, R_OK | W_OK) != 0) return refuse_group(path, strerror(errno));
  const int result = check_render_nodes();
  return result != PROF_BACKEND_OK
             ? result
             : prof_i_backend_fail_text(PROF_BACKEND_NO_DEVICE,
                                        "hipGetDeviceCount: 0 devices (HIP_VISIBLE_DEVICES and "
                                        "ROCR_VISIBLE_DEVICES may hide some)");
}

int prof_i_hip_devices_probe(void) {
  return device_file_exists("/dev/kfd") || device_file_exists("/dev/dxg") /* Windows' Linux */
             ? PROF_BACKEND_OK
             : fail_no_hip_device();
}

int prof_i_hip_devices_list(void) {
  int32_t count = 0, version = 0;
  const int32_t error = prof_i_hip.hipGetDeviceCount(&count);
  hip_device_list.count = 0;
  if (error == PROF_I_HIP_ErrorNoDevice || (error == 0 && count <= 0)) return fail_no_hip_device();
  if (error != 0) return prof_i_hip_fail_call("hipGetDeviceCount", error);
  hip_device_list.count = (uint32_t)count;
  hip_device_list.keeps_errors =
      prof_i_hip.hipRuntimeGetVersion(&version) == 0 && version >= 70000000;
  return PROF_BACKEND_OK;
}

uint32_t prof_i_hip_devices_count(void) { return hip_device_list.count; }

uint32_t prof_i_hip_stream_device(prof_i_hip_stream stream) {
  enum { PER_THREAD = 2 }; /* hipStreamPerThread */
  const int is_default = (uintptr_t)stream <= PER_THREAD,
            is_told = !is_default && prof_i_hip.hipStreamGetDevice;
  int32_t device = -1;
  const int32_t error =
      is_told ? prof_i_hip.hipStreamGetDevice(stream, &device) : prof_i_hip.hipGetDevice(&device);
  if (error != 0) {
    prof_i_hip_fail_call(is_told ? "hipStreamGetDevice" : "hipGetDevice", error);
    return UINT32_MAX;
  }
  if (device >= 0 && (uint32_t)device < hip_device_list.count) return (uint32_t)device;
  prof_i_backend_fail_text(PROF_BACKEND_INVALID,
                           "the stream's device is not one of those that were listed");
  return UINT32_MAX;
}

/* ---- describing ---- */

static uint32_t hip_attribute(int32_t device, int32_t what) {
  int32_t value = 0;
  return prof_i_hip.hipDeviceGetAttribute(&value, what, device) == 0 && value > 0 ? (uint32_t)value
                                                                                  : 0;
}

void prof_i_hip_device_describe(uint32_t number, prof_backend_device *out) {
  const int32_t device = (int32_t)number;
  int32_t version = 0;
  size_t bytes = 0;
  *out = (prof_backend_device){.size = out->size};
  if (prof_i_hip.hipDeviceGetName(out->name, (int32_t)sizeof out->name, device) != 0)
    out->name[0] = '\0';
  if (prof_i_hip.hipRuntimeGetVersion(&version) == 0)
    snprintf(out->driver, sizeof out->driver, "HIP %d.%d", version / 10000000,
             version / 100000 % 100);
  if (prof_i_hip.hipDeviceTotalMem(&bytes, device) == 0) out->memory_bytes = bytes;
  if (prof_i_hip.hipDeviceGetUuid)
    prof_i_hip.hipDeviceGetUuid((prof_i_hip_uuid *)out->uuid, device);
  out->units = hip_attribute(device, PROF_I_HIP_DeviceAttributeMultiprocessorCount);
  out->clock_khz = hip_attribute(device, PROF_I_HIP_DeviceAttributeClockRate);
  out->pci_domain = hip_attribute(device, PROF_I_HIP_DeviceAttributePciDomainID);
  out->pci_bus = hip_attribute(device, PROF_I_HIP_DeviceAttributePciBusId);
  out->pci_device = hip_attribute(device, PROF_I_HIP_DeviceAttributePciDeviceId);
}
