/* The emulated NVML beyond its own functions: what a test asks of it. Found by dlsym() in
   libnvidia-ml.so.1. */
#ifndef TESTS_DEVICE_VENDORS_NVML_H
#define TESTS_DEVICE_VENDORS_NVML_H

#include <stdint.h>

enum {
  EMULATED_NVML_DEVICES = 3,
  EMULATED_NVML_INSTANCES = 2 /* of the last one, where it is divided */
};

typedef struct emulated_nvml {
  int32_t init_error; /* nvmlInit_v2() returns it */
  uint32_t device_count;
  uint32_t lacks_energy; /* of all devices: not supported */
  uint32_t lost_device;  /* number + 1 of one that has fallen off the bus; 0: none */
  uint32_t is_divided;   /* the last one is, by MIG */
  uint32_t init_count;   /* seen */
  uint32_t clock_mhz[EMULATED_NVML_DEVICES]; /* of the SMs */
  uint64_t reasons[EMULATED_NVML_DEVICES];
  uint32_t reads; /* of clocks and reasons; seen */
  uint32_t power_mw[EMULATED_NVML_DEVICES];
  uint64_t memory_used[EMULATED_NVML_DEVICES];
} emulated_nvml;

emulated_nvml *emulated_nvml_state(void);

#endif
