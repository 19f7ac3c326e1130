/* See smi.h. */
#include "smi.h"

#include <stdio.h>

#include "../base/library.h"

/* .1 is Debian's */
static const char *const smi_names[] = {"librocm_smi64.so.7", "librocm_smi64.so.6",
                                        "librocm_smi64.so.5", "librocm_smi64.so.1"};
enum { SMI_NAMES = sizeof smi_names / sizeof *smi_names, UNKNOWN = UINT32_MAX };

static struct {
  bool was_tried, is_initialized;
  char reason[200];
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration's */
#define MEMBER(name, arguments) int32_t(*name) arguments;
  PROF_I_RSMI_FUNCTIONS(MEMBER)
#undef MEMBER
} smi;

/* A copy that the process has comes first. */
static void *open_smi_library(const prof_backend_host *host, bool may_search,
                              prof_i_library_error *why) {
  const char *const wanted = host->option("ROCM_SMI");
  const char *unused;
  void *library = wanted && *wanted ? prof_i_library_try(wanted, why) : NULL;
  for (int i = 0; i < SMI_NAMES && !library && may_search; i++)
    library = prof_i_library_open(smi_names[i], 1, &unused);
  for (int i = 0; i < SMI_NAMES && !library && may_search; i++)
    library = prof_i_library_try(smi_names[i], why);
  return library;
}

/* The first function that is not there; NULL: all are. */
static const char *resolve_smi(void *library) {
  const char *missing = NULL;
#define RESOLVE(name, arguments)                             \
  *(void **)&smi.name = prof_i_library_find(library, #name); \
  if (!smi.name && !missing) missing = #name;
  PROF_I_RSMI_FUNCTIONS(RESOLVE)
#undef RESOLVE
  return missing;
}

static void init_smi(const prof_backend_host *host, bool may_search) {
  prof_i_library_error why = {0};
  void *const library = open_smi_library(host, may_search, &why);
  const char *const missing = library ? resolve_smi(library) : NULL;
  const int32_t error = library && !missing ? smi.rsmi_init(0) : 0;
  smi.is_initialized = library && !missing && error == 0;
  if (missing)
    snprintf(smi.reason, sizeof smi.reason, "ROCm SMI has no %s()", missing);
  else if (error != 0)
    snprintf(smi.reason, sizeof smi.reason, "rsmi_init: error %d", error);
  else if (!library)
    snprintf(smi.reason, sizeof smi.reason, "%s", why.text);
}

bool prof_i_hip_smi_init(const prof_backend_host *host, bool may_search) {
  if (smi.was_tried || !prof_i_library_can_open()) return smi.is_initialized;
  smi.was_tried = true;
  init_smi(host, may_search);
  return smi.is_initialized;
}

const char *prof_i_hip_smi_reason(void) { return smi.reason; }

uint32_t prof_i_hip_smi_find(uint32_t domain, uint32_t bus, uint32_t device, uint32_t function) {
  const uint64_t place = (uint64_t)domain << 32 | (uint64_t)bus << 8 | device << 3 | function;
  uint32_t count = 0;
  if (!smi.is_initialized || smi.rsmi_num_monitor_devices(&count) != 0) return UNKNOWN;
  for (uint32_t i = 0; i < count; i++) {
    uint64_t its = 0;
    if (smi.rsmi_dev_pci_id_get(i, &its) == 0 && its == place) return i;
  }
  return UNKNOWN;
}

bool prof_i_hip_smi_energy(uint32_t index, int64_t *uj_out) {
  uint64_t count = 0, timestamp;
  float microjoules = 0;
  if (!smi.is_initialized || index == UNKNOWN ||
      smi.rsmi_dev_energy_count_get(index, &count, &microjoules, &timestamp) != 0 || count == 0)
    return false;
  *uj_out = (int64_t)((double)count * (double)microjoules);
  return true;
}
