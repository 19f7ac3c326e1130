/* See meters.h. */
#define _GNU_SOURCE
#include "meters.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/port.h"
#include "host_meters.h"

/* ---- which ---- */

bool prof_i_meters_are_all(const char *devices) { return !devices || strcmp(devices, "all") == 0; }
bool prof_i_meters_are_hosts(const char *devices) {
  return devices && strcmp(devices, "host") == 0;
}

bool prof_i_meters_is_list(const char *devices) {
  if (prof_i_meters_are_all(devices) || prof_i_meters_are_hosts(devices)) return true;
  for (const char *at = devices;; at++) {
    if (!isdigit((unsigned char)*at)) return false;
    while (isdigit((unsigned char)*at)) at++;
    if (!*at) return true;
    if (*at != ',') return false;
  }
}

static bool is_among(const char *devices, uint32_t device) {
  if (prof_i_meters_are_all(devices)) return true;
  for (const char *at = devices; *at; at += *at == ',') {
    char *end;
    if (strtoul(at, &end, 10) == device) return true;
    at = end;
  }
  return false;
}

/* Of energy what it grows by in a second. */
static bool is_power(const prof_backend_metric *metric) {
  return strcmp(metric->unit, metric->is_total ? "J" : "W") == 0;
}

static bool is_of_mode(const prof_backend_metric *metric, uint32_t mode) {
  switch (mode) {
    case PROF_SAMPLE_POWER:
      return is_power(metric);
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

static void name_it(prof_i_meter *meter, const char *of) {
  const prof_backend_metric *const metric = &meter->metric;
  const bool is_made = metric->is_total && is_power(metric);
  const char *const name = is_made ? "average power" : metric->name;
  char unit[sizeof meter->unit];
  snprintf(unit, sizeof unit, "%.12s%s", is_made ? "W" : metric->unit,
           metric->is_total && !is_made ? "/s" : "");
  snprintf(meter->name, sizeof meter->name, "%s:%u %s (%s)", of, metric->device, name, unit);
  memcpy(meter->unit, unit, sizeof unit);
  meter->site = (prof_site){.file = "", .function = "prof_sampler_start", .level = 1};
}

/* ---- finding ---- */

static int ask(prof_i_back_end *end, uint32_t number, prof_backend_metric *out) {
  *out = (prof_backend_metric){.size = sizeof *out};
  if (end) prof_i_registry_have_meters(end);
  const int result =
      end ? end->table.metric(end->self, number, out) : prof_i_host_meters_metric(number, out);
  if (end) prof_i_registry_let_meters_go(end);
  out->name[sizeof out->name - 1] = out->unit[sizeof out->unit - 1] = '\0';
  return result;
}

static void add(prof_i_meters *meters, const prof_i_back_end *end,
                const prof_backend_metric *metric) {
  prof_i_meter *const meter = &meters->all[meters->count++];
  *meter = (prof_i_meter){.metric = *metric,
                          .device = PROF_HOST,
                          .is_host = !end,
                          .source = meters->source_count,
                          .number = meters->device_count + metric->device};
  if (end) meter->device = (prof_device){(int32_t)end->table.device_type, (int32_t)metric->device};
  if (end && metric->device < end->device_count)
    meter->memory_bytes = end->devices[metric->device].memory_bytes;
  name_it(meter, end ? end->table.name : "host");
}

static void end_batch(prof_i_meters *meters, prof_i_back_end *end, uint32_t first) {
  if (meters->count == first) return;
  meters->batches[meters->batch_count].end = end;
  meters->batches[meters->batch_count].first = first;
  meters->batches[meters->batch_count++].count = meters->count - first;
}

static void find_of(prof_i_meters *meters, prof_i_back_end *end, const char *devices,
                    uint32_t mode) {
  prof_backend_metric metric;
  const uint32_t begin = meters->count;
  uint32_t first = begin, device_count = 0;
  for (uint32_t number = 0;
       number < PROF_I_METERS_ASKED && ask(end, number, &metric) == PROF_BACKEND_OK; number++) {
    if (!is_of_mode(&metric, mode)) continue;
    if (metric.device + 1 > device_count) device_count = metric.device + 1;
    if (end && !is_among(devices, metric.device)) continue;
    if (meters->count == PROF_I_METERS_MAX) {
      meters->left_out_count++;
      continue;
    }
    if (meters->count - first == PROF_I_METERS_AT_ONCE) {
      end_batch(meters, end, first);
      first = meters->count;
    }
    add(meters, end, &metric);
  }
  end_batch(meters, end, first);
  meters->source_count += meters->count > begin;
  meters->device_count += device_count;
}

/* Of two that serve one device type the other one may be the one that is open. */
static bool may_open(const prof_i_back_end *end) {
  return !end->table.opens_late || prof_i_registry_is_open(end);
}

/* Meters that are another back end's have its devices' numbers, which it knows once it is open:
   where the program has its library, that begins nothing. */
static void open_what_numbers(void) {
  const prof_i_back_end *end;
  for (uint32_t i = 0; (end = prof_i_registry_at(i)) != NULL; i++)
    if (end->table.opens_late == 2 && end->table.in_use && end->table.in_use())
      prof_i_registry_open(end->table.device_type);
}

enum { PATIENCE_MS = 500 };

void prof_i_meters_find(prof_i_meters *meters, const char *devices, uint32_t mode) {
  prof_i_back_end *end;
  memset(meters, 0, sizeof *meters);
  const bool wants_host = prof_i_meters_are_all(devices) || prof_i_meters_are_hosts(devices);
  if (!prof_i_meters_are_hosts(devices)) {
    prof_i_registry_prepare();
    /* a start that asks for records may be at it, on prof's thread */
    prof_i_registry_wait(PATIENCE_MS);
    open_what_numbers();
  }
  for (uint32_t i = 0; !prof_i_meters_are_hosts(devices) && (end = prof_i_registry_at(i)) != NULL &&
                       meters->source_count < PROF_I_BACKENDS_MAX;
       i++)
    if (end->table.metric && end->table.sample && may_open(end) && prof_i_registry_open_meters(end))
      find_of(meters, end, devices, mode);
  if (wants_host) find_of(meters, NULL, devices, mode);
}

/* ---- reading ---- */

/* What overflows, or is made of a scale that is no number, is nobody's value. */
static void settle(prof_i_meter *meter, double value) {
  meter->is_known = isfinite(value);
  meter->value = meter->is_known ? value : 0;
}

/* Of a total what it grew by, by the time between; nothing at the first time, or where it has gone
   back. */
static void take(prof_i_meter *meter, bool is_known, int64_t raw, uint64_t now_ns) {
  meter->is_known = is_known;
  if (!is_known) return;
  if (!meter->metric.is_total) {
    settle(meter, (double)raw * meter->metric.scale);
    return;
  }
  const bool is_same = meter->last_ns && raw == meter->last &&
                       now_ns - meter->last_ns < meter->metric.least_us * UINT64_C(1000);
  meter->is_known = meter->last_ns && now_ns > meter->last_ns && raw >= meter->last && !is_same;
  if (is_same) return; /* it was asked too soon */
  if (meter->is_known)
    settle(meter, (double)((uint64_t)raw - (uint64_t)meter->last) * meter->metric.scale /
                      ((double)(now_ns - meter->last_ns) / 1e9));
  meter->last = raw;
  meter->last_ns = now_ns;
}

void prof_i_meters_read(prof_i_meters *meters) {
  for (uint32_t b = 0; b < meters->batch_count; b++) {
    prof_i_back_end *const end = meters->batches[b].end;
    prof_i_meter *const first = &meters->all[meters->batches[b].first];
    const uint32_t count = meters->batches[b].count;
    prof_backend_metric metrics[PROF_I_METERS_AT_ONCE];
    int64_t values[PROF_I_METERS_AT_ONCE] = {0};
    uint64_t known = 0;
    for (uint32_t i = 0; i < count; i++) metrics[i] = first[i].metric;
    if (end) prof_i_registry_have_meters(end);
    const int result = end ? end->table.sample(end->self, metrics, count, values, &known)
                           : prof_i_host_meters_sample(metrics, count, values, &known);
    if (end) prof_i_registry_let_meters_go(end);
    const uint64_t now_ns = prof_i_port_monotonic_ns();
    for (uint32_t i = 0; i < count; i++)
      take(&first[i], result == PROF_BACKEND_OK && (known >> i & 1), values[i], now_ns);
  }
}
