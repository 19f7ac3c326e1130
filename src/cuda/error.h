/* What CUDA's errors say, in words. */
#ifndef PROF_CUDA_ERROR_H
#define PROF_CUDA_ERROR_H

#include <prof/backend.h>

#include "../device/backend_error.h"

/* "cuEventRecord: CUDA_ERROR_INVALID_HANDLE (400), invalid resource handle", as the driver itself
   says it, and the result that fits. */
int prof_i_cuda_fail_call(const char *function, int32_t error);

/* OK, or that CUDA does nothing more in this process: a call of prof's has said one of
   PROF_I_CU_FATAL_ERRORS, which is the program's own error, and which its own calls say, too.
   Nothing is asked from then on. Any thread. */
int prof_i_cuda_check_fatal(void);

#endif
