/* The devices that the program sees, in the driver's order: their ordinal is their number,
   prof_device.index. Listed once, when the back end is opened. */
#ifndef PROF_CUDA_DEVICES_H
#define PROF_CUDA_DEVICES_H

#include <prof/backend.h>
#include <stdint.h>

#include "api.h"

/* NOT_READY: the program has not begun to use CUDA. NO_DEVICE. Creates no context, and does not
   initialise CUDA, because a forked child could not use it then. */
int prof_i_cuda_devices_list(void);

/* Their number. Any thread, as all below. */
uint32_t prof_i_cuda_devices_count(void);

/* Its number; UINT32_MAX: it was not listed. */
uint32_t prof_i_cuda_device_number(prof_i_cu_device device);

/* The number of the stream's device, or UINT32_MAX with a text. A default stream belongs to the
   current context. */
uint32_t prof_i_cuda_stream_device(prof_i_cu_stream stream);

/* Describes it, except for the size. */
void prof_i_cuda_device_describe(uint32_t number, prof_backend_device *out);

#endif
