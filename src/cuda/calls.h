/* CUDA's functions by CUPTI's numbers of them, which are only ever added to: what they are called,
   and which put work on a device. */
#ifndef PROF_CUDA_CALLS_H
#define PROF_CUDA_CALLS_H

#include <prof/backend.h>
#include <stdbool.h>

#include "tracer_api.h"

/* By host->intern(), as Kineto has them: without the release that brought them. domain:
   PROF_I_CUPTI_CB_DOMAIN_*. 0: CUPTI knows none. The collector, as below. */
uint32_t prof_i_cuda_call_name(const prof_backend_host *host, int32_t domain, uint32_t number);

/* Has CUPTI record those calls by which work comes to devices, and no others. False: this one can
   record all or none. */
bool prof_i_cuda_calls_enable_work(bool enable);

#endif
