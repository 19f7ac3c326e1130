/* NVML's meters. If the program uses CUDA when the sampler starts, devices are matched by UUID and
   have CUDA's numbers; devices that CUDA does not see follow. Otherwise they have NVML's numbers.
   */
#include "internal.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "../device/vendor.h"

/* ---- the library ---- */

static const char *const nvml_names[] = {"libnvidia-ml.so.1", NULL};
static const prof_i_vendor_symbol nvml_symbols[] = {
#define SYMBOL(need, name, arguments) \
  {#name, offsetof(prof_i_nvml_functions, name), PROF_I_VENDOR_##need},
    PROF_I_NVML_FUNCTIONS(SYMBOL) SYMBOL(NEEDED, nvmlErrorString, )
#undef SYMBOL
};

/* Written only by nvml_library_open(). Call these only after it returned OK. */
static prof_i_nvml_functions nvml;

static const prof_i_vendor_library nvml_library = {
    .names = nvml_names,
    .symbols = nvml_symbols,
    .symbol_count = sizeof nvml_symbols / sizeof *nvml_symbols,
    .functions = &nvml,
    .oldest_text = ""};

static int result_of_nvml(int32_t error) {
  switch (error) {
    case PROF_I_NVML_ERROR_NOT_SUPPORTED:
      return PROF_BACKEND_UNSUPPORTED;
    case PROF_I_NVML_ERROR_NO_PERMISSION:
      return PROF_BACKEND_PERMISSION;
    case PROF_I_NVML_ERROR_DRIVER_NOT_LOADED:
      return PROF_BACKEND_NO_DEVICE;
    case PROF_I_NVML_ERROR_LIB_RM_VERSION_MISMATCH:
      return PROF_BACKEND_VERSION;
    default:
      return PROF_BACKEND_VENDOR;
  }
}

/* What the user can do. */
static const char *advice_of_nvml(int32_t error) {
  switch (error) {
    case PROF_I_NVML_ERROR_NO_PERMISSION:
      return ": /dev/nvidiactl and /dev/nvidia0 are not this user's to open";
    case PROF_I_NVML_ERROR_LIB_RM_VERSION_MISMATCH:
      return ": the kernel's module is of another release than the library: restart the machine, "
             "or load the module anew";
    default:
      return "";
  }
}

/* "nvmlInit_v2: Driver Not Loaded (9)", and the result that fits. */
static int nvml_fail_call(const char *function, int32_t error) {
  return prof_i_backend_fail(result_of_nvml(error), "%s: %s (%d)%s", function,
                             nvml.nvmlErrorString(error), error, advice_of_nvml(error));
}

/* True if the process has a copy of it. */
static int nvml_is_loaded(void) { return prof_i_vendor_library_is_loaded(&nvml_library); }

/* See prof_i_vendor_library_open(). ABSENT, VERSION, UNSUPPORTED. One thread at a time, as below.
   */
static int nvml_library_open(void) { return prof_i_vendor_library_open(&nvml_library, NULL); }

/* Initialises it, which touches the devices. Creates no context, and does not disturb CUDA in a
   forked child. A prof_backend_result with a text. */
static int nvml_init(void) {
  const int32_t error = nvml.nvmlInit_v2();
  return error == 0 ? PROF_BACKEND_OK : nvml_fail_call("nvmlInit_v2", error);
}

/* ---- meters ---- */

enum { DEVICES_MAX = 64 };

typedef struct nvml_device {
  prof_i_nvml_device handle;
  uint8_t uuid[16];
  uint32_t number; /* that prof gives it */
} nvml_device;

static struct {
  nvml_device all[DEVICES_MAX]; /* not changed once they are listed */
  uint32_t count;
  const nvml_device *divided; /* the first that is, by MIG */
  char remark[160];
} nvml_device_list;

static int refuse_nvml_in_child(void) {
  return prof_i_backend_fail_text(PROF_BACKEND_FORKED,
                                  "this process was forked from the one that opened NVML");
}

/* ---- readings ---- */

/* False: this device has no such reading, or not now. */
typedef bool read_function(prof_i_nvml_device device, int64_t *out);

static bool is_valid_reading(int32_t error, unsigned long long value, int64_t *out) {
  *out = (int64_t)value;
  return error == 0 && value <= INT64_MAX;
}

static bool read_nvml_power(prof_i_nvml_device device, int64_t *out) {
  uint32_t mw = 0;
  const int32_t error = nvml.nvmlDeviceGetPowerUsage(device, &mw);
  return is_valid_reading(error, mw, out);
}

static bool read_nvml_energy(prof_i_nvml_device device, int64_t *out) {
  unsigned long long mj = 0;
  const int32_t error = nvml.nvmlDeviceGetTotalEnergyConsumption
                            ? nvml.nvmlDeviceGetTotalEnergyConsumption(device, &mj)
                            : PROF_I_NVML_ERROR_NOT_SUPPORTED;
  return is_valid_reading(error, mj, out);
}

/* Without the driver's own part, if the driver reports that. */
static bool read_nvml_memory(prof_i_nvml_device device, int64_t *out) {
  prof_i_nvml_memory_2 newer = {.version = PROF_I_NVML_MEMORY_2};
  prof_i_nvml_memory older = {0};
  if (nvml.nvmlDeviceGetMemoryInfo_v2 && nvml.nvmlDeviceGetMemoryInfo_v2(device, &newer) == 0)
    return is_valid_reading(0, newer.used, out);
  const int32_t error = nvml.nvmlDeviceGetMemoryInfo(device, &older);
  return is_valid_reading(error, older.used, out);
}

static bool read_nvml_busy(prof_i_nvml_device device, int64_t *out) {
  prof_i_nvml_utilization busy = {0};
  const int32_t error = nvml.nvmlDeviceGetUtilizationRates(device, &busy);
  return is_valid_reading(error, busy.gpu, out);
}

static bool read_nvml_memory_busy(prof_i_nvml_device device, int64_t *out) {
  prof_i_nvml_utilization busy = {0};
  const int32_t error = nvml.nvmlDeviceGetUtilizationRates(device, &busy);
  return is_valid_reading(error, busy.memory, out);
}

static bool read_nvml_clock(prof_i_nvml_device device, uint32_t which, int64_t *out) {
  uint32_t mhz = 0;
  const int32_t error = nvml.nvmlDeviceGetClockInfo(device, which, &mhz);
  return is_valid_reading(error, mhz, out);
}
static bool read_nvml_sm_clock(prof_i_nvml_device device, int64_t *out) {
  return read_nvml_clock(device, PROF_I_NVML_CLOCK_SM, out);
}
static bool read_nvml_memory_clock(prof_i_nvml_device device, int64_t *out) {
  return read_nvml_clock(device, PROF_I_NVML_CLOCK_MEM, out);
}

static bool read_nvml_temperature(prof_i_nvml_device device, int64_t *out) {
  uint32_t celsius = 0;
  const int32_t error =
      nvml.nvmlDeviceGetTemperature
          ? nvml.nvmlDeviceGetTemperature(device, PROF_I_NVML_TEMPERATURE_GPU, &celsius)
          : PROF_I_NVML_ERROR_NOT_SUPPORTED;
  return is_valid_reading(error, celsius, out);
}

static bool read_nvml_reasons(prof_i_nvml_device device, int64_t *out) {
  unsigned long long bits = 0;
  const int32_t error = nvml.nvmlDeviceGetCurrentClocksThrottleReasons
                            ? nvml.nvmlDeviceGetCurrentClocksThrottleReasons(device, &bits)
                            : PROF_I_NVML_ERROR_NOT_SUPPORTED;
  return is_valid_reading(error, bits, out);
}

/* least_us: NVML's own averages are no fresher, says its documentation. */
static const struct {
  const char *name, *unit;
  double scale;
  uint32_t is_total, least_us;
  read_function *read;
} nvml_metrics[] = {{"power", "W", 1e-3, 0, 20000, read_nvml_power},
                    {"energy", "J", 1e-3, 1, 20000, read_nvml_energy},
                    {"memory used", "B", 1, 0, 1000, read_nvml_memory},
                    {"utilisation", "%", 1, 0, 166000, read_nvml_busy},
                    {"memory utilisation", "%", 1, 0, 166000, read_nvml_memory_busy},
                    {"clock", "Hz", 1e6, 0, 20000, read_nvml_sm_clock},
                    {"memory clock", "Hz", 1e6, 0, 20000, read_nvml_memory_clock},
                    {"temperature", "degC", 1, 0, 20000, read_nvml_temperature},
                    {"throttle reasons", "bits", 1, 0, 20000, read_nvml_reasons}};
enum { NVML_METRICS = sizeof nvml_metrics / sizeof *nvml_metrics };

/* ---- devices ---- */

/* "GPU-" or "MIG-", and 32 digits with dashes among them. */
static bool read_uuid(const char *text, uint8_t uuid[16]) {
  uint32_t digits = 0;
  const char *const dash = strchr(text, '-');
  memset(uuid, 0, 16);
  for (const char *at = dash ? dash + 1 : text; *at && digits < 32; at++) {
    if (*at == '-') continue;
    if (!isxdigit((unsigned char)*at)) return false;
    const int digit =
        isdigit((unsigned char)*at) ? *at - '0' : tolower((unsigned char)*at) - 'a' + 10;
    uuid[digits / 2] = (uint8_t)(uuid[digits / 2] << 4 | digit);
    digits++;
  }
  return digits == 32;
}

/* Its number among CUDA's devices; UINT32_MAX: CUDA does not see it, or is not in use. */
static uint32_t cuda_number_of(const nvml_device *device) {
  for (uint32_t i = 0; i < prof_i_cuda_devices_count(); i++) {
    prof_backend_device about = {.size = sizeof about};
    prof_i_cuda_device_describe(i, &about);
    if (memcmp(about.uuid, device->uuid, sizeof about.uuid) == 0) return i;
  }
  return UINT32_MAX;
}

static void add_nvml_device(prof_i_nvml_device handle) {
  char uuid[96] = "";
  nvml_device *const device = &nvml_device_list.all[nvml_device_list.count++];
  *device = (nvml_device){.handle = handle};
  if (nvml.nvmlDeviceGetUUID(handle, uuid, sizeof uuid) != 0 || !read_uuid(uuid, device->uuid))
    memset(device->uuid, 0, sizeof device->uuid);
}

/* The instances of a divided device (MIG), which are CUDA's devices then. Most of them report only
   their memory. */
static void add_nvml_instances(prof_i_nvml_device handle) {
  const nvml_device *const whole = &nvml_device_list.all[nvml_device_list.count - 1];
  prof_i_nvml_device instance;
  uint32_t count = 0;
  if (!nvml.nvmlDeviceGetMaxMigDeviceCount || !nvml.nvmlDeviceGetMigDeviceHandleByIndex ||
      nvml.nvmlDeviceGetMaxMigDeviceCount(handle, &count) != 0)
    return;
  for (uint32_t i = 0; i < count && nvml_device_list.count < DEVICES_MAX; i++) {
    /* count is only the possible number */
    if (nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, i, &instance) != 0) continue;
    if (!nvml_device_list.divided) nvml_device_list.divided = whole;
    add_nvml_device(instance);
  }
}

