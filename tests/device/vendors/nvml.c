/* An emulated NVML, libnvidia-ml.so.1: devices whose meters say what a test wants, in the units and
   structures of NVML's documentation. The order is the bus's, not CUDA's: CUDA's device 0 is its 1,
   and its 2 is hidden from CUDA. No device is behind it. */
#define _GNU_SOURCE
#include "nvml.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define NVML __attribute__((visibility("default")))

enum {
  SUCCESS = 0,
  UNINITIALIZED = 1,
  INVALID_ARGUMENT = 2,
  NOT_SUPPORTED = 3,
  INSUFFICIENT_SIZE = 7,
  GPU_IS_LOST = 15
};

typedef struct device {
  uint32_t index;
} device;
enum { LAST = EMULATED_NVML_DEVICES - 1, ALL = EMULATED_NVML_DEVICES + EMULATED_NVML_INSTANCES };
static device devices[ALL] = {{0}, {1}, {2}, {3}, {4}}; /* instances behind the whole ones */
static emulated_nvml state = {.device_count = EMULATED_NVML_DEVICES,
                              .power_mw = {100000, 250000, 75500},
                              .memory_used = {UINT64_C(1) << 30, UINT64_C(20) << 30, 0},
                              .clock_mhz = {1980, 1980, 1980},
                              .reasons = {1, 4, 1} /* power cap; idle */};

NVML emulated_nvml *emulated_nvml_state(void) { return &state; }

/* 0: it may be asked. */
static int check(const device *d) {
  if (__atomic_load_n(&state.init_count, __ATOMIC_RELAXED) == 0) return UNINITIALIZED;
  if (d < devices || d >= devices + ALL) return INVALID_ARGUMENT;
  return __atomic_load_n(&state.lost_device, __ATOMIC_RELAXED) == d->index + 1 ? GPU_IS_LOST
                                                                               : SUCCESS;
}

/* What an instance does not tell. */
static int check_whole(const device *d) {
  const int error = check(d);
  return error ? error : d->index > LAST ? NOT_SUPPORTED : SUCCESS;
}

NVML int nvmlInit_v2(void);
NVML int nvmlInit_v2(void) {
  if (state.init_error) return state.init_error;
  __atomic_fetch_add(&state.init_count, 1, __ATOMIC_RELAXED);
  return SUCCESS;
}
NVML int nvmlInitWithFlags(unsigned flags);
NVML int nvmlInitWithFlags(unsigned flags) {
  (void)flags;
  return nvmlInit_v2();
}
NVML int nvmlShutdown(void);
NVML int nvmlShutdown(void) { return SUCCESS; }

NVML const char *nvmlErrorString(int error);
NVML const char *nvmlErrorString(int error) {
  switch (error) {
    case SUCCESS:
      return "Success";
    case UNINITIALIZED:
      return "Uninitialized";
    case NOT_SUPPORTED:
      return "Not Supported";
    case 4:
      return "Insufficient Permissions";
    case 9:
      return "Driver Not Loaded";
    case GPU_IS_LOST:
      return "GPU is lost";
    case 18:
      return "Driver/library version mismatch";
    default:
      return "Unknown Error";
  }
}

static int put(char *to, uint32_t room, const char *text) {
  if (strlen(text) >= room) return INSUFFICIENT_SIZE;
  snprintf(to, room, "%s", text);
  return SUCCESS;
}

NVML int nvmlSystemGetDriverVersion(char *out, unsigned room);
NVML int nvmlSystemGetDriverVersion(char *out, unsigned room) { return put(out, room, "580.00"); }

NVML int nvmlDeviceGetCount_v2(unsigned *out);
NVML int nvmlDeviceGetCount_v2(unsigned *out) {
  *out = state.device_count;
  return __atomic_load_n(&state.init_count, __ATOMIC_RELAXED) ? SUCCESS : UNINITIALIZED;
}

NVML int nvmlDeviceGetHandleByIndex_v2(unsigned index, device **out);
NVML int nvmlDeviceGetHandleByIndex_v2(unsigned index, device **out) {
  if (index >= state.device_count) return INVALID_ARGUMENT;
  *out = &devices[index];
  return SUCCESS;
}

NVML int nvmlDeviceGetName(device *d, char *out, unsigned room);
NVML int nvmlDeviceGetName(device *d, char *out, unsigned room) {
  char name[32];
  const int error = check(d);
  if (error) return error;
  if (d->index > LAST)
    snprintf(name, sizeof name, "Emulated NVML %d MIG 1g.10gb", LAST);
  else
    snprintf(name, sizeof name, "Emulated NVML %u", d->index);
  return put(out, room, name);
}

/* Those of vendors/cuda.c: 16 bytes of 0x10 for its device 0, of 0x11 for its device 1. */
NVML int nvmlDeviceGetUUID(device *d, char *out, unsigned room);
NVML int nvmlDeviceGetUUID(device *d, char *out, unsigned room) {
  static const char *const uuids[ALL] = {
      "GPU-11111111-1111-1111-1111-111111111111", "GPU-10101010-1010-1010-1010-101010101010",
      "GPU-99999999-9999-9999-9999-99999999999a", "MIG-33333333-3333-3333-3333-333333333333",
      "MIG-44444444-4444-4444-4444-444444444444"};
  const int error = check(d);
  return error ? error : put(out, room, uuids[d->index]);
}

