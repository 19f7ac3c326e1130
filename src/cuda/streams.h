/* Maps CUPTI's numbers of streams to the program's handles, so that CUPTI's records of a stream are
   on one row with the scopes there. */
#ifndef PROF_CUDA_STREAMS_H
#define PROF_CUDA_STREAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "api.h"

/* Starts or stops registering the streams that scopes are put on. The collector. */
void prof_i_cuda_streams_set_tracking(bool do_meet);

/* Registers a stream of that context, which an event was just put on. Any thread; one load if
   tracking is off. *seen: the caller's, 0 at first, so that each caller registers once. */
void prof_i_cuda_stream_register(prof_i_cu_context context, prof_i_cu_stream stream,
                                 uint32_t *seen);

/* The handle. A stream without scopes gets a number of its own, which is unlike any handle. The
   collector. */
uint64_t prof_i_cuda_stream_handle(uint32_t context, uint32_t stream);

/* A context's device, by CUPTI's number: records of work have it, records of waits do not. 0: no
   work so far. The collector. */
void prof_i_cuda_context_set_device(uint32_t context, uint32_t device);
uint32_t prof_i_cuda_context_device(uint32_t context);

#endif
