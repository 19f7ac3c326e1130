/* What CUPTI records: when it is begun and ended, and how what it has recorded comes here. The collector alone. */
#ifndef PROF_CUDA_ACTIVITY_H
#define PROF_CUDA_ACTIVITY_H

#include <prof/backend.h>

/* prof_backend's. */
int prof_i_cuda_activity_start(const prof_backend_host *host, uint32_t kinds, uint32_t *kinds_out);
int prof_i_cuda_activity_stop(void);
int prof_i_cuda_activity_drain(const prof_backend_host *host, uint32_t how, uint64_t *lost_out);
int prof_i_cuda_activity_clock(const prof_backend_host *host, prof_backend_pair *out);

#endif
