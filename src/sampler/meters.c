/* See meters.h. */
#define _GNU_SOURCE
#include "meters.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/port.h"
#include "internal.h"

/* ---- which ---- */

bool prof_i_meters_selects_all(const char *devices) {
  return !devices || strcmp(devices, "all") == 0;
}
bool prof_i_meters_selects_host(const char *devices) {
  return devices && strcmp(devices, "host") == 0;
}

bool prof_i_meters_is_selection(const char *devices) {
  if (prof_i_meters_selects_all(devices) || prof_i_meters_selects_host(devices)) return true;
  for (const char *at = devices;; at++) {
    if (!isdigit((unsigned char)*at)) return false;
    while (isdigit((unsigned char)*at)) at++;
    if (!*at) return true;
    if (*at != ',') return false;
  }
}

static bool is_device_selected(const char *devices, uint32_t device) {
  if (prof_i_meters_selects_all(devices)) return true;
  for (const char *at = devices; *at; at += *at == ',') {
    char *rest;
    if (strtoul(at, &rest, 10) == device) return true;
    at = rest;
  }
  return false;
}

/* Of energy what it grows by in a second. */
static bool is_power_metric(const prof_backend_metric *metric) {
  return strcmp(metric->unit, metric->is_total ? "J" : "W") == 0;
}

static bool is_metric_of_mode(const prof_backend_metric *metric, uint32_t mode) {
  switch (mode) {
    case PROF_SAMPLE_POWER:
      return is_power_metric(metric);
    case PROF_SAMPLE_VRAM:
      return strcmp(metric->name, "memory used") == 0;
    case PROF_SAMPLE_UTILISATION:
      return strcmp(metric->unit, "%") == 0;
    case PROF_SAMPLE_CLOCK:
      return strcmp(metric->unit, "Hz") == 0;
    default:
      return true;
  }
}

static void name_meter(prof_i_meter *meter, const char *of) {
  const prof_backend_metric *const metric = &meter->metric;
  const bool is_made = metric->is_total && is_power_metric(metric);
  const char *const name = is_made ? "average power" : metric->name;
  char unit[sizeof meter->unit];
  snprintf(unit, sizeof unit, "%.12s%s", is_made ? "W" : metric->unit,
           metric->is_total && !is_made ? "/s" : "");
  snprintf(meter->name, sizeof meter->name, "%s:%u %s (%s)", of, metric->device, name, unit);
  memcpy(meter->unit, unit, sizeof unit);
  meter->site = (prof_site){.file = "", .function = "prof_sampler_start", .level = 1};
}

/* ---- finding ---- */

static int read_metric(prof_i_backend *backend, uint32_t number, prof_backend_metric *out) {
  *out = (prof_backend_metric){.size = sizeof *out};
  if (backend) prof_i_registry_acquire_meters(backend);
  const int result = backend ? backend->table.metric(backend->self, number, out)
                             : prof_i_host_meters_metric(number, out);
  if (backend) prof_i_registry_release_meters(backend);
  out->name[sizeof out->name - 1] = out->unit[sizeof out->unit - 1] = '\0';
  return result;
}

static void add_meter(prof_i_meters *meters, const prof_i_backend *backend,
                      const prof_backend_metric *metric) {
  prof_i_meter *const meter = &meters->all[meters->count++];
  *meter = (prof_i_meter){.metric = *metric,
                          .device = PROF_HOST,
                          .is_host = !backend,
                          .source = meters->source_count,
                          .number = meters->device_count + metric->device};
  if (backend)
    meter->device = (prof_device){(int32_t)backend->table.device_type, (int32_t)metric->device};
  if (backend && metric->device < backend->device_count)
    meter->memory_bytes = backend->devices[metric->device].memory_bytes;
  name_meter(meter, backend ? backend->table.name : "host");
}

static void end_batch(prof_i_meters *meters, prof_i_backend *backend, uint32_t first) {
  if (meters->count == first) return;
  meters->batches[meters->batch_count].backend = backend;
  meters->batches[meters->batch_count].first = first;
  meters->batches[meters->batch_count++].count = meters->count - first;
}

