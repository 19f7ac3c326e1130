/* AMD's meters by sysfs. If the program uses HIP when the sampler starts, devices are matched by
   PCI address and have HIP's numbers; devices that HIP does not see follow. Otherwise they are
   numbered in the order of the bus. */
#define _GNU_SOURCE
#include "internal.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/port.h"
#include "../device/vendor.h"

/* ---- the library ---- */

enum { UNKNOWN = UINT32_MAX };

/* .1 is Debian's */
static const char *const smi_names[] = {"librocm_smi64.so.7", "librocm_smi64.so.6",
                                        "librocm_smi64.so.5", "librocm_smi64.so.1", NULL};

typedef struct smi_functions {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration's */
#define MEMBER(name, arguments) int32_t(*name) arguments;
  PROF_I_RSMI_FUNCTIONS(MEMBER)
#undef MEMBER
} smi_functions;

static struct {
  bool was_tried, is_initialized;
  char reason[200];
  smi_functions functions;
} smi;

static const prof_i_vendor_symbol smi_symbols[] = {
#define SYMBOL(name, arguments) {#name, offsetof(smi_functions, name), PROF_I_VENDOR_NEEDED},
    PROF_I_RSMI_FUNCTIONS(SYMBOL)
#undef SYMBOL
};

static const prof_i_vendor_library smi_library = {
    .names = smi_names,
    .symbols = smi_symbols,
    .symbol_count = sizeof smi_symbols / sizeof *smi_symbols,
    .functions = &smi.functions};

/* The option comes first, then a copy that the process has. */
static void *open_smi_library(const prof_backend_host *host, bool may_search,
                              prof_i_library_error *why) {
  const char *const wanted = host->option("ROCM_SMI");
  const char *name;
  void *library = wanted && *wanted ? prof_i_library_try(wanted, why) : NULL;
  if (!library && may_search) library = prof_i_vendor_library_find_loaded(&smi_library, &name);
  if (!library && may_search)
    library = prof_i_vendor_library_find_installed(&smi_library, &name, why);
  return library;
}

static void init_smi(const prof_backend_host *host, bool may_search) {
  prof_i_library_error why = {0};
  void *const library = open_smi_library(host, may_search, &why);
  const char *const missing = library ? prof_i_vendor_library_resolve(&smi_library, library) : NULL;
  const int32_t error = library && !missing ? smi.functions.rsmi_init(0) : 0;
  smi.is_initialized = library && !missing && error == 0;
  if (missing)
    snprintf(smi.reason, sizeof smi.reason, "ROCm SMI has no %s()", missing);
  else if (error != 0)
    snprintf(smi.reason, sizeof smi.reason, "rsmi_init: error %d", error);
  else if (!library)
    snprintf(smi.reason, sizeof smi.reason, "%s", why.text);
}

/* False: it is missing or cannot be initialised. The option ROCM_SMI (PROF_BACKEND_ROCM_SMI) names
   its file; else (may_search) the system finds it. Once; one thread at a time, as below. */
static bool hip_smi_init(const prof_backend_host *host, bool may_search) {
  if (smi.was_tried || !prof_i_library_can_open()) return smi.is_initialized;
  smi.was_tried = true;
  init_smi(host, may_search);
  return smi.is_initialized;
}

/* "": it is initialised, or was not wanted; else why not. */
static const char *hip_smi_reason(void) { return smi.reason; }

/* Its number of the device with that PCI address; UINT32_MAX: not known. */
static uint32_t hip_smi_find(uint32_t domain, uint32_t bus, uint32_t device, uint32_t function) {
  const uint64_t place = (uint64_t)domain << 32 | (uint64_t)bus << 8 | device << 3 | function;
  uint32_t count = 0;
  if (!smi.is_initialized || smi.functions.rsmi_num_monitor_devices(&count) != 0) return UNKNOWN;
  for (uint32_t i = 0; i < count; i++) {
    uint64_t its = 0;
    if (smi.functions.rsmi_dev_pci_id_get(i, &its) == 0 && its == place) return i;
  }
  return UNKNOWN;
}

/* In uJ since a fixed time. */
static bool hip_smi_energy(uint32_t index, int64_t *uj_out) {
  uint64_t count = 0, timestamp;
  float microjoules = 0;
  if (!smi.is_initialized || index == UNKNOWN ||
      smi.functions.rsmi_dev_energy_count_get(index, &count, &microjoules, &timestamp) != 0 ||
      count == 0)
    return false;
  *uj_out = (int64_t)((double)count * (double)microjoules);
  return true;
}

/* ---- meters ---- */

enum { DEVICES_MAX = 64, FOLDER_BYTES = 1024, AMD_VENDOR_ID = 0x1002 };

