/* Energy that the processors' packages used, by the kernel's power capping counters (Intel's and
   AMD's RAPL). Many systems let only root read them. They change about once a millisecond, and
   count everything that runs on the machine. */
#ifndef PROF_SAMPLER_ENERGY_H
#define PROF_SAMPLER_ENERGY_H

#include <stdbool.h>
#include <stdint.h>

enum { PROF_I_PACKAGES_MAX = 16 };

typedef struct prof_i_energy {
  int count; /* of packages that can be read; 0: none */
  struct {
    int number;
    uint64_t begun_uj, range_uj; /* the counter's value, and where it wraps */
  } packages[PROF_I_PACKAGES_MAX];
} prof_i_energy;

#define PROF_I_POWERCAP "/sys/class/powercap"

void prof_i_energy_begin(prof_i_energy *energy, const char *folder);

/* What was used since, in uJ. False: not known. A counter may wrap around once, which takes at
   least a minute. */
bool prof_i_energy_end(const prof_i_energy *energy, const char *folder, uint64_t *uj_out);

#endif
