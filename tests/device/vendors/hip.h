/* The emulated HIP runtime beyond HIP's own functions: what a test asks of it, and what it has
   seen. Found by dlsym() in libamdhip64.so.6, or .5, or linked. */
#ifndef TESTS_DEVICE_VENDORS_HIP_H
#define TESTS_DEVICE_VENDORS_HIP_H

#include <stdint.h>

enum { EMULATED_HIP_DEVICES = 2 };

typedef struct emulated_hip {
  /* What a test sets. */
  uint32_t device_count; /* 0: hipGetDeviceCount says that no device exists */
  int32_t create_error;  /* hipEventCreateWithFlags returns it */
  int32_t record_error;  /* hipEventRecord returns it */
  int32_t elapsed_error; /* hipEventElapsedTime returns it */
  /* a kernel has gone wrong: all that asks for devices, events and streams returns it from then on.
     Atomic */
  int32_t last_error;
  /* What it has seen; atomic. */
  uint32_t calls;            /* of HIP at all */
  uint32_t events;           /* that there are */
  uint32_t captured_records; /* events that became part of a graph */
  uint32_t broken_captures;  /* by a call that may not come from any thread meanwhile */
  uint32_t after_last;       /* calls that returned last_error */
} emulated_hip;

emulated_hip *emulated_hip_state(void);
/* launches a kernel "busy" that takes so long; 0 is the current device's default stream */
void emulated_hip_work(void *stream, uint64_t ns);
/* for hipModuleLaunchKernel(); its code is loaded. Stays, as its name must */
void *emulated_hip_kernel(const char *name, uint64_t ns);

/* ---- for the emulated rocprofiler, which the runtime tells what it does ---- */

typedef enum emulated_hip_kind { EMULATED_HIP_KERNEL, EMULATED_HIP_COPY } emulated_hip_kind;
typedef enum emulated_hip_call {
  EMULATED_HIP_LAUNCH,
  EMULATED_HIP_TO_DEVICE,
  EMULATED_HIP_TO_HOST,
  EMULATED_HIP_SYNCHRONIZE,
  EMULATED_HIP_CALLS
} emulated_hip_call;

typedef struct emulated_hip_done {
  emulated_hip_kind kind;
  uint64_t correlation, thread, kernel, bytes, queue;
  uint32_t groups[3], block[3], shared_bytes;
  int device, to_host;
} emulated_hip_done;

typedef struct emulated_hip_observer {
  /* by CLOCK_BOOTTIME, rocprofiler's, on the calling thread */
  void (*call)(emulated_hip_call which, uint64_t correlation, uint64_t start_ns, uint64_t end_ns);
  void *(*begins)(const emulated_hip_done *it);                  /* it is put on its stream */
  void (*ends)(void *begun, uint64_t start_ns, uint64_t end_ns); /* on the stream's thread */
  /* the runtime begins: its first call */
  void (*starts)(void);
  /* also those that were there before it observed */
  void (*loads)(uint64_t kernel, const char *name);
} emulated_hip_observer;

void emulated_hip_observe(const emulated_hip_observer *observer);

#endif
