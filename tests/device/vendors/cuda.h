/* The emulated CUDA driver beyond CUDA's own functions: what a test asks of it, and what it has seen. Found by dlsym() in libcuda.so.1, or linked. */
#ifndef TESTS_DEVICE_VENDORS_CUDA_H
#define TESTS_DEVICE_VENDORS_CUDA_H

#include <stdint.h>

enum { EMULATED_CUDA_DEVICES = 2 };

typedef struct emulated_cuda {
  /* What a test sets. */
  uint32_t device_count;   /* 0: cuDeviceGetCount says 0 */
  int32_t init_error;      /* cuInit returns it */
  int32_t record_error;    /* cuEventRecord returns it */
  int32_t elapsed_error;   /* cuEventElapsedTime returns it */
  /* What it has seen; atomic. */
  uint32_t init_count;
  uint32_t events, contexts; /* that there are */
  uint32_t captured_records; /* events that became part of a graph */
  uint32_t gone_touches;     /* uses of an event that has gone, where the real one may crash */
  uint32_t broken_captures;  /* by a call that may not come from any thread meanwhile */
} emulated_cuda;

emulated_cuda *emulated_cuda_state(void);
void emulated_cuda_work(void *stream, uint64_t ns); /* as a kernel would; 0 is the current context's default stream */

#endif
