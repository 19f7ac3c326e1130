/* See smi.h. */
#include "smi.h"

#include "../core/library.h"

static const char *const names[] = {"librocm_smi64.so.7", "librocm_smi64.so.6", "librocm_smi64.so.5", "librocm_smi64.so.1"}; /* .1 is Debian's */
enum { NAMES = sizeof names / sizeof *names, UNKNOWN = UINT32_MAX };

static struct {
  bool has_tried, has_begun;
#define MEMBER(name, arguments) int32_t(*name) arguments; /* NOLINT(bugprone-macro-parentheses): a declaration's */
  PROF_I_RSMI_FUNCTIONS(MEMBER)
#undef MEMBER
} own;

static void *find(const prof_backend_host *host, bool may_search) {
  const char *const wanted = host->option("ROCM_SMI");
  const char *why;
  void *library = wanted && *wanted ? prof_i_library_open(wanted, 0, &why) : NULL;
  for (int i = 0; i < 2 * NAMES && !library && may_search; i++) library = prof_i_library_open(names[i % NAMES], i < NAMES, &why); /* a copy that the process has comes first */
  return library;
}

static bool resolve(void *library) {
  bool are_there = true;
#define RESOLVE(name, arguments)                               \
  *(void **)&own.name = prof_i_library_find(library, #name);   \
  are_there = are_there && own.name;
  PROF_I_RSMI_FUNCTIONS(RESOLVE)
#undef RESOLVE
  return are_there;
}

bool prof_i_hip_smi_begin(const prof_backend_host *host, bool may_search) {
  if (own.has_tried || !prof_i_library_can_open()) return own.has_begun;
  void *const library = find(host, may_search);
  own.has_tried = true;
  own.has_begun = library && resolve(library) && own.rsmi_init(0) == 0;
  return own.has_begun;
}

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
  if (!own.has_begun || index == UNKNOWN || own.rsmi_dev_energy_count_get(index, &count, &microjoules, &timestamp) != 0 || count == 0) return false;
  *uj_out = (int64_t)((double)count * (double)microjoules);
  return true;
}
