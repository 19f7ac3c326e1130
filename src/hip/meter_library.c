/* See meter_library.h. */
#include "meter_library.h"

#include <stdio.h>

#include "../device/vendor.h"

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
  if (!smi.is_initialized || smi.functions.rsmi_num_monitor_devices(&count) != 0) return UNKNOWN;
  for (uint32_t i = 0; i < count; i++) {
    uint64_t its = 0;
    if (smi.functions.rsmi_dev_pci_id_get(i, &its) == 0 && its == place) return i;
  }
  return UNKNOWN;
}

bool prof_i_hip_smi_energy(uint32_t index, int64_t *uj_out) {
  uint64_t count = 0, timestamp;
  float microjoules = 0;
  if (!smi.is_initialized || index == UNKNOWN ||
      smi.functions.rsmi_dev_energy_count_get(index, &count, &microjoules, &timestamp) != 0 ||
      count == 0)
    return false;
  *uj_out = (int64_t)((double)count * (double)microjoules);
  return true;
}
