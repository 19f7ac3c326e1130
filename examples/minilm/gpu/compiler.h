/* kernels.cu made into the device's code, by NVRTC or by hipRTC. SPDX-License-Identifier: MIT */
#ifndef MINILM_GPU_COMPILER_H
#define MINILM_GPU_COMPILER_H

#include "library.h"

/* option: for which device, or NULL: the thread's current one. The code is freed by the caller.
   Refused: it does not compile, with the first lines of what the compiler said. */
int gpu_compile(const gpu_compiler *compiler, const char *option, char **code_out,
                size_t *bytes_out, failure *why);

#endif
