/* From CUPTI's records to prof's: what ran, and what launched it, which CUPTI tells of the call by
   another record, with the number that both have, before or after it. The collector alone. */
#ifndef PROF_CUDA_RECORDS_H
#define PROF_CUDA_RECORDS_H

#include <prof/backend.h>
#include <stdbool.h>

#include "tracer_api.h"

/* kinds: those that are wanted, by bits of prof_backend_kind: calls may be recorded for what they
   launched alone. is_last: what has no end by now is not done, and lost. */
void prof_i_cuda_records_begin(const prof_backend_host *host, uint32_t kinds, bool is_last);

/* One record, of a kind that this is for; others are left alone. */
void prof_i_cuda_record_add(const void *record);

/* Hands over what waits for the call that launched it: what waited last time already, or (are_all)
   everything. */
void prof_i_cuda_records_flush(bool are_all);

/* How many were not done, since the last time. */
uint64_t prof_i_cuda_records_unfinished(void);

#endif
