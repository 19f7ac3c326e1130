/* HIP's back end: scopes by events on the program's streams. */
#ifndef PROF_HIP_BACKEND_H
#define PROF_HIP_BACKEND_H

#include <prof/backend.h>

extern const prof_backend prof_i_hip_backend;

#endif
