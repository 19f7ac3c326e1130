/* The sampler's functions beyond <prof/sampler.h>, grouped by the file that defines them. */
#ifndef PROF_SAMPLER_INTERNAL_H
#define PROF_SAMPLER_INTERNAL_H

#include <prof/backend.h>
#include <prof/sampler.h>

#include "../sink/sink.h"
#include "meters.h"

/* ---- csv.c: samples as CSV. One thread at a time ---- */

void prof_i_csv_head(prof_i_sink *sink, const prof_i_meters *meters, uint32_t mode);
/* unix_ns: when they were read. */
void prof_i_csv_rows(prof_i_sink *sink, const prof_i_meters *meters, uint32_t mode,
                     uint64_t unix_ns);

/* ---- sampler.c ---- */

/* prof_sampler_start() for the start by the environment. It does not wait for back ends: no other
   thread can open their libraries while this one is in a library's constructor. The sampler's
   thread writes to stderr if it finds no meters. */
int prof_i_sampler_begin(const prof_sampler_options *options);

/* ---- host_meters.c ---- */

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