static void number_nvml_devices(void) {
  uint32_t behind = prof_i_cuda_devices_count();
  for (uint32_t i = 0; i < nvml_device_list.count; i++) {
    const uint32_t number = cuda_number_of(&nvml_device_list.all[i]);
    nvml_device_list.all[i].number = number == UINT32_MAX ? behind++ : number;
  }
}

/* ---- the table's ---- */

static int nvml_probe(const prof_backend_host *host) {
  (void)host;
  return nvml_library_open();
}

static int nvml_open(const prof_backend_host *host, prof_backend_self **self_out) {
  static prof_backend_self self;
  uint32_t count = 0;
  prof_i_nvml_device handle;
  (void)host;
  const int result = nvml_init();
  if (result != PROF_BACKEND_OK) return result;
  const int32_t error = nvml.nvmlDeviceGetCount_v2(&count);
  if (error != 0) return nvml_fail_call("nvmlDeviceGetCount_v2", error);
  nvml_device_list.count = 0;
  nvml_device_list.divided = NULL;
  for (uint32_t i = 0; i < count && nvml_device_list.count < DEVICES_MAX; i++) {
    /* a device that the user may not use is skipped */
    if (nvml.nvmlDeviceGetHandleByIndex_v2(i, &handle) != 0) continue;
    add_nvml_device(handle);
    add_nvml_instances(handle);
  }
  number_nvml_devices();
  *self_out = &self;
  return nvml_device_list.count
             ? PROF_BACKEND_OK
             : prof_i_backend_fail(PROF_BACKEND_NO_DEVICE,
                                   "nvmlDeviceGetCount_v2: %u devices, none of which can be used",
                                   count);
}

