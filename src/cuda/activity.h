/* What CUPTI records: when it is begun and ended, and how what it has recorded comes here. The
   collector alone. */
#ifndef PROF_CUDA_ACTIVITY_H
#define PROF_CUDA_ACTIVITY_H

#include <prof/backend.h>

/* prof_backend's. */
int prof_i_cuda_activity_start(const prof_backend_host *host, uint32_t kinds, uint32_t *kinds_out);
int prof_i_cuda_activity_stop(void);
int prof_i_cuda_activity_drain(const prof_backend_host *host, uint32_t how, uint64_t *lost_out);
int prof_i_cuda_activity_clock(const prof_backend_host *host, prof_backend_pair *out);

/* Inside of cuInit(), on its thread, where the driver asks what it was told to load
   (CUDA_INJECTION64_PATH): the kinds are recorded from the program's first kernel on, until start()
   takes them over. look_out: at CUPTI's clock, then. Of the driver it asks the version alone;
   CUPTI, nothing that needs a context. Once it has failed nothing is left of it. */
int prof_i_cuda_activity_begin_preinit(const prof_backend_host *host, uint32_t kinds,
                                       prof_backend_pair *look_out);

#endif
