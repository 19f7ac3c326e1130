/* NVIDIA's meters, by NVML: power, energy, memory, utilisation, clocks, temperature and why clocks
   are held down. A back end of its own, which has meters alone, so that a program that samples need
   not use CUDA. */
#ifndef PROF_CUDA_METERS_H
#define PROF_CUDA_METERS_H

#include <prof/backend.h>

extern const prof_backend prof_i_nvml_backend;

#endif
