/* Samples as CSV: see <prof/sampler.h>. One thread at a time. */
#ifndef PROF_SAMPLER_CSV_H
#define PROF_SAMPLER_CSV_H

#include "../sink/sink.h"
#include "meters.h"

void prof_i_csv_head(prof_i_sink *sink, const prof_i_meters *meters, uint32_t mode);
/* unix_ns: when they were read. */
void prof_i_csv_rows(prof_i_sink *sink, const prof_i_meters *meters, uint32_t mode,
                     uint64_t unix_ns);

#endif
