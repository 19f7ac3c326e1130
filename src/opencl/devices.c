/* See devices.h. */
#include "devices.h"

#include <stdio.h>
#include <string.h>

#include "library.h"

enum { PLATFORMS_MAX = 16, DEVICES_MAX = 64, PARENTS_MAX = 8 };
enum { OPENCL_1_2 = 102, OPENCL_2_1 = 201 };

static struct {
  /* not changed once they are listed, but for their clocks */
  prof_i_opencl_device all[DEVICES_MAX];
  uint32_t count;
  bool all_have_wait_lists;
} opencl_device_list;

/* ---- listing ---- */

static uint32_t get_platforms(prof_i_cl_platform *platforms) {
  uint32_t count = 0;
  const int32_t error = prof_i_opencl.clGetPlatformIDs(PLATFORMS_MAX, platforms, &count);
  if (error == PROF_I_CL_PLATFORM_NOT_FOUND_KHR)
    prof_i_backend_fail(PROF_BACKEND_NO_DEVICE,
                        "clGetPlatformIDs: CL_PLATFORM_NOT_FOUND_KHR (-1001): the loader finds no "
                        "driver (in /etc/OpenCL/vendors, or where OCL_ICD_VENDORS says)");
  else if (error != 0)
    prof_i_opencl_fail_call("clGetPlatformIDs", error);
  else if (count == 0)
    prof_i_backend_fail_text(PROF_BACKEND_NO_DEVICE, "clGetPlatformIDs: 0 platforms");
  if (error != 0) return 0;
  return count < PLATFORMS_MAX ? count : PLATFORMS_MAX;
}

uint32_t prof_i_opencl_platforms_count(void) {
  prof_i_cl_platform platforms[PLATFORMS_MAX];
  return get_platforms(platforms);
}

static bool read_device_info(prof_i_cl_device device, uint32_t what, void *to, size_t bytes) {
  return prof_i_opencl.clGetDeviceInfo(device, what, bytes, to, NULL) == 0;
}

static uint32_t opencl_version_of(prof_i_cl_device device) {
  char text[256] = "";
  unsigned major = 1, minor = 0;
  if (!read_device_info(device, PROF_I_CL_DEVICE_VERSION, text, sizeof text)) return 100;
  text[sizeof text - 1] = '\0';
  /* NOLINTNEXTLINE(cert-err34-c): of one that says otherwise, the oldest there is */
  sscanf(text, "OpenCL %u.%u", &major, &minor);
  return major * 100 + minor;
}

static void add_opencl_device(prof_i_cl_device id) {
  prof_i_opencl_device *const device = &opencl_device_list.all[opencl_device_list.count++];
  size_t resolution_ns = 0;
  read_device_info(id, PROF_I_CL_DEVICE_PROFILING_TIMER_RESOLUTION, &resolution_ns,
                   sizeof resolution_ns);
  device->id = id;
  device->version = opencl_version_of(id);
  prof_i_opencl_clock_init(&device->clock,
                           device->version >= OPENCL_2_1 && prof_i_opencl.clGetDeviceAndHostTimer,
                           resolution_ns);
  opencl_device_list.all_have_wait_lists &=
      device->version >= OPENCL_1_2 && prof_i_opencl.clEnqueueMarkerWithWaitList;
}

static void add_platform(prof_i_cl_platform platform) {
  prof_i_cl_device devices[DEVICES_MAX];
  const uint32_t room = DEVICES_MAX - opencl_device_list.count;
  uint32_t count = 0;
  /* a platform without devices is skipped */
  if (room == 0 ||
      prof_i_opencl.clGetDeviceIDs(platform, PROF_I_CL_DEVICE_TYPE_ALL, room, devices, &count) != 0)
    return;
  for (uint32_t i = 0; i < count && i < room; i++) add_opencl_device(devices[i]);
}

int prof_i_opencl_devices_list(void) {
  prof_i_cl_platform platforms[PLATFORMS_MAX];
  const uint32_t count = get_platforms(platforms);
  if (count == 0) return PROF_BACKEND_NO_DEVICE;
  opencl_device_list.count = 0;
  opencl_device_list.all_have_wait_lists = true;
  for (uint32_t i = 0; i < count; i++) add_platform(platforms[i]);
  return opencl_device_list.count
             ? PROF_BACKEND_OK
             : prof_i_backend_fail(PROF_BACKEND_NO_DEVICE, "%u platforms, and no device of any",
                                   count);
}

