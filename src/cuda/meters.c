/* See meters.h. Devices have CUDA's numbers where the program uses CUDA when the sampler starts, by
   their UUIDs; those that it does not see come behind them. Else NVML's. */
#include "meters.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "../device/words.h"
#include "devices.h"
#include "nvml.h"

enum { DEVICES_MAX = 64 };

typedef struct nvml_device {
  prof_i_nvml_device handle;
  uint8_t uuid[16];
  uint32_t number; /* that prof gives it */
} nvml_device;

struct prof_backend_self {
  uint32_t is_forked; /* relaxed; the child's only thread writes it, from the fork's handler */
};

static struct {
  nvml_device all[DEVICES_MAX]; /* not changed once they are listed */
  uint32_t count;
  const nvml_device *divided; /* the first that is, by MIG */
  char remark[160];
} own;

static bool is_forked(const prof_backend_self *self) {
  return __atomic_load_n(&self->is_forked, __ATOMIC_RELAXED);
}
static int refuse_child(void) {
  return prof_i_words_refuse(PROF_BACKEND_FORKED,
                             "this process was forked from the one that opened NVML");
}

/* ---- what there is to read ---- */

/* False: this device does not tell it, or not now. */
typedef bool read_function(prof_i_nvml_device device, int64_t *out);

static bool is_taken(int32_t error, unsigned long long value, int64_t *out) {
  *out = (int64_t)value;
  return error == 0 && value <= INT64_MAX;
}

static bool read_power(prof_i_nvml_device device, int64_t *out) {
  uint32_t mw = 0;
  const int32_t error = prof_i_nvml.nvmlDeviceGetPowerUsage(device, &mw);
  return is_taken(error, mw, out);
}

static bool read_energy(prof_i_nvml_device device, int64_t *out) {
  unsigned long long mj = 0;
  const int32_t error = prof_i_nvml.nvmlDeviceGetTotalEnergyConsumption
                            ? prof_i_nvml.nvmlDeviceGetTotalEnergyConsumption(device, &mj)
                            : PROF_I_NVML_ERROR_NOT_SUPPORTED;
  return is_taken(error, mj, out);
}

/* Without what the driver keeps for itself, where it says how much that is. */
static bool read_memory(prof_i_nvml_device device, int64_t *out) {
  prof_i_nvml_memory_2 newer = {.version = PROF_I_NVML_MEMORY_2};
  prof_i_nvml_memory older = {0};
  if (prof_i_nvml.nvmlDeviceGetMemoryInfo_v2 &&
      prof_i_nvml.nvmlDeviceGetMemoryInfo_v2(device, &newer) == 0)
    return is_taken(0, newer.used, out);
  const int32_t error = prof_i_nvml.nvmlDeviceGetMemoryInfo(device, &older);
  return is_taken(error, older.used, out);
}

static bool read_busy(prof_i_nvml_device device, int64_t *out) {
  prof_i_nvml_utilization busy = {0};
  const int32_t error = prof_i_nvml.nvmlDeviceGetUtilizationRates(device, &busy);
  return is_taken(error, busy.gpu, out);
}

static bool read_memory_busy(prof_i_nvml_device device, int64_t *out) {
  prof_i_nvml_utilization busy = {0};
  const int32_t error = prof_i_nvml.nvmlDeviceGetUtilizationRates(device, &busy);
  return is_taken(error, busy.memory, out);
}

static bool read_clock(prof_i_nvml_device device, uint32_t which, int64_t *out) {
  uint32_t mhz = 0;
  const int32_t error = prof_i_nvml.nvmlDeviceGetClockInfo(device, which, &mhz);
  return is_taken(error, mhz, out);
}
static bool read_sm_clock(prof_i_nvml_device device, int64_t *out) {
  return read_clock(device, PROF_I_NVML_CLOCK_SM, out);
}
static bool read_memory_clock(prof_i_nvml_device device, int64_t *out) {
  return read_clock(device, PROF_I_NVML_CLOCK_MEM, out);
}

static bool read_temperature(prof_i_nvml_device device, int64_t *out) {
  uint32_t celsius = 0;
  const int32_t error =
      prof_i_nvml.nvmlDeviceGetTemperature
          ? prof_i_nvml.nvmlDeviceGetTemperature(device, PROF_I_NVML_TEMPERATURE_GPU, &celsius)
          : PROF_I_NVML_ERROR_NOT_SUPPORTED;
  return is_taken(error, celsius, out);
}

