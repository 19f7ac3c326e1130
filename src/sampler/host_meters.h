/* The host's own meters, as a back end has them: the processors' energy by RAPL, and the batteries'
   power. PROF_SYSFS_ROOT replaces the / before /sys for tests, but not in a program with more
   rights than its user. */
#ifndef PROF_SAMPLER_HOST_METERS_H
#define PROF_SAMPLER_HOST_METERS_H

#include <prof/backend.h>

/* First, at each start of the sampler. */
void prof_i_host_meters_init(void);

/* As prof_backend.metric and .sample: one thread at a time. */
int prof_i_host_meters_metric(uint32_t number, prof_backend_metric *out);
int prof_i_host_meters_sample(const prof_backend_metric *metrics, uint32_t count,
                              int64_t *values_out, uint64_t *known_out);

typedef struct prof_i_host_meters_info {
  char why_not[192]; /* why there are none, or "" */
  char meters[128];  /* their names, with ", " between */
} prof_i_host_meters_info;
void prof_i_host_meters_describe(prof_i_host_meters_info *out);

#endif
