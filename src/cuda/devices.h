/* The devices that the program sees, in the driver's order: their ordinal is their number,
   prof_device.index. Listed once, when the back end is opened. */
#ifndef PROF_CUDA_DEVICES_H
#define PROF_CUDA_DEVICES_H

#include <prof/backend.h>
#include <stdint.h>

#include "api.h"

/* NOT_READY: the program has not begun to use CUDA; NO_DEVICE. Creates no context, and does not
   begin for it: a child of a fork could use none then. */
int prof_i_cuda_devices_list(void);

/* How many. Any thread, as all below. */
uint32_t prof_i_cuda_devices_count(void);

/* Its number; UINT32_MAX: it is none of those that were listed. */
uint32_t prof_i_cuda_device_number(prof_i_cu_device device);

/* The one that the stream is of; its number, or UINT32_MAX with words. For a default stream the
   context counts that is current. */
uint32_t prof_i_cuda_stream_device(prof_i_cu_stream stream);

/* What there is to know of it, but for its size. */
void prof_i_cuda_device_describe(uint32_t number, prof_backend_device *out);

#endif
