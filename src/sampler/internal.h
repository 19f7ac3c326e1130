/* The sampler's functions beyond <prof/sampler.h>, grouped by the file that defines them. */
#ifndef PROF_SAMPLER_INTERNAL_H
#define PROF_SAMPLER_INTERNAL_H

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

#endif
