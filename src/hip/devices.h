/* The devices that the program sees, in the runtime's order: their ordinal is their number,
   prof_device.index. Listed once, when the back end is opened. */
#ifndef PROF_HIP_DEVICES_H
#define PROF_HIP_DEVICES_H

#include <prof/backend.h>
#include <stdbool.h>
#include <stdint.h>

#include "api.h"

/* True if the calling thread has an error that the program has not fetched by hipGetLastError().
   Before HIP 7 any successful call clears it, so nothing may be called then. Any thread. */
bool prof_i_hip_has_error(void);
/* Clears the error of a failed call of prof's, if there was none before. */
void prof_i_hip_clear_error(void);

/* OK if the kernel shows a device. Does not call the runtime. */
int prof_i_hip_devices_probe(void);

/* NO_DEVICE with a reason, such as a missing /dev/kfd or no right to open it. Starts the runtime if
   it was not started: the caller has a stream of it, or queries the devices. */
int prof_i_hip_devices_list(void);

/* Their number. Any thread, as all below. */
uint32_t prof_i_hip_devices_count(void);

/* The number of the stream's device, or UINT32_MAX with a text. For a default stream, and with
   runtimes before 6.0, this is the calling thread's current device. */
uint32_t prof_i_hip_stream_device(prof_i_hip_stream stream);

/* Describes it, except for the size. */
void prof_i_hip_device_describe(uint32_t number, prof_backend_device *out);

#endif