static int nvml_in_use(void) { return nvml_is_loaded(); }

static const char *nvml_remark(prof_backend_self *self) {
  (void)self;
  if (nvml_device_list.divided)
    snprintf(nvml_device_list.remark, sizeof nvml_device_list.remark,
             "device %u is divided (MIG): its utilisation is not told, and of its instances, which "
             "have numbers of their own, memory alone",
             nvml_device_list.divided->number);
  return nvml_device_list.remark;
}

static const nvml_device *find_nvml_device(uint32_t number) {
  for (uint32_t i = 0; i < nvml_device_list.count; i++)
    if (nvml_device_list.all[i].number == number) return &nvml_device_list.all[i];
  return NULL;
}

static int nvml_describe_device(prof_backend_self *self, uint32_t index, prof_backend_device *out) {
  if (prof_i_vendor_is_forked(self)) return refuse_nvml_in_child();
  const nvml_device *const device = find_nvml_device(index);
  if (!device) return prof_i_vendor_no_device(index);
  prof_backend_device about = {.size = out->size};
  prof_i_nvml_memory memory = {0};
  if (nvml.nvmlDeviceGetName(device->handle, about.name, sizeof about.name) != 0)
    about.name[0] = '\0';
  if (nvml.nvmlSystemGetDriverVersion(about.driver, sizeof about.driver) != 0)
    about.driver[0] = '\0';
  if (nvml.nvmlDeviceGetMemoryInfo(device->handle, &memory) == 0) about.memory_bytes = memory.total;
  memcpy(about.uuid, device->uuid, sizeof about.uuid);
  return prof_i_vendor_copy_device(out, &about);
}

