/* What HIP's errors say, in words. */
#ifndef PROF_HIP_WORDS_H
#define PROF_HIP_WORDS_H

#include <prof/backend.h>

#include "../device/words.h"

/* "hipEventRecord: hipErrorInvalidHandle (400), invalid resource handle", as the runtime itself says it, and the result that fits. */
int prof_i_hip_fail_call(const char *function, int32_t error);

#endif
