/* What the processors' packages have used, by the kernel's power capping counters (Intel's and
   AMD's RAPL), where they may be read: many systems let only root. They move about once a
   millisecond, and count all that runs on the machine. */
#ifndef PROF_SAMPLER_ENERGY_H
#define PROF_SAMPLER_ENERGY_H

#include <stdbool.h>
#include <stdint.h>

enum { PROF_I_PACKAGES_MAX = 16 };

typedef struct prof_i_energy {
  int count; /* of packages that can be read; 0: none */
  struct {
    int number;
    uint64_t begun_uj, range_uj; /* the counter's then, and where it begins again */
  } packages[PROF_I_PACKAGES_MAX];
} prof_i_energy;

#define PROF_I_POWERCAP "/sys/class/powercap"

void prof_i_energy_begin(prof_i_energy *energy, const char *folder);

/* What was used from the one reading to the other, in uJ. False: not all packages of the first are
   in the second. */
bool prof_i_energy_between(const prof_i_energy *from, const prof_i_energy *to, uint64_t *uj_out);

/* What has been used since, in uJ. False: it is not known. Counters that have come round once are
   right; they take a minute at least. */
bool prof_i_energy_end(const prof_i_energy *energy, const char *folder, uint64_t *uj_out);

#endif