typedef struct amd_device {
  char folder[FOLDER_BYTES], sensors[FOLDER_BYTES]; /* sensors: its hwmon's; "": it has none */
  uint32_t domain, bus, device, function;
  uint32_t number; /* that prof gives it */
  uint32_t smi;    /* and ROCm SMI; UINT32_MAX: it does not know it */
} amd_device;

static struct {
  char root[FOLDER_BYTES / 2]; /* PROF_SYSFS_ROOT, as the host's meters have it: before /sys */
  amd_device all[DEVICES_MAX]; /* not changed once they are listed */
  uint32_t count;
  char remark[240];
} amd_device_list;

static int refuse_amdgpu_in_child(void) {
  return prof_i_backend_fail_text(PROF_BACKEND_FORKED,
                                  "this process was forked from the one that listed the devices");
}

/* ---- readings ---- */

static bool read_text(const char *folder, const char *name, char *to, size_t room) {
  char path[FOLDER_BYTES + 64];
  return *folder && snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path &&
         prof_i_port_read_small(path, to, room) > 0;
}

static bool read_amdgpu_number(const char *folder, const char *name, int64_t *out) {
  char text[48], *end = text;
  if (!read_text(folder, name, text, sizeof text)) return false;
  *out = strtoll(text, &end, 0);
  return end != text;
}

/* On a board with two dies the first reports the power of both, the second 0 or nothing. */
static bool read_amdgpu_power(const amd_device *device, int64_t *out) {
  return (read_amdgpu_number(device->sensors, "power1_average", out) ||
          read_amdgpu_number(device->sensors, "power1_input", out)) &&
         *out > 0;
}

/* 0 on a second die, as power is. */
static bool read_amdgpu_energy(const amd_device *device, int64_t *out) {
  return hip_smi_energy(device->smi, out);
}

static bool read_amdgpu_memory(const amd_device *device, int64_t *out) {
  return read_amdgpu_number(device->folder, "mem_info_vram_used", out);
}
static bool read_amdgpu_busy(const amd_device *device, int64_t *out) {
  return read_amdgpu_number(device->folder, "gpu_busy_percent", out);
}
static bool read_amdgpu_memory_busy(const amd_device *device, int64_t *out) {
  return read_amdgpu_number(device->folder, "mem_busy_percent", out);
}
static bool read_amdgpu_clock(const amd_device *device, int64_t *out) {
  return read_amdgpu_number(device->sensors, "freq1_input", out);
}
static bool read_amdgpu_memory_clock(const amd_device *device, int64_t *out) {
  return read_amdgpu_number(device->sensors, "freq2_input", out);
}
static bool read_amdgpu_temperature(const amd_device *device, int64_t *out) {
  return read_amdgpu_number(device->sensors, "temp1_input", out);
}

/* least_us: the driver asks the board's own controller no more often than about once a
   millisecond. */
static const struct {
  const char *name, *unit;
  double scale;
  uint32_t is_total;
  bool (*read)(const amd_device *device, int64_t *out);
} amdgpu_metrics[] = {{"power", "W", 1e-6, 0, read_amdgpu_power},
                      {"energy", "J", 1e-6, 1, read_amdgpu_energy},
                      {"memory used", "B", 1, 0, read_amdgpu_memory},
                      {"utilisation", "%", 1, 0, read_amdgpu_busy},
                      {"memory utilisation", "%", 1, 0, read_amdgpu_memory_busy},
                      {"clock", "Hz", 1, 0, read_amdgpu_clock},
                      {"memory clock", "Hz", 1, 0, read_amdgpu_memory_clock},
                      {"temperature", "degC", 1e-3, 0, read_amdgpu_temperature}};
enum { AMDGPU_METRICS = sizeof amdgpu_metrics / sizeof *amdgpu_metrics, LEAST_US = 1000 };

/* ---- devices ---- */

/* The first of its hwmon folders. */
static void find_sensors(amd_device *device) {
  char folder[FOLDER_BYTES];
  if (snprintf(folder, sizeof folder, "%s/hwmon", device->folder) >= (int)sizeof folder) return;
  DIR *const all = opendir(folder);
  for (struct dirent *entry; all && (entry = readdir(all)) != NULL;) {
    if (strncmp(entry->d_name, "hwmon", 5) != 0) continue;
    if (snprintf(device->sensors, sizeof device->sensors, "%s/%s", folder, entry->d_name) >=
        (int)sizeof device->sensors)
      device->sensors[0] = '\0';
    break;
  }
  if (all) closedir(all);
}

