/* An emulated librocm_smi64.so.7: the boards of test_amdgpu.c by their places on the bus, in
   another order. No device is behind it. */
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define SMI __attribute__((visibility("default")))

SMI uint32_t emulated_rsmi_inits, emulated_rsmi_init_error;

/* A second die tells no energy. */
static const struct {
  uint64_t place;
  int has_energy;
} boards[] = {{0x0d00, 1}, {0x0c01, 0}, {0x0c00, 1}};
enum { SUCCESS = 0, NOT_SUPPORTED = 2, INVALID = 1, BOARDS = sizeof boards / sizeof *boards };

SMI int32_t rsmi_init(uint64_t flags);
SMI int32_t rsmi_init(uint64_t flags) {
  (void)flags;
  __atomic_fetch_add(&emulated_rsmi_inits, 1, __ATOMIC_RELAXED);
  return (int32_t)emulated_rsmi_init_error;
}

SMI int32_t rsmi_num_monitor_devices(uint32_t *count);
SMI int32_t rsmi_num_monitor_devices(uint32_t *count) {
  *count = BOARDS;
  return SUCCESS;
}

SMI int32_t rsmi_dev_pci_id_get(uint32_t index, uint64_t *place);
SMI int32_t rsmi_dev_pci_id_get(uint32_t index, uint64_t *place) {
  if (index >= BOARDS) return INVALID;
  *place = boards[index].place;
  return SUCCESS;
}

/* 1000 counts more each time: 15.3 mJ. */
SMI int32_t rsmi_dev_energy_count_get(uint32_t index, uint64_t *count, float *microjoules,
                                      uint64_t *timestamp);
SMI int32_t rsmi_dev_energy_count_get(uint32_t index, uint64_t *count, float *microjoules,
                                      uint64_t *timestamp) {
  static uint64_t asked;
  if (index >= BOARDS) return INVALID;
  *count = boards[index].has_energy ? 1000 * __atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED) : 0;
  *microjoules = 15.3f;
  *timestamp = (uint64_t)time(NULL) * 1000000000u;
  return SUCCESS;
}
