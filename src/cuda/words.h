/* What CUDA's errors say, in words. */
#ifndef PROF_CUDA_WORDS_H
#define PROF_CUDA_WORDS_H

#include <prof/backend.h>

#include "../device/words.h"

/* "cuEventRecord: CUDA_ERROR_INVALID_HANDLE (400), invalid resource handle", as the driver itself says it, and the result that fits. */
int prof_i_cuda_fail_call(const char *function, int32_t error);

#endif