static bool read_reasons(prof_i_nvml_device device, int64_t *out) {
  unsigned long long bits = 0;
  const int32_t error = prof_i_nvml.nvmlDeviceGetCurrentClocksThrottleReasons
                            ? prof_i_nvml.nvmlDeviceGetCurrentClocksThrottleReasons(device, &bits)
                            : PROF_I_NVML_ERROR_NOT_SUPPORTED;
  return is_taken(error, bits, out);
}

/* least_us: NVML's own averages are no fresher, says its documentation. */
static const struct {
  const char *name, *unit;
  double scale;
  uint32_t is_total, least_us;
  read_function *read;
} kinds[] = {{"power", "W", 1e-3, 0, 20000, read_power},
             {"energy", "J", 1e-3, 1, 20000, read_energy},
             {"memory used", "B", 1, 0, 1000, read_memory},
             {"utilisation", "%", 1, 0, 166000, read_busy},
             {"memory utilisation", "%", 1, 0, 166000, read_memory_busy},
             {"clock", "Hz", 1e6, 0, 20000, read_sm_clock},
             {"memory clock", "Hz", 1e6, 0, 20000, read_memory_clock},
             {"temperature", "degC", 1, 0, 20000, read_temperature},
             {"throttle reasons", "bits", 1, 0, 20000, read_reasons}};
enum { KINDS = sizeof kinds / sizeof *kinds };

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

/* Of those that CUDA has listed; UINT32_MAX: it does not see it, or nobody has asked it. */
static uint32_t cudas_number(const nvml_device *device) {
  for (uint32_t i = 0; i < prof_i_cuda_devices_count(); i++) {
    prof_backend_device about = {.size = sizeof about};
    prof_i_cuda_device_describe(i, &about);
    if (memcmp(about.uuid, device->uuid, sizeof about.uuid) == 0) return i;
  }
  return UINT32_MAX;
}

static void add(prof_i_nvml_device handle) {
  char uuid[96] = "";
  nvml_device *const device = &own.all[own.count++];
  *device = (nvml_device){.handle = handle};
  if (prof_i_nvml.nvmlDeviceGetUUID(handle, uuid, sizeof uuid) != 0 ||
      !read_uuid(uuid, device->uuid))
    memset(device->uuid, 0, sizeof device->uuid);
}

/* The instances of one that is divided (MIG), which are CUDA's devices then: most of them tell
   their memory alone. */
static void add_instances(prof_i_nvml_device handle) {
  const nvml_device *const whole = &own.all[own.count - 1];
  prof_i_nvml_device instance;
  uint32_t count = 0;
  if (!prof_i_nvml.nvmlDeviceGetMaxMigDeviceCount ||
      !prof_i_nvml.nvmlDeviceGetMigDeviceHandleByIndex ||
      prof_i_nvml.nvmlDeviceGetMaxMigDeviceCount(handle, &count) != 0)
    return;
  for (uint32_t i = 0; i < count && own.count < DEVICES_MAX; i++) {
    /* so many there may be */
    if (prof_i_nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, i, &instance) != 0) continue;
    if (!own.divided) own.divided = whole;
    add(instance);
  }
}

static void number_them(void) {
  uint32_t behind = prof_i_cuda_devices_count();
  for (uint32_t i = 0; i < own.count; i++) {
    const uint32_t number = cudas_number(&own.all[i]);
    own.all[i].number = number == UINT32_MAX ? behind++ : number;
  }
}

/* ---- the table's ---- */

static int probe(const prof_backend_host *host) {
  (void)host;
  return prof_i_nvml_open();
}

static int open_it(const prof_backend_host *host, prof_backend_self **self_out) {
  static prof_backend_self self;
  uint32_t count = 0;
  prof_i_nvml_device handle;
  (void)host;
  const int result = prof_i_nvml_begin();
  if (result != PROF_BACKEND_OK) return result;
  const int32_t error = prof_i_nvml.nvmlDeviceGetCount_v2(&count);
  if (error != 0) return prof_i_nvml_fail_call("nvmlDeviceGetCount_v2", error);
  own.count = 0;
  own.divided = NULL;
  for (uint32_t i = 0; i < count && own.count < DEVICES_MAX; i++) {
    /* one that the user may not use is none of his */
    if (prof_i_nvml.nvmlDeviceGetHandleByIndex_v2(i, &handle) != 0) continue;
    add(handle);
    add_instances(handle);
  }
  number_them();
  *self_out = &self;
  return own.count ? PROF_BACKEND_OK
                   : prof_i_words_fail(
                         PROF_BACKEND_NO_DEVICE,
                         "nvmlDeviceGetCount_v2: %u devices, none of which can be used", count);
}