/* PCI_SLOT_NAME of its uevent: "0000:c3:00.0". */
static void find_pci_address(amd_device *device) {
  char text[1024];
  const char *const slot = read_text(device->folder, "uevent", text, sizeof text)
                               ? strstr(text, "PCI_SLOT_NAME=")
                               : NULL;
  if (slot) /* NOLINTNEXTLINE(cert-err34-c): what does not fit stays 0 */
    sscanf(slot, "PCI_SLOT_NAME=%x:%x:%x.%x", &device->domain, &device->bus, &device->device,
           &device->function);
}

/* "card0", and not "card0-DP-1", a connector of it. */
static void add_amd_device(const char *folder, const char *name) {
  amd_device *const device = &amd_device_list.all[amd_device_list.count];
  int64_t vendor = 0;
  char *end = NULL;
  if (strncmp(name, "card", 4) != 0 || amd_device_list.count == DEVICES_MAX) return;
  strtoul(name + 4, &end, 10);
  if (end == name + 4 || *end) return;
  *device = (amd_device){.smi = UINT32_MAX};
  if (snprintf(device->folder, sizeof device->folder, "%s/%s/device", folder, name) >=
      (int)sizeof device->folder)
    return;
  if (!read_amdgpu_number(device->folder, "vendor", &vendor) || vendor != AMD_VENDOR_ID) return;
  find_sensors(device);
  find_pci_address(device);
  amd_device_list.count++;
}

static int compare_pci_addresses(const void *a, const void *b) {
  const amd_device *const x = a, *const y = b;
  const uint32_t of_x[] = {x->domain, x->bus, x->device, x->function},
                 of_y[] = {y->domain, y->bus, y->device, y->function};
  for (int i = 0; i < 4; i++)
    if (of_x[i] != of_y[i]) return of_x[i] < of_y[i] ? -1 : 1;
  return strcmp(x->folder, y->folder);
}

/* Its number among HIP's devices; UINT32_MAX: HIP does not see it, or is not in use. */
static uint32_t hip_number_of(const amd_device *device) {
  for (uint32_t i = 0; i < prof_i_hip_devices_count(); i++) {
    prof_backend_device about = {.size = sizeof about};
    prof_i_hip_device_describe(i, &about);
    if (about.pci_domain == device->domain && about.pci_bus == device->bus &&
        about.pci_device == device->device)
      return i;
  }
  return UINT32_MAX;
}

static void list_amd_devices(void) {
  char folder[FOLDER_BYTES];
  const char *const root = secure_getenv("PROF_SYSFS_ROOT");
  amd_device_list.count = 0;
  snprintf(amd_device_list.root, sizeof amd_device_list.root, "%s", root ? root : "");
  snprintf(folder, sizeof folder, "%s/sys/class/drm", amd_device_list.root);
  DIR *const cards = opendir(folder);
  for (struct dirent *entry; cards && (entry = readdir(cards)) != NULL;)
    add_amd_device(folder, entry->d_name);
  if (cards) closedir(cards);
  qsort(amd_device_list.all, amd_device_list.count, sizeof *amd_device_list.all,
        compare_pci_addresses);
  for (uint32_t i = 0, behind = prof_i_hip_devices_count(); i < amd_device_list.count; i++) {
    const uint32_t number = hip_number_of(&amd_device_list.all[i]);
    amd_device_list.all[i].number = number == UINT32_MAX ? behind++ : number;
  }
}

/* ---- the table's ---- */

static int amdgpu_probe(const prof_backend_host *host) {
  (void)host;
  list_amd_devices();
  return amd_device_list.count
             ? PROF_BACKEND_OK
             : prof_i_backend_fail(PROF_BACKEND_NO_DEVICE,
                                   "%s/sys/class/drm lists no device of AMD's (vendor 0x1002)",
                                   amd_device_list.root);
}

/* ROCm SMI knows nothing of a folder that replaces the kernel's. */
static void find_smi_indices(const prof_backend_host *host) {
  if (!hip_smi_init(host, !*amd_device_list.root)) return;
  for (uint32_t i = 0; i < amd_device_list.count; i++)
    amd_device_list.all[i].smi =
        hip_smi_find(amd_device_list.all[i].domain, amd_device_list.all[i].bus,
                     amd_device_list.all[i].device, amd_device_list.all[i].function);
}

static bool is_second_die(const amd_device *device) {
  int64_t power;
  return (read_amdgpu_number(device->sensors, "power1_average", &power) ||
          read_amdgpu_number(device->sensors, "power1_input", &power)) &&
         power <= 0;
}

