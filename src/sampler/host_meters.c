/* The host's own meters, as a back end has them: the processors' energy by RAPL, and the batteries'
   power. PROF_SYSFS_ROOT replaces the / before /sys for tests, but not in a program with more
   rights than its user. */
#define _GNU_SOURCE
#include "internal.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/port.h"
#include "energy.h"

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

int prof_i_host_meters_metric(uint32_t number, prof_backend_metric *out) {
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

int prof_i_host_meters_sample(const prof_backend_metric *metrics, uint32_t count,
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
       bytes < sizeof out->meters && prof_i_host_meters_metric(i, &metric) == PROF_BACKEND_OK; i++)
    bytes += (size_t)snprintf(out->meters + bytes, sizeof out->meters - bytes, "%s%s (%s)",
                              i ? ", " : "", metric.name, metric.unit);
  if (bytes == 0) write_no_meters_reason(out->why_not, sizeof out->why_not);
}
