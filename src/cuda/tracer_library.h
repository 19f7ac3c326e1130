/* CUPTI's library, which records what CUDA's devices do, and its errors. Opened when records are
   wanted. Two copies in one process disturb each other, so a copy that is loaded comes first, no
   matter who loaded it. */
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

/* Takes a loaded copy, or the file of the option CUPTI (PROF_BACKEND_CUPTI), or the newest
   installed one that the driver can serve, or the toolkit's. ABSENT, VERSION. Calls nothing of it.
   One thread at a time. */
int prof_i_cupti_library_open(const prof_backend_host *host, int32_t driver_version);

/* Keeps a text of the CUptiResult, and returns the result that fits. */
int prof_i_cupti_fail_call(const char *function, int32_t error);

#endif
