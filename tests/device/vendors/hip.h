/* The emulated HIP runtime beyond HIP's own functions: what a test asks of it, and what it has seen. Found by dlsym() in libamdhip64.so.6, or .5, or linked. */
#ifndef TESTS_DEVICE_VENDORS_HIP_H
#define TESTS_DEVICE_VENDORS_HIP_H

#include <stdint.h>

enum { EMULATED_HIP_DEVICES = 2 };

typedef struct emulated_hip {
  /* What a test sets. */
  uint32_t device_count;  /* 0: hipGetDeviceCount says that there is no device */
  int32_t record_error;   /* hipEventRecord returns it */
  int32_t elapsed_error;  /* hipEventElapsedTime returns it */
  /* What it has seen; atomic. */
  uint32_t calls;         /* of HIP at all */
  uint32_t events;        /* that there are */
  uint32_t captured_records; /* events that became part of a graph */
  uint32_t broken_captures;  /* by a call that may not come from any thread meanwhile */
} emulated_hip;

emulated_hip *emulated_hip_state(void);
void emulated_hip_work(void *stream, uint64_t ns); /* as a kernel would; 0 is the current device's default stream */

#endif
