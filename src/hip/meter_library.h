/* Declarations of what prof uses of ROCm SMI, AMD's library of meters. It has energy, which the
   kernel's files do not have. tests/device/headers/rocm_smi.cpp compares each line with
   <rocm_smi/rocm_smi.h>. Opened only if the kernel lists a device of AMD's: without one it writes
   to stderr. */
#ifndef PROF_HIP_METER_LIBRARY_H
#define PROF_HIP_METER_LIBRARY_H

#include <prof/backend.h>
#include <stdbool.h>
#include <stdint.h>

/* X(name, arguments): all return an rsmi_status_t. */
#define PROF_I_RSMI_FUNCTIONS(X)                                 \
  X(rsmi_init, (uint64_t flags))                                 \
  X(rsmi_num_monitor_devices, (uint32_t * count_out))            \
  X(rsmi_dev_pci_id_get, (uint32_t index, uint64_t * place_out)) \
  X(rsmi_dev_energy_count_get,                                   \
    (uint32_t index, uint64_t * count_out, float *microjoules_out, uint64_t *timestamp_out))

#endif