static void find_backend_meters(prof_i_meters *meters, prof_i_backend *backend, const char *devices,
                                uint32_t mode) {
  prof_backend_metric metric;
  const uint32_t begin = meters->count;
  uint32_t first = begin, device_count = 0;
  for (uint32_t number = 0; number < PROF_I_METRICS_TRIED_MAX &&
                            read_metric(backend, number, &metric) == PROF_BACKEND_OK;
       number++) {
    if (!is_metric_of_mode(&metric, mode)) continue;
    if (metric.device + 1 > device_count) device_count = metric.device + 1;
    if (backend && !is_device_selected(devices, metric.device)) continue;
    if (meters->count == PROF_I_METERS_MAX) {
      meters->left_out_count++;
      continue;
    }
    if (meters->count - first == PROF_I_METERS_BATCH_MAX) {
      end_batch(meters, backend, first);
      first = meters->count;
    }
    add_meter(meters, backend, &metric);
  }
  end_batch(meters, backend, first);
  meters->source_count += meters->count > begin;
  meters->device_count += device_count;
}

/* Of two that serve one device type the other one may be the one that is open. */
static bool may_open_backend(const prof_i_backend *backend) {
  return !backend->table.opens_late || prof_i_registry_is_open(backend);
}

/* Meters that are another back end's have its devices' numbers, which it knows once it is open:
   where the program has its library, that begins nothing. */
static void open_numbering_backends(void) {
  const prof_i_backend *backend;
  for (uint32_t i = 0; (backend = prof_i_registry_at(i)) != NULL; i++)
    if (backend->table.opens_late == 2 && backend->table.in_use && backend->table.in_use())
      prof_i_registry_open(backend->table.device_type);
}

enum { PATIENCE_MS = 500 };

void prof_i_meters_find(prof_i_meters *meters, const char *devices, uint32_t mode) {
  prof_i_backend *backend;
  memset(meters, 0, sizeof *meters);
  const bool wants_host = prof_i_meters_selects_all(devices) || prof_i_meters_selects_host(devices);
  if (!prof_i_meters_selects_host(devices)) {
    prof_i_registry_prepare();
    /* a start that asks for records may be at it, on prof's thread */
    prof_i_registry_wait(PATIENCE_MS);
    open_numbering_backends();
  }
  for (uint32_t i = 0;
       !prof_i_meters_selects_host(devices) && (backend = prof_i_registry_at(i)) != NULL &&
       meters->source_count < PROF_I_BACKENDS_MAX;
       i++)
    if (backend->table.metric && backend->table.sample && may_open_backend(backend) &&
        prof_i_registry_open_meters(backend))
      find_backend_meters(meters, backend, devices, mode);
  if (wants_host) find_backend_meters(meters, NULL, devices, mode);
}

/* ---- reading ---- */

/* A value that overflows, or has a scale that is not a number, is dropped. */
static void set_meter_value(prof_i_meter *meter, double value) {
  meter->is_known = isfinite(value);
  meter->value = meter->is_known ? value : 0;
}

/* Of a total what it grew by, by the time between; nothing at the first time, or where it has gone
   back. */
static void update_meter(prof_i_meter *meter, bool is_known, int64_t raw, uint64_t now_ns) {
  meter->is_known = is_known;
  if (!is_known) return;
  if (!meter->metric.is_total) {
    set_meter_value(meter, (double)raw * meter->metric.scale);
    return;
  }
  const bool is_same = meter->last_ns && raw == meter->last &&
                       now_ns - meter->last_ns < meter->metric.least_us * UINT64_C(1000);
  meter->is_known = meter->last_ns && now_ns > meter->last_ns && raw >= meter->last && !is_same;
  if (is_same) return; /* it was asked too soon */
  if (meter->is_known)
    set_meter_value(meter, (double)((uint64_t)raw - (uint64_t)meter->last) * meter->metric.scale /
                               ((double)(now_ns - meter->last_ns) / 1e9));
  meter->last = raw;
  meter->last_ns = now_ns;
}

void prof_i_meters_read(prof_i_meters *meters) {
  for (uint32_t b = 0; b < meters->batch_count; b++) {
    prof_i_backend *const backend = meters->batches[b].backend;
    prof_i_meter *const first = &meters->all[meters->batches[b].first];
    const uint32_t count = meters->batches[b].count;
    prof_backend_metric metrics[PROF_I_METERS_BATCH_MAX];
    int64_t values[PROF_I_METERS_BATCH_MAX] = {0};
    uint64_t known = 0;
    for (uint32_t i = 0; i < count; i++) metrics[i] = first[i].metric;
    if (backend) prof_i_registry_acquire_meters(backend);
    const int result = backend
                           ? backend->table.sample(backend->self, metrics, count, values, &known)
                           : prof_i_host_meters_sample(metrics, count, values, &known);
    if (backend) prof_i_registry_release_meters(backend);
    const uint64_t now_ns = prof_i_port_monotonic_ns();
    for (uint32_t i = 0; i < count; i++)
      update_meter(&first[i], result == PROF_BACKEND_OK && (known >> i & 1), values[i], now_ns);
  }
}
