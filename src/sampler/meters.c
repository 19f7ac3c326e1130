/* Reads the meters of back ends and of the host. See internal.h. */
#define _GNU_SOURCE
#include "internal.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/port.h"

/* ---- the host's own meters ---- */

/* The processors' energy by RAPL and the batteries' power, with the interface of a back end. For
   tests, PROF_SYSFS_ROOT replaces the / before /sys. A program with more rights than its user
   ignores it. */

/* ---- energy of processors' packages ---- */

static bool read_energy_number(const char *folder, int package, const char *name,
                               uint64_t *number_out) {
  char path[512], text[32];
  /* AMD's have the same name */
  snprintf(path, sizeof path, "%s/intel-rapl:%d/%s", folder, package, name);
  if (!prof_i_port_read_small(path, text, sizeof text)) return false;
  char *end = text;
  *number_out = strtoull(text, &end, 10);
  return end != text;
}

void prof_i_energy_begin(prof_i_energy *energy, const char *folder) {
  energy->count = 0;
  for (int i = 0; i < PROF_I_PACKAGES_MAX; i++) {
    uint64_t begun = 0, range = 0;
    if (!read_energy_number(folder, i, "energy_uj", &begun) ||
        !read_energy_number(folder, i, "max_energy_range_uj", &range))
      continue;
    energy->packages[energy->count].number = i;
    energy->packages[energy->count].begun_uj = begun;
    energy->packages[energy->count++].range_uj = range;
  }
}

/* What was used between two readings, in uJ. False: the second lacks packages of the first. */
static bool energy_between(const prof_i_energy *from, const prof_i_energy *to, uint64_t *uj_out) {
  uint64_t sum = 0;
  for (int i = 0, at = 0; i < from->count; i++) {
    while (at < to->count && to->packages[at].number != from->packages[i].number) at++;
    if (at == to->count) return false;
    const uint64_t begun = from->packages[i].begun_uj, range = from->packages[i].range_uj,
                   now = to->packages[at].begun_uj;
    if (now < begun && range < begun) return false;
    sum += now >= begun ? now - begun : range - begun + now;
  }
  *uj_out = sum;
  return from->count > 0;
}

bool prof_i_energy_end(const prof_i_energy *energy, const char *folder, uint64_t *uj_out) {
  prof_i_energy now;
  prof_i_energy_begin(&now, folder);
  return energy_between(energy, &now, uj_out);
}

enum { HOST_ENERGY = 1, HOST_BATTERY = 2, LEAST_US = 1000 };

static struct {
  /* PROF_SYSFS_ROOT, read when the sampler starts: a program may change its environment while the
     sampler's thread is at work */
  char root[PATH_MAX / 2];
  prof_i_energy energy; /* at the last sample */
  int64_t total_uj;
} host_state;

static void path_in_sys(char to[PATH_MAX], const char *path) {
  snprintf(to, PATH_MAX, "%s%s", host_state.root, path);
}

/* ---- batteries ---- */

static bool read_supply_number(const char *folder, const char *entry, const char *name,
                               int64_t *value_out) {
  char path[PATH_MAX], text[32];
  const int bytes = snprintf(path, sizeof path, "%s/%s/%s", folder, entry, name);
  if (bytes <= 0 || bytes >= (int)sizeof path || !prof_i_port_read_small(path, text, sizeof text))
    return false;
  char *end = text;
  *value_out = strtoll(text, &end, 10);
  return end != text;
}

/* uW. Some batteries report it, others current (uA) and voltage (uV). */
static bool battery_power_of(const char *folder, const char *entry, int64_t *uw_out) {
  int64_t ua, uv;
  if (read_supply_number(folder, entry, "power_now", uw_out)) return true;
  if (!read_supply_number(folder, entry, "current_now", &ua) ||
      !read_supply_number(folder, entry, "voltage_now", &uv))
    return false;
  *uw_out = (int64_t)((double)ua * (double)uv / 1e6);
  return true;
}

/* All batteries together; chargers report no power. */
static bool read_batteries(int64_t *uw_out) {
  char folder[PATH_MAX];
  bool is_known = false;
  path_in_sys(folder, "/sys/class/power_supply");
  DIR *const supplies = opendir(folder);
  *uw_out = 0;
  for (struct dirent *entry; supplies && (entry = readdir(supplies)) != NULL;) {
    int64_t uw;
    if (entry->d_name[0] == '.' || !battery_power_of(folder, entry->d_name, &uw)) continue;
    *uw_out += uw == INT64_MIN ? 0 : uw < 0 ? -uw : uw;
    is_known = true;
  }
  if (supplies) closedir(supplies);
  return is_known;
}

