/* What HIP's errors say, in words. */
#ifndef PROF_HIP_ERROR_H
#define PROF_HIP_ERROR_H

#include <prof/backend.h>

#include "../device/backend_error.h"

/* "hipEventRecord: hipErrorInvalidHandle (400), invalid resource handle", as the runtime itself
   says it, and the result that fits. */
int prof_i_hip_fail_call(const char *function, int32_t error);

/* OK, or that HIP does nothing more in this process: a call of prof's has said one of
   PROF_I_HIP_FATAL_ERRORS, which is the program's own error, and which is left to it. Nothing is
   asked from then on. Any thread. */
int prof_i_hip_check_fatal(void);

#endif
