/* Starts and stops CUPTI's records, and fetches them. The collector alone. */
#ifndef PROF_CUDA_ACTIVITY_H
#define PROF_CUDA_ACTIVITY_H

#include <prof/backend.h>

/* prof_backend's. */
int prof_i_cuda_activity_start(const prof_backend_host *host, uint32_t kinds, uint32_t *kinds_out);
int prof_i_cuda_activity_stop(void);
int prof_i_cuda_activity_drain(const prof_backend_host *host, uint32_t how, uint64_t *lost_out);
int prof_i_cuda_activity_clock(const prof_backend_host *host, prof_backend_pair *out);

/* Inside of cuInit(), on its thread, when the driver loads what CUDA_INJECTION64_PATH names.
   Records the kinds from the program's first kernel on, until start() takes over. look_out: a
   reading of CUPTI's clock. Calls nothing of the driver but its version, and nothing of CUPTI that
   needs a context. A failed call leaves nothing behind. */
int prof_i_cuda_activity_begin_preinit(const prof_backend_host *host, uint32_t kinds,
                                       prof_backend_pair *look_out);

#endif