/* ---- energy ---- */

/* The packages' counters wrap around; the total does not. If a package has appeared or gone, the
   total goes back by one, so no difference is computed. */
static bool read_host_energy(int64_t *uj_out) {
  char folder[PATH_MAX];
  prof_i_energy now;
  uint64_t since_uj = 0;
  path_in_sys(folder, PROF_I_POWERCAP);
  prof_i_energy_begin(&now, folder);
  const bool goes_on =
      host_state.energy.count == now.count && energy_between(&host_state.energy, &now, &since_uj);
  host_state.total_uj += goes_on ? (int64_t)since_uj : -1;
  host_state.energy = now;
  *uj_out = host_state.total_uj;
  return now.count > 0;
}

/* ---- the face ---- */

static prof_backend_metric describe_host_meter(uint32_t id) {
  prof_backend_metric metric = {.size = sizeof metric,
                                .id = id,
                                .is_total = id == HOST_ENERGY,
                                .least_us = LEAST_US,
                                .scale = 1e-6};
  snprintf(metric.name, sizeof metric.name, "%s", id == HOST_ENERGY ? "energy" : "battery power");
  snprintf(metric.unit, sizeof metric.unit, "%s", id == HOST_ENERGY ? "J" : "W");
  return metric;
}

void prof_i_host_meters_init(void) {
  const char *const root = secure_getenv("PROF_SYSFS_ROOT");
  snprintf(host_state.root, sizeof host_state.root, "%s", root ? root : "");
}

/* As prof_backend.metric and .sample: one thread at a time. */
static int host_meters_metric(uint32_t number, prof_backend_metric *out) {
  const struct {
    uint32_t id;
    bool (*read)(int64_t *value_out);
  } all[] = {{HOST_ENERGY, read_host_energy}, {HOST_BATTERY, read_batteries}};
  uint32_t met = 0;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    int64_t unused;
    if (!all[i].read(&unused) || met++ != number) continue;
    *out = describe_host_meter(all[i].id);
    return PROF_BACKEND_OK;
  }
  return PROF_BACKEND_NO_DEVICE;
}

static int host_meters_sample(const prof_backend_metric *metrics, uint32_t count,
                              int64_t *values_out, uint64_t *known_out) {
  *known_out = 0;
  for (uint32_t i = 0; i < count && i < 64; i++)
    if (metrics[i].id == HOST_ENERGY ? read_host_energy(&values_out[i])
                                     : read_batteries(&values_out[i]))
      *known_out |= UINT64_C(1) << i;
  return PROF_BACKEND_OK;
}

static void write_no_meters_reason(char *to, size_t room) {
  char path[PATH_MAX];
  path_in_sys(path, PROF_I_POWERCAP "/intel-rapl:0/energy_uj");
  if (access(path, F_OK) != 0)
    snprintf(to, room,
             "this machine tells neither its processors' energy (%.80s) nor a battery's power",
             path);
  else
    snprintf(to, room, "%.80s cannot be read (%s): the system lets only root, or who it names",
             path, access(path, R_OK) != 0 ? strerror(errno) : "it says nothing");
}

void prof_i_host_meters_describe(prof_i_host_meters_info *out) {
  prof_backend_metric metric;
  size_t bytes = 0;
  *out = (prof_i_host_meters_info){.why_not = ""};
  for (uint32_t i = 0;
       bytes < sizeof out->meters && host_meters_metric(i, &metric) == PROF_BACKEND_OK; i++)
    bytes += (size_t)snprintf(out->meters + bytes, sizeof out->meters - bytes, "%s%s (%s)",
                              i ? ", " : "", metric.name, metric.unit);
  if (bytes == 0) write_no_meters_reason(out->why_not, sizeof out->why_not);
}

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
  const int result =
      backend ? backend->table.metric(backend->self, number, out) : host_meters_metric(number, out);
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
                           : host_meters_sample(metrics, count, values, &known);
    if (backend) prof_i_registry_release_meters(backend);
    const uint64_t now_ns = prof_i_port_monotonic_ns();
    for (uint32_t i = 0; i < count; i++)
      update_meter(&first[i], result == PROF_BACKEND_OK && (known >> i & 1), values[i], now_ns);
  }
}
