/* AMD's meters, as the kernel's driver (amdgpu) shows them in sysfs: power, memory, utilisation,
   clocks, temperature. A back end of its own, which has meters alone and needs no library, so that
   a program that samples need not use HIP. */
#ifndef PROF_HIP_METERS_H
#define PROF_HIP_METERS_H

#include <prof/backend.h>

extern const prof_backend prof_i_amdgpu_backend;

#endif