NVML int nvmlDeviceGetPowerUsage(device *d, unsigned *mw);
NVML int nvmlDeviceGetPowerUsage(device *d, unsigned *mw) {
  const int error = check_whole(d);
  if (!error) *mw = __atomic_load_n(&state.power_mw[d->index], __ATOMIC_RELAXED);
  return error;
}

NVML int nvmlDeviceGetTotalEnergyConsumption(device *d, unsigned long long *mj);
NVML int nvmlDeviceGetTotalEnergyConsumption(device *d, unsigned long long *mj) {
  struct timespec now;
  const int error = check_whole(d);
  if (error || state.lacks_energy) return error ? error : NOT_SUPPORTED;
  clock_gettime(CLOCK_MONOTONIC, &now);
  *mj = (unsigned long long)(((double)now.tv_sec + (double)now.tv_nsec / 1e9) *
                             state.power_mw[d->index]);
  return SUCCESS;
}

typedef struct memory {
  unsigned long long total, free, used;
} memory;
typedef struct memory_2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
} memory_2;
enum { RESERVED = 512 << 20 };
static const unsigned long long total = 80ull << 30;
static unsigned long long used_of(const device *d) {
  return d->index > LAST ? (unsigned long long)d->index << 30
                         : __atomic_load_n(&state.memory_used[d->index], __ATOMIC_RELAXED);
}

NVML int nvmlDeviceGetMemoryInfo(device *d, memory *out);
NVML int nvmlDeviceGetMemoryInfo(device *d, memory *out) {
  const int error = check(d);
  if (error) return error;
  const unsigned long long used = used_of(d) + RESERVED; /* the first version lumps them together */
  *out = (memory){total, total - used, used};
  return SUCCESS;
}

NVML int nvmlDeviceGetMemoryInfo_v2(device *d, memory_2 *out);
NVML int nvmlDeviceGetMemoryInfo_v2(device *d, memory_2 *out) {
  const int error = check(d);
  if (error || out->version != (sizeof *out | 2u << 24)) return error ? error : INVALID_ARGUMENT;
  const unsigned long long used = used_of(d);
  *out = (memory_2){out->version, total, RESERVED, total - RESERVED - used, used};
  return SUCCESS;
}

typedef struct utilization {
  unsigned gpu, memory;
} utilization;
NVML int nvmlDeviceGetUtilizationRates(device *d, utilization *out);
NVML int nvmlDeviceGetUtilizationRates(device *d, utilization *out) {
  const int whole = check_whole(d), error = whole                                  ? whole
                                            : state.is_divided && d->index == LAST ? NOT_SUPPORTED
                                                                                   : SUCCESS;
  if (!error) *out = (utilization){40 + d->index, 20 + d->index};
  return error;
}

NVML int nvmlDeviceGetClockInfo(device *d, unsigned which, unsigned *mhz);
NVML int nvmlDeviceGetClockInfo(device *d, unsigned which, unsigned *mhz) {
  const int error = check_whole(d);
  if (error || which > 3) return error ? error : INVALID_ARGUMENT;
  __atomic_fetch_add(&state.reads, 1, __ATOMIC_RELAXED);
  *mhz = which == 2 ? 2619 : __atomic_load_n(&state.clock_mhz[d->index], __ATOMIC_RELAXED);
  return SUCCESS;
}

NVML int nvmlDeviceGetTemperature(device *d, unsigned sensor, unsigned *celsius);
NVML int nvmlDeviceGetTemperature(device *d, unsigned sensor, unsigned *celsius) {
  const int error = check_whole(d);
  if (error || sensor) return error ? error : INVALID_ARGUMENT;
  *celsius = 50 + d->index;
  return SUCCESS;
}

NVML int nvmlDeviceGetCurrentClocksThrottleReasons(device *d, unsigned long long *bits);
NVML int nvmlDeviceGetCurrentClocksThrottleReasons(device *d, unsigned long long *bits) {
  const int error = check_whole(d);
  __atomic_fetch_add(&state.reads, 1, __ATOMIC_RELAXED);
  if (!error) *bits = __atomic_load_n(&state.reasons[d->index], __ATOMIC_RELAXED);
  return error;
}

/* How many there may be, and where they are. */
NVML int nvmlDeviceGetMaxMigDeviceCount(device *d, unsigned *out);
NVML int nvmlDeviceGetMaxMigDeviceCount(device *d, unsigned *out) {
  enum { MOST = 7 };
  const int error = check_whole(d);
  if (!error) *out = d->index == LAST ? MOST : 0;
  return error;
}

NVML int nvmlDeviceGetMigDeviceHandleByIndex(device *d, unsigned index, device **out);
NVML int nvmlDeviceGetMigDeviceHandleByIndex(device *d, unsigned index, device **out) {
  enum { NOT_FOUND = 6 };
  const int error = check_whole(d);
  if (error || d->index != LAST || !state.is_divided) return error ? error : NOT_SUPPORTED;
  /* the first place is empty */
  if (index == 0 || index > EMULATED_NVML_INSTANCES) return NOT_FOUND;
  *out = &devices[LAST + index];
  return SUCCESS;
}