/* ---- finding ---- */

prof_i_opencl_device *prof_i_opencl_device_at(uint32_t index) {
  return index < opencl_device_list.count ? &opencl_device_list.all[index] : NULL;
}
uint32_t prof_i_opencl_device_number(const prof_i_opencl_device *device) {
  return (uint32_t)(device - opencl_device_list.all);
}

static prof_i_opencl_device *find_opencl_device(prof_i_cl_device id) {
  for (uint32_t i = 0; i < opencl_device_list.count; i++)
    if (opencl_device_list.all[i].id == id) return &opencl_device_list.all[i];
  return NULL;
}

prof_i_opencl_device *prof_i_opencl_device_find(prof_i_cl_device id) {
  /* clCreateSubDevices() makes one out of a part of another */
  for (int i = 0; id && i < PARENTS_MAX; i++) {
    prof_i_opencl_device *const device = find_opencl_device(id);
    if (device) return device;
    if (!read_device_info(id, PROF_I_CL_DEVICE_PARENT_DEVICE, (void *)&id, sizeof(void *))) break;
  }
  return NULL;
}

prof_i_opencl_device *prof_i_opencl_queue_device(prof_i_cl_queue queue) {
  prof_i_cl_device id = NULL;
  const int32_t error = prof_i_opencl.clGetCommandQueueInfo(queue, PROF_I_CL_QUEUE_DEVICE,
                                                            sizeof(void *), (void *)&id, NULL);
  if (error != 0) {
    prof_i_opencl_fail_call("clGetCommandQueueInfo", error);
    return NULL;
  }
  prof_i_opencl_device *const device = prof_i_opencl_device_find(id);
  if (!device)
    prof_i_backend_fail_text(PROF_BACKEND_INVALID,
                             "the queue's device is not one of those that were listed");
  return device;
}

bool prof_i_opencl_devices_has_wait_lists(prof_i_cl_queue queue) {
  if (opencl_device_list.all_have_wait_lists) return true;
  const prof_i_opencl_device *const device =
      prof_i_opencl.clEnqueueMarkerWithWaitList ? prof_i_opencl_queue_device(queue) : NULL;
  return !prof_i_opencl.clEnqueueMarker || (device && device->version >= OPENCL_1_2);
}

/* ---- describing ---- */

/* A text that is longer than the room is an error there: cut here. */
static void read_device_text(prof_i_cl_device device, uint32_t what, char *to, size_t room) {
  char text[1024] = "";
  if (!read_device_info(device, what, text, sizeof text)) return;
  text[sizeof text - 1] = '\0';
  snprintf(to, room, "%.*s", (int)room - 1, text);
}

void prof_i_opencl_device_describe(const prof_i_opencl_device *device, prof_backend_device *out) {
  uint32_t mhz = 0;
  prof_i_cl_pci pci = {0};
  *out = (prof_backend_device){.size = out->size};
  read_device_text(device->id, PROF_I_CL_DEVICE_NAME, out->name, sizeof out->name);
  read_device_text(device->id, PROF_I_CL_DRIVER_VERSION, out->driver, sizeof out->driver);
  snprintf(out->arch, sizeof out->arch, "OpenCL %u.%u", device->version / 100,
           device->version % 100);
  read_device_info(device->id, PROF_I_CL_DEVICE_GLOBAL_MEM_SIZE, &out->memory_bytes,
                   sizeof out->memory_bytes);
  read_device_info(device->id, PROF_I_CL_DEVICE_MAX_COMPUTE_UNITS, &out->units, sizeof out->units);
  if (read_device_info(device->id, PROF_I_CL_DEVICE_MAX_CLOCK_FREQUENCY, &mhz, sizeof mhz))
    out->clock_khz = mhz * 1000;
  /* of those that have these extensions; others refuse */
  read_device_info(device->id, PROF_I_CL_DEVICE_UUID_KHR, out->uuid, PROF_I_CL_UUID_SIZE_KHR);
  if (!read_device_info(device->id, PROF_I_CL_DEVICE_PCI_BUS_INFO_KHR, &pci, sizeof pci)) return;
  out->pci_domain = pci.domain;
  out->pci_bus = pci.bus;
  out->pci_device = pci.device;
  out->pci_function = pci.function;
}
