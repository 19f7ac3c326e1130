/* The emulated rocprofiler-sdk beyond its own functions: what a test asks of it, and what it has
   seen. Found by dlsym() in the library. */
#ifndef TESTS_DEVICE_VENDORS_ROCPROFILER_H
#define TESTS_DEVICE_VENDORS_ROCPROFILER_H

#include <stdint.h>

typedef struct emulated_rocp {
  /* What a test sets. */
  uint32_t has_tool;     /* another one has configured */
  int32_t service_error; /* rocprofiler_configure_buffer_tracing_service() returns it */
  uint32_t no_times;     /* so many of the next records of kernels have none */
  uint32_t calls_last;   /* 1: records of calls stand behind those of what they launched */
  /* 1: a kernel's symbol is reported when its buffer is flushed, after its records */
  uint32_t names_late;
  uint32_t room;  /* so many records fit into a buffer; 0: many */
  uint32_t hangs; /* a flush takes until this is 0 again; atomic */
  /* What it has seen; atomic. */
  uint32_t calls;              /* of it at all */
  uint32_t configured, active; /* tools; contexts that are started now */
  uint32_t flushes, dropped;
} emulated_rocp;

emulated_rocp *emulated_rocp_state(void);

#endif
