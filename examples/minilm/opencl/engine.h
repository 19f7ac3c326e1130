/* An engine on the first OpenCL device: memory by clSVMAlloc (a pointer, so that the pool can cut
   it up), a queue a lane, a kernel an operator. Each operator is a scope on its queue: prof has the
   host's time of putting it there and the device's of doing it. SPDX-License-Identifier: MIT */
#ifndef MINILM_OPENCL_ENGINE_H
#define MINILM_OPENCL_ENGINE_H

#include "../engine.h"

/* Refused: no library, no device, one without shared virtual memory (OpenCL 2.0), kernels that do
   not compile: with the first lines of what the compiler said. */
int opencl_engine_open(engine **engine_out, failure *why);

#endif
