/* The sampler's functions beyond <prof/sampler.h>, grouped by the file that defines them: the
   meters of back ends and of the host, and their values. One thread at a time. */
#ifndef PROF_SAMPLER_INTERNAL_H
#define PROF_SAMPLER_INTERNAL_H

#include <prof/backend.h>
#include <prof/sampler.h>
#include <prof/scope.h>
#include <stdbool.h>
#include <stdint.h>

#include "../device/registry.h"
#include "../sink/sink.h"

enum {
  PROF_I_METERS_MAX = 256,
  PROF_I_METERS_BATCH_MAX = 64,
  PROF_I_METRICS_TRIED_MAX = 4096,
  PROF_I_METER_NAME_BYTES = 112
};

/* One track. */
typedef struct prof_i_meter {
  prof_backend_metric metric;
  char name[PROF_I_METER_NAME_BYTES]; /* "opencl:0 memory used (B)" */
  char unit[16];
  prof_site site;
  prof_device device;
  uint64_t memory_bytes; /* of the device; 0: not known */
  bool is_host;
  uint32_t source; /* 0: the first back end with meters */
  uint32_t number; /* of the device in a file; a second vendor's follow the first one's */
  int64_t last;    /* of a total */
  uint64_t last_ns;
  double value;  /* in that unit */
  bool is_known; /* of the last sample */
} prof_i_meter;

typedef struct prof_i_meters {
  prof_i_meter all[PROF_I_METERS_MAX];
  uint32_t count, left_out_count; /* left out: for want of room */
  struct {
    prof_i_backend *backend; /* NULL: the host */
    uint32_t first, count;   /* of the meters that one call reads */
  } batches[PROF_I_BACKENDS_MAX + 1 + PROF_I_METERS_MAX / PROF_I_METERS_BATCH_MAX];
  uint32_t batch_count, source_count;
  uint32_t device_count; /* of the back ends so far, including those that are not wanted */
} prof_i_meters;

/* Finds the wanted meters. devices: checked by prof_i_meters_is_selection(). */
void prof_i_meters_find(prof_i_meters *meters, const char *devices, uint32_t mode);

/* "all", NULL, or numbers with commas between? */
bool prof_i_meters_is_selection(const char *devices);

/* "all" or NULL; "host": its own alone. */
bool prof_i_meters_selects_all(const char *devices);
bool prof_i_meters_selects_host(const char *devices);

/* Reads all. */
void prof_i_meters_read(prof_i_meters *meters);

/* ---- meters.c: energy ---- */

/* Energy that the processors' packages used, by the kernel's power capping counters (Intel's and
   AMD's RAPL). Many systems let only root read them. They change about once a millisecond, and
   count everything that runs on the machine. */

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

/* ---- sampler.c ---- */

/* prof_sampler_start() for the start by the environment. It does not wait for back ends: no other
   thread can open their libraries while this one is in a library's constructor. The sampler's
   thread writes to stderr if it finds no meters. */
int prof_i_sampler_begin(const prof_sampler_options *options);

/* ---- meters.c: the host's own ---- */

/* First, at each start of the sampler. */
void prof_i_host_meters_init(void);

typedef struct prof_i_host_meters_info {
  char why_not[192]; /* why there are none, or "" */
  char meters[128];  /* their names, with ", " between */
} prof_i_host_meters_info;
void prof_i_host_meters_describe(prof_i_host_meters_info *out);

#endif