/* Readings that a device does not have are left out. */
static int nvml_metric(prof_backend_self *self, uint32_t number, prof_backend_metric *out) {
  uint32_t met = 0;
  if (prof_i_vendor_is_forked(self)) return refuse_nvml_in_child();
  for (uint32_t i = 0; i < nvml_device_list.count * NVML_METRICS; i++) {
    const nvml_device *const device = &nvml_device_list.all[i / NVML_METRICS];
    const uint32_t kind = i % NVML_METRICS;
    int64_t unused;
    if (!nvml_metrics[kind].read(device->handle, &unused) || met++ != number) continue;
    prof_backend_metric made = {.size = out->size,
                                .device = device->number,
                                .id = kind,
                                .is_total = nvml_metrics[kind].is_total,
                                .least_us = nvml_metrics[kind].least_us,
                                .scale = nvml_metrics[kind].scale};
    snprintf(made.name, sizeof made.name, "%s", nvml_metrics[kind].name);
    snprintf(made.unit, sizeof made.unit, "%s", nvml_metrics[kind].unit);
    return prof_i_vendor_copy_metric(out, &made);
  }
  return prof_i_backend_fail(PROF_BACKEND_NO_DEVICE, "there are %u meters", met);
}

static int nvml_sample(prof_backend_self *self, const prof_backend_metric *metrics, uint32_t count,
                       int64_t *values_out, uint64_t *known_out) {
  if (prof_i_vendor_is_forked(self)) return refuse_nvml_in_child();
  *known_out = 0;
  for (uint32_t i = 0; i < count; i++) {
    const nvml_device *const device =
        metrics[i].id < NVML_METRICS ? find_nvml_device(metrics[i].device) : NULL;
    if (device && nvml_metrics[metrics[i].id].read(device->handle, &values_out[i]))
      *known_out |= UINT64_C(1) << i;
  }
  return PROF_BACKEND_OK;
}

const prof_backend prof_i_nvml_backend = {.size = sizeof prof_i_nvml_backend,
                                          .major = PROF_BACKEND_MAJOR,
                                          .minor = PROF_BACKEND_MINOR,
                                          .device_type = PROF_DEVICE_CUDA,
                                          .name = "nvml",
                                          .version = "1.0 (no NVIDIA hardware so far)",
                                          .probe = nvml_probe,
                                          .open = nvml_open,
                                          .fork_child = prof_i_vendor_fork_child,
                                          .last_error = prof_i_vendor_last_error,
                                          .device = nvml_describe_device,
                                          .metric = nvml_metric,
                                          .sample = nvml_sample,
                                          .in_use = nvml_in_use,
                                          .remark = nvml_remark};
