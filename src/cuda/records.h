/* Converts CUPTI's records to prof's: work, and what launched it. CUPTI reports the launching call
   by another record with the same number, before or after it. The collector alone. */
#ifndef PROF_CUDA_RECORDS_H
#define PROF_CUDA_RECORDS_H

#include <prof/backend.h>
#include <stdbool.h>

#include "tracer_api.h"

/* kinds: the wanted ones, as bits of prof_backend_kind. Calls may be recorded only to find
   launches. is_last: work without an end is not done, and lost. */
void prof_i_cuda_records_begin(const prof_backend_host *host, uint32_t kinds, bool is_last);

/* Adds one record. Other kinds are ignored. */
void prof_i_cuda_record_add(const void *record);

/* Hands over records that wait for their call: those that waited at the last flush already, or
   (are_all) all. */
void prof_i_cuda_records_flush(bool are_all);

/* The number of records that were not done, since the last call. */
uint64_t prof_i_cuda_records_unfinished(void);

#endif
