/* See energy.h. */
#include "energy.h"

#include <stdio.h>
#include <stdlib.h>

#include "../base/port.h"

static bool read_energy_number(const char *folder, int package, const char *name,
                               uint64_t *number_out) {
  char path[512], text[32];
  /* AMD's have the same name */
  snprintf(path, sizeof path, "%s/intel-rapl:%d/%s", folder, package, name);
  if (!prof_i_port_read_small(path, text, sizeof text)) return false;
  char *end = text;
  *number_out = strtoull(text, &end, 10);
  return end != text;
}

void prof_i_energy_begin(prof_i_energy *energy, const char *folder) {
  energy->count = 0;
  for (int i = 0; i < PROF_I_PACKAGES_MAX; i++) {
    uint64_t begun = 0, range = 0;
    if (!read_energy_number(folder, i, "energy_uj", &begun) ||
        !read_energy_number(folder, i, "max_energy_range_uj", &range))
      continue;
    energy->packages[energy->count].number = i;
    energy->packages[energy->count].begun_uj = begun;
    energy->packages[energy->count++].range_uj = range;
  }
}

bool prof_i_energy_between(const prof_i_energy *from, const prof_i_energy *to, uint64_t *uj_out) {
  uint64_t sum = 0;
  for (int i = 0, at = 0; i < from->count; i++) {
    while (at < to->count && to->packages[at].number != from->packages[i].number) at++;
    if (at == to->count) return false;
    const uint64_t begun = from->packages[i].begun_uj, range = from->packages[i].range_uj,
                   now = to->packages[at].begun_uj;
    if (now < begun && range < begun) return false;
    sum += now >= begun ? now - begun : range - begun + now;
  }
  *uj_out = sum;
  return from->count > 0;
}

bool prof_i_energy_end(const prof_i_energy *energy, const char *folder, uint64_t *uj_out) {
  prof_i_energy now;
  prof_i_energy_begin(&now, folder);
  return prof_i_energy_between(energy, &now, uj_out);
}
