/* An engine on the first device of HIP, AMD's: memory by hipMalloc, a stream a lane, all operators
   by kernels that hipRTC compiles when it opens. SPDX-License-Identifier: MIT */
#ifndef MINILM_HIP_ENGINE_H
#define MINILM_HIP_ENGINE_H

#include "../engine.h"

/* Refused: no runtime, no device, no hipRTC, kernels that do not compile: with what to do about it,
   or what the compiler said. */
int hip_engine_open(engine **engine_out, failure *why);

#endif
