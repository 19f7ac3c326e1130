/* The meters that are read, and their values: those of back ends, and the host's. One thread at a
   time. */
#ifndef PROF_SAMPLER_METERS_H
#define PROF_SAMPLER_METERS_H

#include <prof/sampler.h>
#include <prof/scope.h>
#include <stdbool.h>

#include "../device/registry.h"

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

#endif
