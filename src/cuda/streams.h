/* CUPTI's numbers of streams beside the program's handles, so that what CUPTI records of a stream
   stands on one row with the scopes there. */
#ifndef PROF_CUDA_STREAMS_H
#define PROF_CUDA_STREAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "api.h"

/* From now on, or no more, those that scopes are put on are met. The collector. */
void prof_i_cuda_streams_set_tracking(bool do_meet);

/* Something was put on that stream of that context just now. Any thread; a load where nobody wants
   to know. seen: the caller's, 0 at first: so that each asks once. */
void prof_i_cuda_stream_register(prof_i_cu_context context, prof_i_cu_stream stream,
                                 uint32_t *seen);

/* The handle, or for one that no scope was on a number of its own: no handle is like it. The
   collector. */
uint64_t prof_i_cuda_stream_handle(uint32_t context, uint32_t stream);

/* A context's device, by CUPTI's number of it: records of waits do not say it, those of work do. 0:
   of none so far. The collector. */
void prof_i_cuda_context_set_device(uint32_t context, uint32_t device);
uint32_t prof_i_cuda_context_device(uint32_t context);

#endif
