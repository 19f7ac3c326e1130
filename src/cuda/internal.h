/* CUDA's back ends, for the list of those that are built in. */
#ifndef PROF_CUDA_INTERNAL_H
#define PROF_CUDA_INTERNAL_H

#include <prof/backend.h>

/* backend.c: scopes by events on the program's streams, and CUPTI's records. */
extern const prof_backend prof_i_cuda_backend;

/* meters.c: NVML's meters: power, energy, memory, utilisation, clocks, temperature. A back end of
   its own, because a program that samples need not use CUDA. */
extern const prof_backend prof_i_nvml_backend;

#endif
