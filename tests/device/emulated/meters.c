/* The emulated vendor's meters: what the test sets. See emulated.h. */
#define _GNU_SOURCE
#include "meters.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "emulated.h"

emulated_meters emulated_meter;

enum { POWER, ENERGY, MEMORY, BUSY, CLOCK, REASONS, KINDS };

static const struct {
  const char *name, *unit;
  double scale;
  uint32_t is_total;
} kinds[KINDS] = {{"power", "W", 1e-3, 0},    {"energy", "J", 1e-6, 1},
                  {"memory used", "B", 1, 0}, {"utilisation", "%", 1, 0},
                  {"clock", "Hz", 1e6, 0},    {"throttle reasons", "bits", 1, 0}};

int emulated_metric(prof_backend_self *self, uint32_t number, prof_backend_metric *out) {
  (void)self;
  const uint32_t kind = number / EMULATED_DEVICES;
  while (__atomic_load_n(&emulated_meter.finding_hangs, __ATOMIC_RELAXED)) usleep(1000);
  if (kind >= (emulated_meter.has_reasons ? KINDS : REASONS)) return PROF_BACKEND_NO_DEVICE;
  *out = (prof_backend_metric){.size = out->size,
                               .device = number % EMULATED_DEVICES,
                               .id = kind,
                               .is_total = kinds[kind].is_total,
                               .least_us = 100,
                               .scale = kinds[kind].scale};
  snprintf(out->name, sizeof out->name, "%s", kinds[kind].name);
  snprintf(out->unit, sizeof out->unit, "%s", kinds[kind].unit);
  return PROF_BACKEND_OK;
}

/* A device that has used so many W since the machine began. */
static int64_t energy_uj(int64_t power_mw) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)(((double)now.tv_sec + (double)now.tv_nsec / 1e9) * (double)power_mw * 1e3);
}

int emulated_sample(prof_backend_self *self, const prof_backend_metric *metrics, uint32_t count,
                    int64_t *values_out, uint64_t *known_out) {
  (void)self;
  __atomic_fetch_add(&emulated_meter.samples, 1, __ATOMIC_RELAXED);
  while (__atomic_load_n(&emulated_meter.hangs, __ATOMIC_RELAXED)) {
    __atomic_store_n(&emulated_meter.is_hanging, 1, __ATOMIC_RELAXED);
    usleep(1000);
  }
  if (__atomic_load_n(&emulated_meter.refuses, __ATOMIC_RELAXED)) return PROF_BACKEND_PERMISSION;
  *known_out = 0;
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t device = metrics[i].device;
    const int64_t power_mw = __atomic_load_n(&emulated_meter.power_mw[device], __ATOMIC_RELAXED);
    const int64_t clock_mhz = __atomic_load_n(&emulated_meter.clock_mhz[device], __ATOMIC_RELAXED);
    if (__atomic_load_n(&emulated_meter.unknown_device, __ATOMIC_RELAXED) == device + 1) continue;
    const int64_t values[KINDS] = {
        power_mw,
        energy_uj(power_mw),
        __atomic_load_n(&emulated_meter.memory_bytes[device], __ATOMIC_RELAXED),
        40 + device,
        clock_mhz ? clock_mhz : 1500 + device,
        __atomic_load_n(&emulated_meter.reasons[device], __ATOMIC_RELAXED)};
    values_out[i] = values[metrics[i].id];
    *known_out |= UINT64_C(1) << i;
  }
  return PROF_BACKEND_OK;
}
