/* HIP's back ends, for the list of those that are built in. */
#ifndef PROF_HIP_INTERNAL_H
#define PROF_HIP_INTERNAL_H

#include <prof/backend.h>

/* backend.c: scopes by events on the program's streams, and rocprofiler's records. */
extern const prof_backend prof_i_hip_backend;

/* meters.c: AMD's meters, as the kernel's driver (amdgpu) shows them in sysfs: power, memory,
   utilisation, clocks, temperature. A back end of its own that needs no library, because a program
   that samples need not use HIP. */
extern const prof_backend prof_i_amdgpu_backend;

#endif
