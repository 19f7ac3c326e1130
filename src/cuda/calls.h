/* CUDA's functions by CUPTI's numbers, which never change: their names, and which of them put work
   on a device. */
#ifndef PROF_CUDA_CALLS_H
#define PROF_CUDA_CALLS_H

#include <prof/backend.h>
#include <stdbool.h>

#include "tracer_api.h"

/* The interned name, as Kineto has it: without the suffix of the release. domain:
   PROF_I_CUPTI_CB_DOMAIN_*. 0: CUPTI knows no name. The collector, as below. */
uint32_t prof_i_cuda_call_name(const prof_backend_host *host, int32_t domain, uint32_t number);

/* Has CUPTI record only the calls that put work on devices. False: this CUPTI records all or none.
   */
bool prof_i_cuda_calls_enable_work(bool enable);

#endif
