/* The library rocprofiler-sdk, and its errors. Opened when records are wanted. */
#ifndef PROF_HIP_TRACER_LIBRARY_H
#define PROF_HIP_TRACER_LIBRARY_H

#include <prof/backend.h>

#include "tracer_api.h"

typedef struct prof_i_rocp_functions {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration's */
#define PROF_I_ROCP_MEMBER(need, name, arguments) int32_t(*name) arguments;
/* NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define PROF_I_ROCP_TEXT(name, arguments) const char *(*name)arguments;
  PROF_I_ROCP_FUNCTIONS(PROF_I_ROCP_MEMBER)
  PROF_I_ROCP_TEXTS(PROF_I_ROCP_TEXT)
#undef PROF_I_ROCP_TEXT
#undef PROF_I_ROCP_MEMBER
} prof_i_rocp_functions;
extern prof_i_rocp_functions prof_i_rocp;

/* Takes a loaded copy, or the file of the option ROCPROFILER (PROF_BACKEND_ROCPROFILER), or the one
   that the system finds, or that of ROCm's own folder. ABSENT, VERSION. Calls nothing of it. One
   thread at a time. */
int prof_i_rocp_library_open(const prof_backend_host *host);

/* Keeps a text of its error, and returns the result that fits. */
int prof_i_rocp_fail_call(const char *function, int32_t status);

#endif
