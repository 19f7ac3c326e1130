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

/* False: it is missing or cannot be initialised. The option ROCM_SMI (PROF_BACKEND_ROCM_SMI) names
   its file; else (may_search) the system finds it. Once; one thread at a time, as below. */
bool prof_i_hip_smi_init(const prof_backend_host *host, bool may_search);

/* "": it is initialised, or was not wanted; else why not. */
const char *prof_i_hip_smi_reason(void);

/* Its number of the device with that PCI address; UINT32_MAX: not known. */
uint32_t prof_i_hip_smi_find(uint32_t domain, uint32_t bus, uint32_t device, uint32_t function);

/* In uJ since a fixed time. */
bool prof_i_hip_smi_energy(uint32_t index, int64_t *uj_out);

#endif
