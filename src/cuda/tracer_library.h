/* CUPTI, which records what CUDA's devices do: found where the process has it, opened when records
   are asked for, never linked, never closed. Two copies in one process get in each other's way, so
   one that is there is taken, whoever brought it. */
#ifndef PROF_CUDA_TRACER_LIBRARY_H
#define PROF_CUDA_TRACER_LIBRARY_H

#include <prof/backend.h>

#include "tracer_api.h"

typedef struct prof_i_cupti_functions {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration's */
#define PROF_I_CUPTI_MEMBER(need, name, arguments) int32_t(*name) arguments;
  PROF_I_CUPTI_FUNCTIONS(PROF_I_CUPTI_MEMBER)
#undef PROF_I_CUPTI_MEMBER
} prof_i_cupti_functions;

/* Written only by prof_i_cupti_library_open(). Call these only after it returned OK. */
extern prof_i_cupti_functions prof_i_cupti __attribute__((visibility("hidden")));

/* That of the process; that of the option CUPTI (PROF_BACKEND_CUPTI); of those that the system
   finds the newest that the driver can serve; the toolkit's. ABSENT, VERSION: it lacks a function.
   Calls nothing of it. One thread at a time. */
int prof_i_cupti_library_open(const prof_backend_host *host, int32_t driver_version);

/* Keeps a text of the CUptiResult, and returns the result that fits. */
int prof_i_cupti_fail_call(const char *function, int32_t error);

#endif