static int in_use(void) { return prof_i_nvml_is_loaded(); }

static const char *remark(prof_backend_self *self) {
  (void)self;
  if (own.divided)
    snprintf(own.remark, sizeof own.remark,
             "device %u is divided (MIG): its utilisation is not told, and of its instances, which "
             "have numbers of their own, memory alone",
             own.divided->number);
  return own.remark;
}

static void fork_child(prof_backend_self *self) {
  __atomic_store_n(&self->is_forked, 1, __ATOMIC_RELAXED);
}

static const char *last_error(prof_backend_self *self) {
  (void)self;
  return prof_i_words_last();
}

static const nvml_device *with_number(uint32_t number) {
  for (uint32_t i = 0; i < own.count; i++)
    if (own.all[i].number == number) return &own.all[i];
  return NULL;
}

static int describe(prof_backend_self *self, uint32_t index, prof_backend_device *out) {
  if (is_forked(self)) return refuse_child();
  const nvml_device *const device = with_number(index);
  if (!device) return prof_i_words_fail(PROF_BACKEND_NO_DEVICE, "there is no device %u", index);
  prof_backend_device about = {.size = out->size};
  prof_i_nvml_memory memory = {0};
  if (prof_i_nvml.nvmlDeviceGetName(device->handle, about.name, sizeof about.name) != 0)
    about.name[0] = '\0';
  if (prof_i_nvml.nvmlSystemGetDriverVersion(about.driver, sizeof about.driver) != 0)
    about.driver[0] = '\0';
  if (prof_i_nvml.nvmlDeviceGetMemoryInfo(device->handle, &memory) == 0)
    about.memory_bytes = memory.total;
  memcpy(about.uuid, device->uuid, sizeof about.uuid);
  memcpy(out, &about, out->size < sizeof about ? out->size : sizeof about);
  return PROF_BACKEND_OK;
}

/* Those that a device does not tell are left out. */
static int metric(prof_backend_self *self, uint32_t number, prof_backend_metric *out) {
  uint32_t met = 0;
  if (is_forked(self)) return refuse_child();
  for (uint32_t i = 0; i < own.count * KINDS; i++) {
    const nvml_device *const device = &own.all[i / KINDS];
    const uint32_t kind = i % KINDS;
    int64_t unused;
    if (!kinds[kind].read(device->handle, &unused) || met++ != number) continue;
    prof_backend_metric made = {.size = out->size,
                                .device = device->number,
                                .id = kind,
                                .is_total = kinds[kind].is_total,
                                .least_us = kinds[kind].least_us,
                                .scale = kinds[kind].scale};
    snprintf(made.name, sizeof made.name, "%s", kinds[kind].name);
    snprintf(made.unit, sizeof made.unit, "%s", kinds[kind].unit);
    memcpy(out, &made, out->size < sizeof made ? out->size : sizeof made);
    return PROF_BACKEND_OK;
  }
  return prof_i_words_fail(PROF_BACKEND_NO_DEVICE, "there are %u meters", met);
}

static int sample(prof_backend_self *self, const prof_backend_metric *metrics, uint32_t count,
                  int64_t *values_out, uint64_t *known_out) {
  if (is_forked(self)) return refuse_child();
  *known_out = 0;
  for (uint32_t i = 0; i < count; i++) {
    const nvml_device *const device = metrics[i].id < KINDS ? with_number(metrics[i].device) : NULL;
    if (device && kinds[metrics[i].id].read(device->handle, &values_out[i]))
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
                                          .probe = probe,
                                          .open = open_it,
                                          .fork_child = fork_child,
                                          .last_error = last_error,
                                          .device = describe,
                                          .metric = metric,
                                          .sample = sample,
                                          .in_use = in_use,
                                          .remark = remark};