/* Says which readings are missing. */
static const char *amdgpu_remark(prof_backend_self *self) {
  const amd_device *second = NULL;
  const char *const why_not = hip_smi_reason();
  char dies[96] = "", energy[240] = "";
  (void)self;
  for (uint32_t i = amd_device_list.count; i-- > 0;)
    if (is_second_die(&amd_device_list.all[i])) second = &amd_device_list.all[i];
  if (second)
    snprintf(dies, sizeof dies,
             "device %u tells no power: a second die, whose board's first tells both's",
             second->number);
  if (*why_not)
    snprintf(energy, sizeof energy, "%stells no energy: %s", second ? "; it " : "", why_not);
  snprintf(amd_device_list.remark, sizeof amd_device_list.remark, "%s%s", dies, energy);
  return amd_device_list.remark;
}

static int amdgpu_open(const prof_backend_host *host, prof_backend_self **self_out) {
  static prof_backend_self self;
  const int result = amdgpu_probe(host); /* again: HIP may know them by now */
  if (result == PROF_BACKEND_OK) {
    *self_out = &self;
    find_smi_indices(host);
  }
  return result;
}

static const amd_device *find_amd_device(uint32_t number) {
  for (uint32_t i = 0; i < amd_device_list.count; i++)
    if (amd_device_list.all[i].number == number) return &amd_device_list.all[i];
  return NULL;
}

static int amdgpu_describe_device(prof_backend_self *self, uint32_t index,
                                  prof_backend_device *out) {
  if (prof_i_vendor_is_forked(self)) return refuse_amdgpu_in_child();
  const amd_device *const device = find_amd_device(index);
  if (!device) return prof_i_vendor_no_device(index);
  prof_backend_device about = {.size = out->size,
                               .pci_domain = device->domain,
                               .pci_bus = device->bus,
                               .pci_device = device->device,
                               .pci_function = device->function};
  int64_t bytes = 0;
  if (!read_text(device->folder, "product_name", about.name, sizeof about.name))
    snprintf(about.name, sizeof about.name, "AMD GPU at %04x:%02x:%02x.%x", device->domain,
             device->bus, device->device, device->function);
  about.name[strcspn(about.name, "\n")] = '\0';
  if (read_amdgpu_number(device->folder, "mem_info_vram_total", &bytes) && bytes > 0)
    about.memory_bytes = (uint64_t)bytes;
  return prof_i_vendor_copy_device(out, &about);
}

/* Readings that a device does not have are left out. */
static int amdgpu_metric(prof_backend_self *self, uint32_t number, prof_backend_metric *out) {
  uint32_t met = 0;
  if (prof_i_vendor_is_forked(self)) return refuse_amdgpu_in_child();
  for (uint32_t i = 0; i < amd_device_list.count * AMDGPU_METRICS; i++) {
    const amd_device *const device = &amd_device_list.all[i / AMDGPU_METRICS];
    const uint32_t kind = i % AMDGPU_METRICS;
    int64_t unused;
    if (!amdgpu_metrics[kind].read(device, &unused) || met++ != number) continue;
    prof_backend_metric made = {.size = out->size,
                                .device = device->number,
                                .id = kind,
                                .is_total = amdgpu_metrics[kind].is_total,
                                .least_us = LEAST_US,
                                .scale = amdgpu_metrics[kind].scale};
    snprintf(made.name, sizeof made.name, "%s", amdgpu_metrics[kind].name);
    snprintf(made.unit, sizeof made.unit, "%s", amdgpu_metrics[kind].unit);
    return prof_i_vendor_copy_metric(out, &made);
  }
  return prof_i_backend_fail(PROF_BACKEND_NO_DEVICE, "there are %u meters", met);
}

static int amdgpu_sample(prof_backend_self *self, const prof_backend_metric *metrics,
                         uint32_t count, int64_t *values_out, uint64_t *known_out) {
  if (prof_i_vendor_is_forked(self)) return refuse_amdgpu_in_child();
  *known_out = 0;
  for (uint32_t i = 0; i < count; i++) {
    const amd_device *const device =
        metrics[i].id < AMDGPU_METRICS ? find_amd_device(metrics[i].device) : NULL;
    if (device && amdgpu_metrics[metrics[i].id].read(device, &values_out[i]))
      *known_out |= UINT64_C(1) << i;
  }
  return PROF_BACKEND_OK;
}

const prof_backend prof_i_amdgpu_backend = {.size = sizeof prof_i_amdgpu_backend,
                                            .major = PROF_BACKEND_MAJOR,
                                            .minor = PROF_BACKEND_MINOR,
                                            .device_type = PROF_DEVICE_ROCM,
                                            .name = "amdgpu",
                                            .version = "1.0 (never run on AMD hardware)",
                                            .probe = amdgpu_probe,
                                            .open = amdgpu_open,
                                            .fork_child = prof_i_vendor_fork_child,
                                            .last_error = prof_i_vendor_last_error,
                                            .device = amdgpu_describe_device,
                                            .metric = amdgpu_metric,
                                            .sample = amdgpu_sample,
                                            .remark = amdgpu_remark};
