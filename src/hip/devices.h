/* The devices that the program sees, in the runtime's order: their ordinal is their number,
   prof_device.index. Listed once, when the back end is opened. */
#ifndef PROF_HIP_DEVICES_H
#define PROF_HIP_DEVICES_H

#include <prof/backend.h>
#include <stdbool.h>
#include <stdint.h>

#include "api.h"

/* Has the calling thread an error of the program's that it has not fetched (hipGetLastError())?
   Before HIP 7 any call that goes well takes it away: then nothing may be called. Any thread. */
bool prof_i_hip_has_error(void);
/* A call of ours has failed: where there was none before, there is none again. */
void prof_i_hip_clear_error(void);

/* Could there be any? What the kernel says; the runtime is left alone. */
int prof_i_hip_devices_probe(void);

/* NO_DEVICE, with what can be seen of why: no /dev/kfd, no right to open it. The runtime begins
   where it has not yet: whoever asks has a stream of it, or wants to know. */
int prof_i_hip_devices_list(void);

/* How many. Any thread, as all below. */
uint32_t prof_i_hip_devices_count(void);

/* The one that the stream is of; its number, or UINT32_MAX with words. Runtimes before 6.0 do not
   say: it is the calling thread's current one then, as it is for a default stream. */
uint32_t prof_i_hip_stream_device(prof_i_hip_stream stream);

/* What there is to know of it, but for its size. */
void prof_i_hip_device_describe(uint32_t number, prof_backend_device *out);

#endif
