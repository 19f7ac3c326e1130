/* See smi.h. */
#include "smi.h"

#include <stdio.h>

#include "../base/library.h"

/* .1 is Debian's */
static const char *const names[] = {"librocm_smi64.so.7", "librocm_smi64.so.6",
                                    "librocm_smi64.so.5", "librocm_smi64.so.1"};
enum { NAMES = sizeof names / sizeof *names, UNKNOWN = UINT32_MAX };

static struct {
  bool has_tried, has_begun;
  char why_not[200];
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration's */
#define MEMBER(name, arguments) int32_t(*name) arguments;
  PROF_I_RSMI_FUNCTIONS(MEMBER)
#undef MEMBER
} own;

/* A copy that the process has comes first. */
static void *find(const prof_backend_host *host, bool may_search, prof_i_library_why *why) {
  const char *const wanted = host->option("ROCM_SMI");
  const char *unused;
  void *library = wanted && *wanted ? prof_i_library_try(wanted, why) : NULL;
  for (int i = 0; i < NAMES && !library && may_search; i++)
    library = prof_i_library_open(names[i], 1, &unused);
  for (int i = 0; i < NAMES && !library && may_search; i++)
    library = prof_i_library_try(names[i], why);
  return library;
}

/* The first function that is not there; NULL: all are. */
static const char *resolve(void *library) {
  const char *missing = NULL;
#define RESOLVE(name, arguments)                             \
  *(void **)&own.name = prof_i_library_find(library, #name); \
  if (!own.name && !missing) missing = #name;
  PROF_I_RSMI_FUNCTIONS(RESOLVE)
#undef RESOLVE
  return missing;
}

static void begin(const prof_backend_host *host, bool may_search) {
  prof_i_library_why why = {0};
  void *const library = find(host, may_search, &why);
  const char *const missing = library ? resolve(library) : NULL;
  const int32_t error = library && !missing ? own.rsmi_init(0) : 0;
  own.has_begun = library && !missing && error == 0;
  if (missing)
    snprintf(own.why_not, sizeof own.why_not, "ROCm SMI has no %s()", missing);
  else if (error != 0)
    snprintf(own.why_not, sizeof own.why_not, "rsmi_init: error %d", error);
  else if (!library)
    snprintf(own.why_not, sizeof own.why_not, "%s", why.text);
}

bool prof_i_hip_smi_begin(const prof_backend_host *host, bool may_search) {
  if (own.has_tried || !prof_i_library_can_open()) return own.has_begun;
  own.has_tried = true;
  begin(host, may_search);
  return own.has_begun;
}

const char *prof_i_hip_smi_why_not(void) { return own.why_not; }

uint32_t prof_i_hip_smi_find(uint32_t domain, uint32_t bus, uint32_t device, uint32_t function) {
  const uint64_t place = (uint64_t)domain << 32 | (uint64_t)bus << 8 | device << 3 | function;
  uint32_t count = 0;
  if (!own.has_begun || own.rsmi_num_monitor_devices(&count) != 0) return UNKNOWN;
  for (uint32_t i = 0; i < count; i++) {
    uint64_t its = 0;
    if (own.rsmi_dev_pci_id_get(i, &its) == 0 && its == place) return i;
  }
  return UNKNOWN;
}

bool prof_i_hip_smi_energy(uint32_t index, int64_t *uj_out) {
  uint64_t count = 0, timestamp;
  float microjoules = 0;
  if (!own.has_begun || index == UNKNOWN ||
      own.rsmi_dev_energy_count_get(index, &count, &microjoules, &timestamp) != 0 || count == 0)
    return false;
  *uj_out = (int64_t)((double)count * (double)microjoules);
  return true;
}
