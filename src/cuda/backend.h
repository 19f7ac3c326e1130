/* CUDA's back end: scopes by events on the program's streams. */
#ifndef PROF_CUDA_BACKEND_H
#define PROF_CUDA_BACKEND_H

#include <prof/backend.h>

extern const prof_backend prof_i_cuda_backend;

#endif
