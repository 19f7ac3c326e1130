/* An engine on the first CUDA device, by the driver's interface. Memory is by cuMemAlloc, and a
   lane is a stream. Matrix products are by cuBLAS, the other operators by kernels that NVRTC
   compiles when the engine opens. SPDX-License-Identifier: MIT */
#ifndef MINILM_CUDA_ENGINE_H
#define MINILM_CUDA_ENGINE_H

#include "../engine.h"

/* Refused: no driver, no device, no NVRTC, no cuBLAS, kernels that do not compile: with what to do
   about it, or what the compiler said. */
int cuda_engine_open(engine **engine_out, failure *why);

#endif
